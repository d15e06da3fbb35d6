/*-------------------------------------------------------------------------
 *
 * variables.c
 *	  The variables of functions in PL/pgSQL, and where a name means which one.
 *
 * A block may declare a variable with the name of one outside of it, so each has the
 * words between which it is meant: from its declaration to the END of the block.  A
 * parameter is meant everywhere.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/variables.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert/variables.h"

/* What ends with END: a block, or CASE, which declares nothing. */
typedef struct Block
{
	List	   *variables;		/* that it declares */
} Block;

/*
 * Is a name in a list?
 */
bool
snowflake_convert_has_name(const List *names, const char *name)
{
	ListCell   *cell;

	foreach(cell, names)
	{
		if (strcmp(lfirst(cell), name) == 0)
			return true;
	}
	return false;
}

/*
 * The variable that a name at a word means, or NULL.
 */
SnowflakeVariable *
snowflake_convert_find_variable(const SnowflakeFunction *function, const char *name, int at)
{
	SnowflakeVariable *found = NULL;
	ListCell   *cell;

	foreach(cell, function->variables)
	{
		SnowflakeVariable *variable = lfirst(cell);
		bool		is_inside = variable->from <= at && at <= variable->to;

		if (snowflake_convert_has_name(variable->names, name) &&
			(found == NULL || is_inside))
			found = variable;
	}
	return found;
}

/*
 * The variable that a declaration begins with, if it is a number.
 */
static SnowflakeVariable *
read_declaration(const SnowflakeSource *source, int at)
{
	SnowflakeVariable *variable = palloc0(sizeof(SnowflakeVariable));
	int			type = at + 1;

	variable->names = list_make1(source->words[at].text);
	variable->from = at;
	variable->to = source->count;
	if (snowflake_convert_is_word(source, type, "constant"))
		type++;
	variable->type_at = type;
	variable->is_integer = snowflake_convert_is_integer(source, type);
	if (variable->is_integer || snowflake_convert_is_word(source, type, "bigint") ||
		snowflake_convert_is_word(source, type, "int8"))
		return variable;
	return NULL;
}

/*
 * Read a statement of DECLARE: another name of a parameter, or a variable.
 */
static void
read_statement(SnowflakeFunction *function, Block *block, int at)
{
	const SnowflakeSource *source = &function->source;
	SnowflakeVariable *variable;

	if (!source->words[at].is_name)
		return;
	if (at + 3 < source->count && snowflake_convert_is_word(source, at + 1, "alias"))
	{
		variable = snowflake_convert_find_variable(function, source->words[at + 3].text, at);
		if (variable != NULL)
			variable->names = lappend(variable->names, source->words[at].text);
		return;
	}
	variable = read_declaration(source, at);
	if (variable == NULL)
		return;
	function->variables = lappend(function->variables, variable);
	block->variables = lappend(block->variables, variable);
}

/*
 * Close the last block at its END.
 */
static List *
close_block(List *blocks, int at)
{
	ListCell   *cell;

	if (blocks == NIL)
		return NIL;
	foreach(cell, ((Block *) llast(blocks))->variables)
		((SnowflakeVariable *) lfirst(cell))->to = at;
	return list_delete_last(blocks);
}

/*
 * Find the variables of a function in PL/pgSQL, beside its arguments.  IF and LOOP have
 * an END of their own; a column may have the name of what begins or ends a block.
 */
void
snowflake_convert_find_variables(SnowflakeFunction *function)
{
	const SnowflakeSource *source = &function->source;
	List	   *blocks = NIL;
	bool		declares = false;

	for (int at = 0; at < source->count - 1; at++)
	{
		bool		is_column = snowflake_convert_is_word(source, at - 1, ".") ||
			snowflake_convert_is_word(source, at - 1, "as");

		if (snowflake_convert_is_word(source, at, "begin"))
		{
			if (!declares)
				blocks = lappend(blocks, palloc0_object(Block));
			declares = false;
		}
		else if (declares && (snowflake_convert_is_word(source, at - 1, ";") ||
							  snowflake_convert_is_word(source, at - 1, "declare")))
			read_statement(function, llast(blocks), at);
		if (is_column)
			continue;
		if (snowflake_convert_is_word(source, at, "declare"))
		{
			if (!declares)
				blocks = lappend(blocks, palloc0_object(Block));
			declares = true;
		}
		else if (snowflake_convert_is_word(source, at, "case") &&
				 !snowflake_convert_is_word(source, at - 1, "end"))
			blocks = lappend(blocks, palloc0_object(Block));
		else if (snowflake_convert_is_word(source, at, "end") &&
				 !snowflake_convert_is_word(source, at + 1, "if") &&
				 !snowflake_convert_is_word(source, at + 1, "loop"))
			blocks = close_block(blocks, at);
	}
}
