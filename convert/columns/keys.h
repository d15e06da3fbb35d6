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

/* What becomes of a key of a schema. */
typedef enum SnowflakeKeyKind
{
	SNOWFLAKE_KEY_CONVERTED,
	SNOWFLAKE_KEY_EXCLUDED,		/* by the caller */
	SNOWFLAKE_KEY_REFERENCING,	/* it is a foreign key, too */
	SNOWFLAKE_KEY_SUPPLIED,		/* it has no generator, and no sequence */
	SNOWFLAKE_KEY_COUNTER,		/* a sequence, but not the primary key */
	SNOWFLAKE_KEY_KINDS
} SnowflakeKeyKind;

/* What is left as it is. */
typedef struct SnowflakeLeftKey
{
	SnowflakeKeyKind kind;
	const char *object;
} SnowflakeLeftKey;

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
