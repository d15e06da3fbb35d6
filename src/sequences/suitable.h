/*-------------------------------------------------------------------------
 *
 * suitable.h
 *	  Which sequences can be of which kind.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/suitable.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SUITABLE_H
#define SNOWFLAKE_SUITABLE_H

#include "catalog/pg_sequence.h"
#include "storage/lockdefs.h"

#include "sequences/label.h"

extern PGDLLEXPORT FormData_pg_sequence snowflake_get_definition(Oid relid);
extern SequencePosition snowflake_position_within(SequencePosition position,
												  const FormData_pg_sequence *definition);
extern int64 snowflake_type_maximum(Oid type);
extern bool snowflake_has_plain_definition(Oid relid, SnowflakeSequenceKind kind);
extern bool snowflake_has_bigint_column(Oid relid);
extern void snowflake_check_increment(Oid relid, int64 increment,
									  SnowflakeSequenceKind kind);
extern void snowflake_check_definition(Oid relid, SnowflakeSequenceKind kind);
extern bool snowflake_is_own_sequence(Oid relid);
extern void snowflake_check_suitable(Oid relid, SnowflakeSequenceKind kind);
extern bool snowflake_is_locked(Oid relid, LOCKMODE mode);
extern void snowflake_begin_alter_table(void);
extern void snowflake_end_alter_table(void);
extern PGDLLEXPORT int64 snowflake_greatest_key(Oid relid, bool *has_keys);
extern bool snowflake_is_key(Oid relid, int64 number);

#endif							/* SNOWFLAKE_SUITABLE_H */
