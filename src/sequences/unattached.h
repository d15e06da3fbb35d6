/*-------------------------------------------------------------------------
 *
 * unattached.h
 *	  Databases that have sequences that are not local, and lack what belongs to
 *	  them.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/unattached.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_UNATTACHED_H
#define SNOWFLAKE_UNATTACHED_H

#define SNOWFLAKE_SEQUENCES_WORKER		"snowflake sequences"
#define SNOWFLAKE_SEQUENCES_FUNCTION	"snowflake_sequences_main"

extern void snowflake_watch_unattached(void);

#endif							/* SNOWFLAKE_UNATTACHED_H */
