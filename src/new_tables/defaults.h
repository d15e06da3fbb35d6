/*-------------------------------------------------------------------------
 *
 * defaults.h
 *	  The sequences of a default.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/defaults.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_DEFAULTS_H
#define SNOWFLAKE_DEFAULTS_H

#include "nodes/primnodes.h"

extern List *snowflake_sequences_in_raw_default(Node *expression);

#endif							/* SNOWFLAKE_DEFAULTS_H */
