/*-------------------------------------------------------------------------
 *
 * key_flow.h
 *	  Which parameters, variables and results of functions hold keys.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/key_flow.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_KEY_FLOW_H
#define SNOWFLAKE_CONVERT_KEY_FLOW_H

#include "nodes/pg_list.h"

#include "convert/source.h"

/* A parameter or variable that is a number. */
typedef struct SnowflakeVariable
{
	List	   *names;			/* its own, $1, and others */
	bool		is_integer;		/* or smallint: a new key does not fit */
	bool		holds_key;
	int			type_at;		/* the word of a variable's type, or -1 */
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

extern void snowflake_convert_find_variables(SnowflakeFunction *function);
extern void snowflake_convert_follow_keys(const List *functions, const List *key_names);
extern List *snowflake_convert_find_casts(const SnowflakeFunction *function,
										  const List *functions, const List *key_names);

#endif							/* SNOWFLAKE_CONVERT_KEY_FLOW_H */
