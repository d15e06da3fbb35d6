/*-------------------------------------------------------------------------
 *
 * defaults.h
 *	  The sequence of a default.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/defaults.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_DEFAULTS_H
#define SNOWFLAKE_DEFAULTS_H

#include "nodes/primnodes.h"

extern Node *snowflake_strip_casts(Node *expression);
extern Oid	snowflake_sequence_in_raw_default(Node *expression);
extern Oid	snowflake_sequence_in_default(Oid relid, const char *column);
extern Node *snowflake_make_raw_default(const RangeVar *sequence);

#endif							/* SNOWFLAKE_DEFAULTS_H */
