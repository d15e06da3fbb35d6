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
#include "nodes/pg_list.h"

/* How much of a message is kept, or logged. */
#define SNOWFLAKE_TEXT_SIZE			512

/* A registry has no longer grant_time. */
#define SNOWFLAKE_MAX_GRANT_TIME_MS	(INT64CONST(366) * SECS_PER_DAY * 1000)

/* What precedes the error if a function does not exist in a database. */
#define SNOWFLAKE_NO_REGISTRY \
	"the extension snowflake_registry is not installed in database \"%s\": "

/* What an answer is: an error, or one set of rows. */
typedef struct RegistryAnswer
{
	char	   *error;			/* a single line, or NULL; it counts alone */
	char		sqlstate[6];	/* of the error, or empty */
	bool		rolled_back;	/* was the call, for certain? */
	char		warning[SNOWFLAKE_TEXT_SIZE];	/* of a commit that is not
												 * durable */
	char		namesake[SNOWFLAKE_TEXT_SIZE];	/* what the registry says of
												 * another server of this name */

	int			ncolumns;		/* -1: there is not even a set of no rows */
	List	   *rows;			/* arrays of texts, of which NULL is NULL */
} RegistryAnswer;

extern void snowflake_empty_answer(RegistryAnswer *answer);
extern void snowflake_keep_error(RegistryAnswer *answer, const char *sqlstate,
								 const char *message, const char *detail,
								 const char *hint);
extern bool snowflake_has_rows(const RegistryAnswer *answer, int nrows,
							   int ncolumns);
extern bool snowflake_read_value(const char *from, int64 *value);
extern bool snowflake_read_integer(const RegistryAnswer *answer, int column,
								   int64 *value);
extern void snowflake_append_message(StringInfo error, const char *message);
extern void snowflake_append_error(StringInfo string,
								   const RegistryAnswer *answer,
								   const char *dbname);
extern void snowflake_append_answer(StringInfo string,
									const RegistryAnswer *answer);

#endif							/* SNOWFLAKE_ANSWER_H */
