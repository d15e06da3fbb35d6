/*-------------------------------------------------------------------------
 *
 * alter.h
 *	  ALTER SEQUENCE, for sequences that are not local.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/alter.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ALTER_H
#define SNOWFLAKE_ALTER_H

#include "nodes/nodes.h"

extern void snowflake_check_alter(const Node *statement);

#endif							/* SNOWFLAKE_ALTER_H */
