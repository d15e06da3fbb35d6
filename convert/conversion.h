/*-------------------------------------------------------------------------
 *
 * conversion.h
 *	  The steps of a conversion, of one key or of many.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/conversion.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_CONVERSION_H
#define SNOWFLAKE_CONVERT_CONVERSION_H

#include "convert/queries.h"
#include "convert/subtransaction.h"

extern void snowflake_convert_refuse_old_snapshot(void);
extern void snowflake_convert_check_generator(Oid generator);
extern SnowflakeKey *snowflake_convert_find_key(Oid relid, const char *column,
												bool uuid_allowed);
extern Oid	snowflake_convert_lock(Oid relid, LOCKMODE mode);
extern void snowflake_convert_choose_generator(SnowflakeKey *key, Oid named);
extern void snowflake_convert_report_kept_default(const SnowflakeKey *key);
extern bool snowflake_convert_prepare(SnowflakeConversion *conversion, Oid owner);
extern List *snowflake_convert_list_obstacles(const SnowflakeConversion *conversion);
extern AttrNumber snowflake_convert_find_column(Oid relid, const char *table,
												const char *name);
extern void snowflake_convert_run_statements(const List *statements);
extern List *snowflake_convert_begin_execution(SnowflakeConversion *conversion);
extern void snowflake_convert_finish_execution(SnowflakeConversion *conversion,
											   const List *statements);
extern void snowflake_convert_lock_and_plan(SnowflakeConversion *conversion,
											SnowflakeWork plan, void *argument);

#endif							/* SNOWFLAKE_CONVERT_CONVERSION_H */
