/*-------------------------------------------------------------------------
 *
 * sequences.h
 *	  Sequences that stay, and get another kind.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/sequences.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_SEQUENCES_H
#define SNOWFLAKE_CONVERT_SEQUENCES_H

#include "fmgr.h"
#include "utils/array.h"

#include "convert/catalog/queries.h"

/* What is to be done, and what was found. */
typedef struct SnowflakeKindCall
{
	SnowflakeConversion *conversion;
	Oid			relid;			/* the table, or InvalidOid for a schema */
	const char *column;			/* of it, or NULL */
	ArrayType  *exclude;		/* tables of the schema, or NULL */
	List	   *sequences;		/* that get the kind, as OIDs */
	List	   *rows;			/* of the columns that these feed */
	List	   *done;			/* that have it already */
	List	   *notices;		/* of SnowflakeFinding */
	List	   *statements;
} SnowflakeKindCall;


extern void snowflake_convert_get_kind(FunctionCallInfo fcinfo, int argument, Oid generator,
									   SnowflakeConversion *conversion);
extern bool snowflake_convert_keeps_columns(const SnowflakeConversion *conversion);
extern void snowflake_convert_find_doubles(const SnowflakeConversion *conversion,
										   List **findings);
extern void snowflake_convert_find_key_sequences(SnowflakeConversion *conversion);
extern List *snowflake_convert_list_kinds(SnowflakeKindCall *call);
extern void snowflake_convert_change_kinds(SnowflakeKindCall *call);

#endif							/* SNOWFLAKE_CONVERT_SEQUENCES_H */
