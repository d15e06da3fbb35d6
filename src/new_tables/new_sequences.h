/*-------------------------------------------------------------------------
 *
 * new_sequences.h
 *	  The kind of new sequences.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/new_sequences.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_NEW_SEQUENCES_H
#define SNOWFLAKE_NEW_SEQUENCES_H

extern void snowflake_give_default_kind(Oid relid);
extern void snowflake_fit_default_kind(Oid relid, Oid type, const char *column);

#endif							/* SNOWFLAKE_NEW_SEQUENCES_H */
