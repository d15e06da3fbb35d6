/*-------------------------------------------------------------------------
 *
 * drop.h
 *	  Sequences that are dropped, and databases that are dropped or renamed.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/drop.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_DROP_H
#define SNOWFLAKE_DROP_H

extern void snowflake_watch_drops(void);

#endif							/* SNOWFLAKE_DROP_H */
