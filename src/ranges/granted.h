/*-------------------------------------------------------------------------
 *
 * granted.h
 *	  The greatest number that a server was granted, in the sequence's file.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/granted.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GRANTED_H
#define SNOWFLAKE_GRANTED_H

/* The greatest number that was granted, as the file of a sequence has it. */
typedef struct GrantedNote
{
	int64		granted;		/* or 0 */
	CommandId	database;		/* hash of the database's name; 0: no note */
} GrantedNote;

extern bool snowflake_is_new(const GrantedNote *note);
extern bool snowflake_is_foreign(const GrantedNote *note);
extern GrantedNote snowflake_read_note(Oid relid, int64 last);
extern bool snowflake_write_note(Oid relid, int64 last, int64 granted);
extern void snowflake_note_new(Oid relid, int64 last);
extern void snowflake_note_copied(Oid relid, int64 last);
extern bool snowflake_note_range(Oid relid, int64 last, int64 granted);
extern void snowflake_keep_note(Oid relid, int64 last, const GrantedNote *note);

#endif							/* SNOWFLAKE_GRANTED_H */
