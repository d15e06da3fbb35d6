/*-------------------------------------------------------------------------
 *
 * token.c
 *	  Random tokens, by which a registry knows a server.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/token.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "base/token.h"

/*
 * Draw a token.  Two machines resumed from one memory snapshot could draw the
 * same from the same state of the random number generator, but not at the same
 * time.
 */
void
snowflake_draw_token(pg_uuid_t *token)
{
	TimestampTz now = GetCurrentTimestamp();

	if (!pg_strong_random(token->data, UUID_LEN))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (size_t i = 0; i < sizeof(now); i++)
		token->data[i] ^= (unsigned char) ((uint64) now >> (8 * i));
}

/*
 * A token, and an array of them, as SQL has them.
 */
char *
snowflake_token_text(const pg_uuid_t *token)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(token)));
}

char *
snowflake_token_array(const pg_uuid_t *tokens, int count)
{
	StringInfoData array;

	initStringInfo(&array);
	for (int i = 0; i < count; i++)
		appendStringInfo(&array, "%c%s", i == 0 ? '{' : ',',
						 snowflake_token_text(&tokens[i]));
	appendStringInfoString(&array, count == 0 ? "{}" : "}");
	return array.data;
}
