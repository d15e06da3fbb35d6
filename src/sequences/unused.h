/*-------------------------------------------------------------------------
 *
 * unused.h
 *	  Which sequences that got their kind by the setting nobody has used.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/unused.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_UNUSED_H
#define SNOWFLAKE_UNUSED_H

extern void snowflake_note_unused(Oid relid);
extern void snowflake_note_used(Oid relid);
extern bool snowflake_is_noted_unused(Oid relid);
extern void snowflake_request_unused(void);
extern void snowflake_attach_unused(void);

#endif							/* SNOWFLAKE_UNUSED_H */
