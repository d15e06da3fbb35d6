/*-------------------------------------------------------------------------
 *
 * variables.h
 *	  The parameters and variables of functions.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/variables.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_VARIABLES_H
#define SNOWFLAKE_CONVERT_VARIABLES_H

#include "nodes/pg_list.h"

#include "convert/source.h"

/* A parameter or variable that is a number. */
typedef struct SnowflakeVariable
{
	List	   *names;			/* its own, $1, and others */
	bool		is_integer;		/* or smallint: a new key does not fit */
	bool		holds_key;
	int			type_at;		/* the word of a variable's type, or -1 */
	int			from;			/* the words between which the name is its */
	int			to;
} SnowflakeVariable;

/* An argument, also one that is a column of the result. */
typedef struct SnowflakeArgument
{
	char		mode;
	const char *name;
	const char *quoted;			/* the name */
	const char *type;
	Oid			type_oid;
	const char *default_value;	/* or NULL */
	SnowflakeVariable *variable;	/* NULL if it is no number */
} SnowflakeArgument;

typedef struct SnowflakeFunction
{
	char	  **row;			/* of the query functions */
	Oid			oid;
	const char *name;
	bool		is_sql;
	bool		uses_tables;
	SnowflakeSource source;
	List	   *variables;		/* all of them */
	List	   *arguments;
	SnowflakeVariable *result;	/* NULL if it is no number */
} SnowflakeFunction;

extern bool snowflake_convert_has_name(const List *names, const char *name);
extern SnowflakeVariable *snowflake_convert_find_variable(const SnowflakeFunction *function,
														  const char *name, int at);
extern void snowflake_convert_find_variables(SnowflakeFunction *function);

#endif							/* SNOWFLAKE_CONVERT_VARIABLES_H */
