/*-------------------------------------------------------------------------
 *
 * registry.h
 *	  Calls of the registry, a database that grants worker IDs.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/registry.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_REGISTRY_H
#define SNOWFLAKE_REGISTRY_H

#include "lib/stringinfo.h"

/* The maximum number of columns of an answer. */
#define SNOWFLAKE_ANSWER_COLUMNS	3

typedef enum RegistryResult
{
	SNOWFLAKE_REGISTRY_FAILED,	/* the error says why */
	SNOWFLAKE_REGISTRY_NO_ROW,
	SNOWFLAKE_REGISTRY_ROW
} RegistryResult;

extern const char *snowflake_check_conninfo(const char *conninfo);
extern RegistryResult snowflake_call_registry(const char *conninfo, int timeout_ms,
											  bool is_last, const char *query,
											  int nparams,
											  const char *const *params,
											  int64 *answer, StringInfo error);

#endif							/* SNOWFLAKE_REGISTRY_H */
