/*-------------------------------------------------------------------------
 *
 * one_line.c
 *	  Messages of others as a single line.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/one_line.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "base/one_line.h"

/*
 * Append a message as a single line, in characters that are in any encoding.
 */
void
snowflake_append_message(StringInfo error, const char *message)
{
	for (; *message != '\0'; message++)
	{
		unsigned char c = (unsigned char) *message;

		if (c == '\n' && message[1] != '\0')
			appendStringInfoString(error, message[1] == '\t' ? ";" : "; ");
		else if (isspace(c))
			appendStringInfoString(error, c == '\n' ? "" : " ");
		else
			appendStringInfoChar(error, c > 32 && c < 127 ? c : '?');
	}
}

/*
 * Do two errors differ in more than numbers, such as times?
 */
bool
snowflake_errors_differ(const char *one, const char *other)
{
	const char *digits = "0123456789";

	while (*one != '\0' && *other != '\0')
	{
		size_t		one_number = strspn(one, digits);
		size_t		other_number = strspn(other, digits);

		if (one_number > 0 && other_number > 0)
		{
			one += one_number;
			other += other_number;
		}
		else if (*one++ != *other++)
			return true;
	}
	return *one != *other;
}
