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

extern int64 snowflake_read_granted(Oid relid, int64 last);
extern int64 snowflake_read_granted_here(Oid relid, int64 last);
extern bool snowflake_write_granted(Oid relid, int64 last, int64 granted);

#endif							/* SNOWFLAKE_GRANTED_H */
