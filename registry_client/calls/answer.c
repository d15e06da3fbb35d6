/*-------------------------------------------------------------------------
 *
 * answer.c
 *	  Answers of a registry, which are not trusted.
 *
 * Whatever stands at the registry's address can answer anything: a proxy, a
 * connection pooler, another database.  So nothing that it sends is taken to
 * have any form.  Who talks to it keeps of each answer what there is room for,
 * and here it is taken apart: only an answer of exactly so many rows and
 * columns, whose values are integers and nothing else, has these values.
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

/*
 * Keep the beginning of a text, or nothing of NULL.  This and what else keeps
 * something allocates no memory.
 */
void
snowflake_keep_text(char *kept, const char *string)
{
	strlcpy(kept, string != NULL ? string : "", SNOWFLAKE_TEXT_SIZE);
}

/*
 * Keep an error.  Of what it consists, each can be NULL.
 */
void
snowflake_keep_error(AnswerError *error, const char *sqlstate,
					 const char *message, const char *detail,
					 const char *hint)
{
	strlcpy(error->sqlstate, sqlstate != NULL ? sqlstate : "",
			sizeof(error->sqlstate));
	snowflake_keep_text(error->message, message);
	snowflake_keep_text(error->detail, detail);
	snowflake_keep_text(error->hint, hint);
}

/*
 * Keep a value of a row for which there is room: a text of this length, or NULL.
 * A text with a zero byte in it is not kept as what it begins with.
 */
void
snowflake_keep_value(RegistryAnswer *answer, int row, int column,
					 const char *string, size_t length)
{
	AnswerValue *value;

	if (row >= answer->max_rows || column >= SNOWFLAKE_ANSWER_COLUMNS)
		return;
	value = &answer->rows[row].values[column];
	value->is_null = string == NULL;
	snowflake_keep_text(value->string, string);
	if (string != NULL && strlen(string) != length)
		snowflake_keep_text(value->string, "?");
}

/*
 * Make an answer empty, with room for so many rows.
 */
void
snowflake_empty_answer(RegistryAnswer *answer, int max_rows)
{
	memset(answer, 0, sizeof(*answer));
	answer->max_rows = max_rows;
	answer->rows = palloc0(max_rows * sizeof(AnswerRow));
}

/*
 * Is an answer exactly this number of rows with this number of columns?
 */
bool
snowflake_has_rows(const RegistryAnswer *answer, int nrows, int ncolumns)
{
	return !answer->failed && answer->nsets == 1 &&
		answer->nrows == nrows && nrows <= answer->max_rows &&
		answer->ncolumns == ncolumns && ncolumns <= SNOWFLAKE_ANSWER_COLUMNS;
}

bool
snowflake_has_row(const RegistryAnswer *answer, int ncolumns)
{
	return snowflake_has_rows(answer, 1, ncolumns);
}

bool
snowflake_has_no_row(const RegistryAnswer *answer, int ncolumns)
{
	return snowflake_has_rows(answer, 0, ncolumns);
}

/*
 * Read an integer.  Returns false if it is NULL, or anything but decimal digits,
 * after a minus if it is negative, or does not fit.
 */
bool
snowflake_read_value(const AnswerValue *from, int64 *value)
{
	const char *digits = from->string[0] == '-' ? from->string + 1 : from->string;
	char	   *end;

	/* strtoi64() would take blanks and a plus. */
	if (from->is_null || digits[0] < '0' || digits[0] > '9')
		return false;
	errno = 0;
	*value = strtoi64(from->string, &end, 10);
	return errno == 0 && *end == '\0';
}

/*
 * Read an integer of the only row that an answer has.
 */
bool
snowflake_read_integer(const RegistryAnswer *answer, int column, int64 *value)
{
	return snowflake_read_value(&answer->rows[0].values[column], value);
}

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
 * Append an error of a database as a single line.  If the functions do not
 * exist, add the most likely reason.
 */
void
snowflake_append_error(StringInfo string, const AnswerError *error,
					   const char *dbname)
{
	const char *parts[] = {error->message, error->detail, error->hint};

	/* invalid_schema_name, undefined_function */
	if (strcmp(error->sqlstate, "3F000") == 0 ||
		strcmp(error->sqlstate, "42883") == 0)
		appendStringInfo(string, SNOWFLAKE_NO_REGISTRY, dbname);
	for (size_t i = 0; i < lengthof(parts); i++)
	{
		if (parts[i][0] == '\0')
			continue;
		if (i > 0)
			appendStringInfoString(string, i > 1 && parts[1][0] != '\0' ? " " : "; ");
		snowflake_append_message(string, parts[i]);
	}
}

/*
 * Append what an answer is that should have been another one.
 */
void
snowflake_append_answer(StringInfo string, const RegistryAnswer *answer)
{
	appendStringInfoString(string, "unexpected answer");
	if (answer->nsets != 1)
		return;
	appendStringInfo(string, " of %s with %d %s",
					 answer->nrows == 0 ? "no row" :
					 answer->nrows == 1 ? "one row" : "several rows",
					 answer->ncolumns,
					 answer->ncolumns == 1 ? "column" : "columns");
	if (answer->nrows != 1 || answer->max_rows < 1)
		return;
	for (int i = 0; i < Min(answer->ncolumns, SNOWFLAKE_ANSWER_COLUMNS); i++)
	{
		const AnswerValue *value = &answer->rows[0].values[i];
		char		cut[32];

		strlcpy(cut, value->string, sizeof(cut));
		appendStringInfoString(string, i == 0 ? ": " : ", ");
		snowflake_append_message(string, value->is_null ? "NULL" : cut);
	}
}
