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

#include "convert/catalog/queries.h"

extern void snowflake_convert_choose_kind(SnowflakeConversion *conversion, Oid generator);
extern void snowflake_convert_find_doubles(const SnowflakeConversion *conversion,
										   List **findings);
extern void snowflake_convert_find_key_sequences(SnowflakeConversion *conversion);
extern void snowflake_convert_find_kind_obstacles(const SnowflakeConversion *conversion,
												  List **obstacles);
extern List *snowflake_convert_prepare_statements(const SnowflakeConversion *conversion);
extern List *snowflake_convert_kind_statements(const SnowflakeConversion *conversion);

#endif							/* SNOWFLAKE_CONVERT_SEQUENCES_H */
