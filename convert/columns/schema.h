/*-------------------------------------------------------------------------
 *
 * schema.h
 *	  Which keys of a schema are converted, and which are left as they are.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/schema.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_SCHEMA_H
#define SNOWFLAKE_CONVERT_SCHEMA_H

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

extern bool snowflake_convert_contains(ArrayType *array, Oid oid);
extern void snowflake_convert_check_schema(Oid schema, ArrayType *exclude);
extern List *snowflake_convert_find_keys(SnowflakeConversion *conversion,
										 ArrayType *exclude, Oid generator,
										 Oid *owner);

#endif							/* SNOWFLAKE_CONVERT_SCHEMA_H */
