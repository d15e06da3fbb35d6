/*-------------------------------------------------------------------------
 *
 * kinds.h
 *	  The kind that the sequences of converted keys get.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/kinds.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_KINDS_H
#define SNOWFLAKE_CONVERT_KINDS_H

#include "fmgr.h"

#include "convert/queries.h"

extern SnowflakeConvertKind snowflake_convert_get_kind(FunctionCallInfo fcinfo, int argument,
													   Oid generator);

#endif							/* SNOWFLAKE_CONVERT_KINDS_H */
