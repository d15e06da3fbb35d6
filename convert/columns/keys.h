/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  The key of a table, and those of a schema.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/keys.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_KEYS_H
#define SNOWFLAKE_CONVERT_KEYS_H

#include "utils/array.h"

#include "convert/catalog/queries.h"

extern Oid	snowflake_convert_lock(Oid relid, LOCKMODE mode);
extern void snowflake_convert_check_generator(Oid generator);
extern AttrNumber snowflake_convert_find_column(Oid relid, const char *table,
												const char *name);
extern Oid	snowflake_convert_default_function(Oid relid, AttrNumber attnum, Oid type);
extern void snowflake_convert_add_key(SnowflakeConversion *conversion, Oid relid,
									  const char *column, Oid generator,
									  bool uuid_allowed);
extern void snowflake_convert_find_kept_default(const SnowflakeKey *key, List **findings);
extern bool snowflake_convert_contains(ArrayType *array, Oid oid);
extern void snowflake_convert_check_schema(Oid schema, ArrayType *exclude);
extern List *snowflake_convert_find_keys(SnowflakeConversion *conversion,
										 ArrayType *exclude, Oid generator,
										 Oid *owner);

#endif							/* SNOWFLAKE_CONVERT_KEYS_H */
