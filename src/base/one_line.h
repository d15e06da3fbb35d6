/*-------------------------------------------------------------------------
 *
 * one_line.h
 *	  Messages of others as a single line.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/one_line.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONE_LINE_H
#define SNOWFLAKE_ONE_LINE_H

#include "lib/stringinfo.h"

#include "shared/compat.h"

extern PGDLLEXPORT void snowflake_append_message(StringInfo error, const char *message);
extern PGDLLEXPORT bool snowflake_errors_differ(const char *one, const char *other);

#endif							/* SNOWFLAKE_ONE_LINE_H */
