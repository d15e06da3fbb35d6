/*-------------------------------------------------------------------------
 *
 * statements.h
 *	  The statements that convert a column, and the notices beside them.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/statements.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_STATEMENTS_H
#define SNOWFLAKE_CONVERT_STATEMENTS_H

#include "convert/catalog/queries.h"

extern List *snowflake_convert_list_notices(const SnowflakeConversion *conversion);
extern List *snowflake_convert_statements(const SnowflakeConversion *conversion);

#endif							/* SNOWFLAKE_CONVERT_STATEMENTS_H */
