/*-------------------------------------------------------------------------
 *
 * kind.h
 *	  The kind of a sequence.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/kind.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_KIND_H
#define SNOWFLAKE_KIND_H

#include "nodes/nodes.h"

#include "sequences/label.h"

extern void snowflake_register_kinds(void);
extern void snowflake_set_kind(Oid relid, SnowflakeSequenceKind kind,
							   const char *name, bool without_registry);
extern void snowflake_prepare_ranges(const List *relids);
extern void snowflake_set_kinds(const List *relids, SnowflakeSequenceKind kind,
								bool without_registry);
extern SnowflakeSequenceKind snowflake_sequence_kind(Oid relid);
extern bool snowflake_lock_default(Oid relid);
extern void snowflake_set_default_kind(Oid relid, SnowflakeSequenceKind kind);

#endif							/* SNOWFLAKE_KIND_H */
