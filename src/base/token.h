/*-------------------------------------------------------------------------
 *
 * token.h
 *	  Random tokens, by which a registry knows a server.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/token.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_TOKEN_H
#define SNOWFLAKE_TOKEN_H

#include "utils/uuid.h"

#include "shared/compat.h"

extern void snowflake_draw_token(pg_uuid_t *token);
extern PGDLLEXPORT char *snowflake_token_array(const pg_uuid_t *tokens, int count);
extern PGDLLEXPORT char *snowflake_token_text(const pg_uuid_t *token);

#endif							/* SNOWFLAKE_TOKEN_H */
