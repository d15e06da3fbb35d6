/*-------------------------------------------------------------------------
 *
 * answer.h
 *	  Answers of a registry, which are not trusted.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/answer.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ANSWER_H
#define SNOWFLAKE_ANSWER_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"

/* The maximum number of columns of an answer. */
#define SNOWFLAKE_ANSWER_COLUMNS	11

/* Room for each text of an answer; longer ones are cut. */
#define SNOWFLAKE_TEXT_SIZE			512

/* A registry has no longer grant_time. */
#define SNOWFLAKE_MAX_GRANT_TIME_MS	(INT64CONST(366) * SECS_PER_DAY * 1000)

/* What precedes the error if a function does not exist in a database. */
#define SNOWFLAKE_NO_REGISTRY \
	"the extension snowflake_registry is not installed in database \"%s\": "

typedef struct AnswerValue
{
	bool		is_null;
	char		string[SNOWFLAKE_TEXT_SIZE];
} AnswerValue;

/* An error, with its details; what it has not is empty. */
typedef struct AnswerError
{
	bool		rolled_back;	/* did it, for certain? */
	char		sqlstate[6];
	char		message[SNOWFLAKE_TEXT_SIZE];
	char		detail[SNOWFLAKE_TEXT_SIZE];
	char		hint[SNOWFLAKE_TEXT_SIZE];
} AnswerError;

typedef struct AnswerRow
{
	AnswerValue values[SNOWFLAKE_ANSWER_COLUMNS];
} AnswerRow;

/* What an answer is: an error, or a number of rows, of which it has the first. */
typedef struct RegistryAnswer
{
	bool		failed;			/* has it an error, which counts alone? */
	AnswerError error;
	char		warning[SNOWFLAKE_TEXT_SIZE];	/* of a commit that is not
												 * durable */
	char		namesake[SNOWFLAKE_TEXT_SIZE];	/* what the registry says of
												 * another server of this name */

	int			nsets;			/* sets of rows */
	int			nrows;			/* one more than max_rows: there are more */
	int			ncolumns;
	int			max_rows;		/* room for rows */
	AnswerRow  *rows;
} RegistryAnswer;

extern void snowflake_keep_text(char *kept, const char *string);
extern void snowflake_keep_error(AnswerError *error, const char *sqlstate,
								 const char *message, const char *detail,
								 const char *hint);
extern void snowflake_keep_value(RegistryAnswer *answer, int row, int column,
								 const char *string, size_t length);
extern void snowflake_empty_answer(RegistryAnswer *answer, int max_rows);
extern bool snowflake_has_rows(const RegistryAnswer *answer, int nrows,
							   int ncolumns);
extern bool snowflake_has_row(const RegistryAnswer *answer, int ncolumns);
extern bool snowflake_has_no_row(const RegistryAnswer *answer, int ncolumns);
extern bool snowflake_read_value(const AnswerValue *from, int64 *value);
extern bool snowflake_read_integer(const RegistryAnswer *answer, int column,
								   int64 *value);
extern void snowflake_append_message(StringInfo error, const char *message);
extern void snowflake_append_error(StringInfo string, const AnswerError *error,
								   const char *dbname);
extern void snowflake_append_answer(StringInfo string,
									const RegistryAnswer *answer);

#endif							/* SNOWFLAKE_ANSWER_H */
