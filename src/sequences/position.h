/*-------------------------------------------------------------------------
 *
 * position.h
 *	  The position of a sequence, in its file.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/position.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_POSITION_H
#define SNOWFLAKE_POSITION_H

#include "catalog/pg_sequence.h"

#include "sequences/label.h"

extern SequencePosition snowflake_get_position(Oid relid);
extern void snowflake_set_position(Oid relid, SequencePosition position);
extern void snowflake_set_end(Oid relid);
extern bool snowflake_has_set_position(Oid relid, int64 value);
extern bool snowflake_is_exhausted(Oid relid);
extern bool snowflake_is_unused(Oid relid);

#endif							/* SNOWFLAKE_POSITION_H */
