/*-------------------------------------------------------------------------
 *
 * exhaust.h
 *	  Sequences that are not local are exhausted, also after what resets them.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/exhaust.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_EXHAUST_H
#define SNOWFLAKE_EXHAUST_H

#include "storage/lockdefs.h"

#include "sequences/label.h"

/* How a statement or a subscription resets the position of sequences. */
typedef enum SnowflakeReset
{
	SNOWFLAKE_RESET_NONE,
	SNOWFLAKE_RESET_BY_ALTER,
	SNOWFLAKE_RESET_BY_TRUNCATE,
	SNOWFLAKE_RESET_BY_COPY
} SnowflakeReset;

extern SequenceLabel snowflake_sequence_label(Oid relid);
extern void snowflake_keep_granted_number(Oid relid, const SequenceLabel *label);
extern void snowflake_exhaust(Oid relid, const SequenceLabel *label);
extern bool snowflake_exhaust_in_place(Oid relid, const SequenceLabel *label);
extern bool snowflake_is_locked(Oid relid, LOCKMODE mode);
extern void snowflake_exhaust_after(SnowflakeReset reset);

#endif							/* SNOWFLAKE_EXHAUST_H */
