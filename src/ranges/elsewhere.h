/*-------------------------------------------------------------------------
 *
 * elsewhere.h
 *	  Names of which other servers are granted numbers.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/elsewhere.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ELSEWHERE_H
#define SNOWFLAKE_ELSEWHERE_H

#include "shared/compat.h"

/* How many names there is room for. */
#define SNOWFLAKE_ELSEWHERE		8192

extern PGDLLEXPORT void snowflake_add_elsewhere(uint64 *set, const char *database,
												const char *name);
extern PGDLLEXPORT void snowflake_set_elsewhere(uint64 *set);
extern bool snowflake_is_elsewhere(const char *name, bool *first);
extern void snowflake_request_elsewhere(void);
extern void snowflake_attach_elsewhere(void);

#endif							/* SNOWFLAKE_ELSEWHERE_H */
