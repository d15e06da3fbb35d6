/*-------------------------------------------------------------------------
 *
 * answer.c
 *	  Answers of a registry, which are not trusted.
 *
 * Whatever stands at the registry's address can answer anything: a proxy, a
 * connection pooler, another database.  So nothing that it sends is taken to
 * have any form.  Here an answer is taken apart: only one of exactly so many rows
 * and columns, whose values are integers and nothing else, has these values.
 *
 * Messages are cut, so that they do not fill the log.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/answer.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "registry_client/calls/answer.h"

void
snowflake_empty_answer(RegistryAnswer *answer)
{
	memset(answer, 0, sizeof(*answer));
	answer->ncolumns = -1;
}

/*
 * Keep an error, as a single line.  All but the message can be NULL.
 */
void
snowflake_keep_error(RegistryAnswer *answer, const char *sqlstate,
					 const char *message, const char *detail,
					 const char *hint)
{
	StringInfoData line;

	initStringInfo(&line);
	snowflake_append_message(&line, message);
	if (detail != NULL || hint != NULL)
		appendStringInfoString(&line, "; ");
	if (detail != NULL)
		snowflake_append_message(&line, detail);
	if (detail != NULL && hint != NULL)
		appendStringInfoChar(&line, ' ');
	if (hint != NULL)
		snowflake_append_message(&line, hint);
	answer->error = line.data;
	strlcpy(answer->sqlstate, sqlstate != NULL ? sqlstate : "",
			sizeof(answer->sqlstate));
}

/*
 * Is an answer exactly this number of rows with this number of columns?
 */
bool
snowflake_has_rows(const RegistryAnswer *answer, int nrows, int ncolumns)
{
	return answer->error == NULL && list_length(answer->rows) == nrows &&
		answer->ncolumns == ncolumns;
}

/*
 * Read an integer.  Returns false if it is NULL, or anything but decimal digits,
 * after a minus if it is negative, or does not fit.
 */
bool
snowflake_read_value(const char *from, int64 *value)
{
	const char *digits = from != NULL && from[0] == '-' ? from + 1 : from;
	char	   *end;

	/* strtoi64() would take blanks and a plus. */
	if (from == NULL || digits[0] < '0' || digits[0] > '9')
		return false;
	errno = 0;
	*value = strtoi64(from, &end, 10);
	return errno == 0 && *end == '\0';
}

/*
 * Read an integer of the first row.
 */
bool
snowflake_read_integer(const RegistryAnswer *answer, int column, int64 *value)
{
	char	  **values = linitial(answer->rows);

	return snowflake_read_value(values[column], value);
}

/*
 * Append the beginning of a message as a single line, in characters that are in any
 * encoding.
 */
void
snowflake_append_message(StringInfo error, const char *message)
{
	for (int left = SNOWFLAKE_TEXT_SIZE - 1; *message != '\0' && left > 0; message++, left--)
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
 * Append the error of a database.  If the functions do not exist, add the most
 * likely reason.
 */
void
snowflake_append_error(StringInfo string, const RegistryAnswer *answer,
					   const char *dbname)
{
	/* invalid_schema_name, undefined_function */
	if (strcmp(answer->sqlstate, "3F000") == 0 ||
		strcmp(answer->sqlstate, "42883") == 0)
		appendStringInfo(string, SNOWFLAKE_NO_REGISTRY, dbname);
	appendStringInfoString(string, answer->error);
}

/*
 * Append what an answer is that should have been another one.
 */
void
snowflake_append_answer(StringInfo string, const RegistryAnswer *answer)
{
	int			nrows = list_length(answer->rows);
	char	  **values;

	appendStringInfoString(string, "unexpected answer");
	if (answer->ncolumns < 0)
		return;
	appendStringInfo(string, " of %s with %d %s",
					 nrows == 0 ? "no row" : nrows == 1 ? "one row" : "several rows",
					 answer->ncolumns,
					 answer->ncolumns == 1 ? "column" : "columns");
	if (nrows != 1)
		return;
	values = linitial(answer->rows);
	for (int i = 0; i < answer->ncolumns && string->len < SNOWFLAKE_TEXT_SIZE; i++)
	{
		char		cut[32];

		strlcpy(cut, values[i] != NULL ? values[i] : "NULL", sizeof(cut));
		appendStringInfoString(string, i == 0 ? ": " : ", ");
		snowflake_append_message(string, cut);
	}
}
