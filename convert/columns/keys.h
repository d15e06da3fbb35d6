/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  The key of a table, and what generates its values.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/keys.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_KEYS_H
#define SNOWFLAKE_CONVERT_KEYS_H

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

#endif							/* SNOWFLAKE_CONVERT_KEYS_H */
