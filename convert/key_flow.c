/*-------------------------------------------------------------------------
 *
 * key_flow.c
 *	  Which parameters, variables and results of functions hold keys.
 *
 * A value is a key if it is a column with the name of one, a parameter or variable
 * that holds one, the result of such a function, or one of these by CASE or a function
 * that returns one of its arguments.  What holds a key is found by what is done with it:
 *
 * - it has the name of such a column, perhaps with a prefix;
 * - it is compared with a key, or assigned one, by :=, INTO, FOR, INSERT, or UPDATE;
 * - it is passed where a function has a parameter that holds one, or is a parameter
 *	 that gets one;
 * - it is returned by a function whose result is one, or a result that is returned.
 *
 * This is looked for again as long as something is found, because keys go from one
 * function to another.  Only functions that use tables are searched for columns.
 *
 * An integer that holds no key stays one: much code does not accept a bigint, such as
 * substr(text, integer).  What is not found here fails in the rehearsal, if a trigger or
 * a default calls it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/key_flow.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "miscadmin.h"

#include "convert/key_flow.h"

/* A search of a function. */
typedef struct Flow
{
	const List *functions;
	const List *key_names;
	const SnowflakeFunction *function;
	const SnowflakeSource *source;
	bool		found;			/* something that holds a key */
} Flow;

/* A value in the source. */
typedef struct Value
{
	bool		is_key;
	SnowflakeVariable *variable;	/* or NULL */
	int			end;			/* the word behind it, or -1: it is none */
	int			end_before_cast;
} Value;

static Value read_value(const Flow *flow, int at);
static Value read_given_value(const Flow *flow, int at);

static bool
has_word(const Flow *flow, int at, const char *text)
{
	return snowflake_convert_is_word(flow->source, at, text);
}

static bool
has_one_of(const Flow *flow, int at, const char *const *texts)
{
	for (; *texts != NULL; texts++)
	{
		if (has_word(flow, at, *texts))
			return true;
	}
	return false;
}

static void
mark(Flow *flow, SnowflakeVariable *variable)
{
	if (variable == NULL || variable->holds_key)
		return;
	variable->holds_key = true;
	flow->found = true;
}

/*
 * The result of a call, if one of the functions has that name.
 */
static bool
returns_key(const Flow *flow, const char *name)
{
	ListCell   *cell;

	foreach(cell, flow->functions)
	{
		const SnowflakeFunction *function = lfirst(cell);

		if (function->result != NULL && function->result->holds_key &&
			strcmp(function->name, name) == 0)
			return true;
	}
	return false;
}

/*
 * A comparison, and what only a part of a key is in, such as id IS NULL or id % 16,
 * have another value than the one that they begin with.
 */
static void
drop_unless_whole(const Flow *flow, Value *value)
{
	static const char *const words[] = {"is", "isnull", "notnull", "in", "between", "like", "ilike",
	"similar", "and", "or", NULL};
	int			end = value->end < 0 ? 0 : snowflake_convert_next_item(flow->source, value->end);

	for (int at = value->end; at >= 0 && at < end; at++)
	{
		const char *text = flow->source->words[at].text;

		if (has_word(flow, at, "("))
			at = snowflake_convert_find_close(flow->source, at);
		else if (has_one_of(flow, at, words) || strchr("=<>!~%/&|#^@?`", text[0]) != NULL)
		{
			value->is_key = false;
			value->variable = NULL;
			return;
		}
	}
}

/*
 * Is one of the arguments between parentheses a key?
 */
static bool
has_key_argument(const Flow *flow, int open)
{
	int			close = snowflake_convert_find_close(flow->source, open);

	for (int at = open + 1; at < close; at++)
	{
		Value		value = read_value(flow, at);

		drop_unless_whole(flow, &value);
		if (value.is_key)
			return true;
		at = snowflake_convert_next_item(flow->source, at);
	}
	return false;
}

/*
 * Read the call of a function.
 */
static Value
read_call(const Flow *flow, int at)
{
	static const char *const transparent[] = {"coalesce", "max", "min", "greatest", "least",
	"nullif", "abs", NULL};
	static const char *const sequence[] = {"nextval", "currval", "lastval", NULL};
	Value		value = {0};

	value.end = snowflake_convert_find_close(flow->source, at + 1) + 1;
	value.is_key = has_one_of(flow, at, sequence) ||
		returns_key(flow, flow->source->words[at].text) ||
		(has_one_of(flow, at, transparent) && has_key_argument(flow, at + 1));
	return value;
}

/*
 * Read what is in parentheses: a value, the first column of a query, or a cast.
 */
static Value
read_parenthesis(const Flow *flow, int open)
{
	static const char *const before[] = {"select", "distinct", "all", NULL};
	int			at = open + 1;
	Value		value;

	while (has_one_of(flow, at, before))
		at++;
	value = read_value(flow, at);
	drop_unless_whole(flow, &value);
	if (has_word(flow, open + 1, "select"))
		value.variable = NULL;
	if (value.end >= 0)
		value.end = snowflake_convert_find_close(flow->source, open) + 1;
	return value;
}

/*
 * Read a parameter, variable, column, or field of a record.
 */
static Value
read_name(const Flow *flow, int at)
{
	const SnowflakeWord *words = flow->source->words;
	Value		value = {0};
	bool		is_qualified = has_word(flow, at - 1, ".");

	if (has_word(flow, at, flow->function->name) && has_word(flow, at + 1, "."))
	{
		at += 2;
		is_qualified = false;
	}
	else
		for (; words[at].is_name && has_word(flow, at + 1, "."); at += 2)
			is_qualified = true;
	if (words[at].is_name && has_word(flow, at + 1, "("))
		return read_call(flow, at);
	value.end = at + 1;
	if (!is_qualified)
		value.variable = snowflake_convert_find_variable(flow->function, words[at].text, at);
	value.is_key = value.variable != NULL ? value.variable->holds_key :
		words[at].is_name && flow->function->uses_tables &&
		snowflake_convert_has_name(flow->key_names, words[at].text);
	return value;
}

/*
 * Read CASE, which has the values behind THEN and ELSE.
 */
static Value
read_case(const Flow *flow, int at)
{
	static const char *const before[] = {"then", "else", NULL};
	const Value none = {.end = -1};
	Value		value = {0};
	int			depth = 1;

	for (at++; depth > 0; at++)
	{
		/* It is a statement of PL/pgSQL. */
		if (at >= flow->source->count || has_word(flow, at, ";"))
			return none;
		if (has_word(flow, at, "case"))
			depth++;
		else if (has_word(flow, at, "end"))
			depth--;
		else if (depth == 1 && has_one_of(flow, at, before))
			value.is_key |= read_given_value(flow, at + 1).is_key;
	}
	value.end = at;
	return value;
}

/*
 * Read the value that begins at a word, with the casts behind it.
 */
static Value
read_value(const Flow *flow, int at)
{
	const SnowflakeWord *word = &flow->source->words[at];
	Value		value = {.end = -1};

	check_stack_depth();
	/* A body that was not checked may end anywhere. */
	if (at >= flow->source->count)
		return value;
	if (has_word(flow, at, "("))
		value = read_parenthesis(flow, at);
	else if (has_word(flow, at, "cast") && has_word(flow, at + 1, "("))
		value = read_parenthesis(flow, at + 1);
	else if (has_word(flow, at, "case"))
		value = read_case(flow, at);
	else if (word->is_name || word->text[0] == '$')
		value = read_name(flow, at);
	value.end_before_cast = value.end;
	while (value.end >= 0 && has_word(flow, value.end, "::"))
		value.end += 2;
	return value;
}

/*
 * Read a value that is given to something, unless only a part of it is, such as id % 16.
 */
static Value
read_given_value(const Flow *flow, int at)
{
	static const char *const operators[] = {"%", "/", "&", ">>", "||", "->", "->>", "~", NULL};
	Value		value = read_value(flow, at);

	if (has_one_of(flow, value.end, operators))
		value.is_key = false;
	return value;
}

/*
 * Read the value that ends before a word.
 */
static Value
read_value_before(const Flow *flow, int end)
{
	const Value none = {.end = -1};

	for (int at = end - 1; at >= 0 && at > end - 32; at--)
	{
		Value		value;

		if (has_word(flow, at, ";"))
			break;
		value = read_value(flow, at);
		if (value.end == end && (value.is_key || value.variable != NULL))
			return value;
	}
	return none;
}

/*
 * Two values are of one kind if one is assigned to the other, or they are compared.
 */
static void
join_values(Flow *flow, const Value *one, const Value *other)
{
	if (one->is_key)
		mark(flow, other->variable);
	if (other->is_key)
		mark(flow, one->variable);
}

static void
follow_operator(Flow *flow, int at)
{
	static const char *const operators[] = {"=", "<>", "!=", "<", ">", "<=", ">=", ":=", "in",
	"between", "default", NULL};
	Value		left;
	Value		right;

	if (!has_one_of(flow, at, operators))
		return;
	right = read_given_value(flow, at + 1);
	left = read_value_before(flow, has_word(flow, at - 1, "not") ? at - 1 : at);
	/* The first value of a variable is behind its type. */
	if (left.end < 0 && snowflake_convert_is_integer(flow->source, at - 1))
		left = read_value_before(flow, has_word(flow, at - 2, "constant") ? at - 2 : at - 1);
	join_values(flow, &left, &right);
}

/*
 * The items of a list of values go to those of a list of variables, or of arguments.
 */
static void
follow_items(Flow *flow, int at, const List *targets)
{
	static const char *const before[] = {"distinct", "all", "strict", NULL};
	ListCell   *cell;

	while (has_one_of(flow, at, before))
		at++;
	foreach(cell, targets)
	{
		Value		value = read_given_value(flow, at);
		SnowflakeVariable *target = lfirst(cell);

		if (value.is_key)
			mark(flow, target);
		at = snowflake_convert_next_item(flow->source, at);
		if (!has_word(flow, at, ","))
			break;
		at++;
	}
}

/*
 * The variables that a list of names begins with, NULL for those that are no numbers;
 * at is set to the word behind them.
 */
static List *
read_targets(const Flow *flow, int *at)
{
	List	   *targets = NIL;

	for (;;)
	{
		Value		value = read_value(flow, *at);

		targets = lappend(targets, value.variable);
		if (value.end < 0)
			break;
		*at = value.end;
		if (!has_word(flow, *at, ","))
			break;
		(*at)++;
	}
	return targets;
}

/*
 * SELECT ... INTO, and RETURNING ... INTO.
 */
static void
follow_into(Flow *flow, int at)
{
	int			behind = at + 1;
	int			from = at - 1;
	int			depth = 0;
	List	   *targets;

	if (!has_word(flow, at, "into") || has_word(flow, at - 1, "insert"))
		return;
	if (has_word(flow, behind, "strict"))
		behind++;
	targets = read_targets(flow, &behind);
	if (has_word(flow, at - 1, "select"))
	{
		follow_items(flow, behind, targets);
		return;
	}
	for (; from >= 0 && !has_word(flow, from, ";"); from--)
	{
		depth += has_word(flow, from, ")") ? 1 : has_word(flow, from, "(") ? -1 : 0;
		if (depth == 0 && (has_word(flow, from, "select") || has_word(flow, from, "returning")))
		{
			follow_items(flow, from + 1, targets);
			return;
		}
	}
}

/*
 * FOR ... IN SELECT
 */
static void
follow_for(Flow *flow, int at)
{
	List	   *targets;

	if (!has_word(flow, at++, "for"))
		return;
	targets = read_targets(flow, &at);
	if (has_word(flow, at, "in") && has_word(flow, at + 1, "select"))
		follow_items(flow, at + 2, targets);
}

/*
 * The values of a list, or of a query, go to columns.
 */
static void
follow_row(Flow *flow, int at, const List *are_keys)
{
	ListCell   *cell;

	foreach(cell, are_keys)
	{
		Value		value = read_value(flow, at);

		if (lfirst_int(cell))
			mark(flow, value.variable);
		at = snowflake_convert_next_item(flow->source, at);
		if (!has_word(flow, at, ","))
			break;
		at++;
	}
}

/*
 * INSERT INTO ... (...) VALUES, or SELECT
 */
static void
follow_insert(Flow *flow, int at)
{
	const SnowflakeWord *words = flow->source->words;
	List	   *are_keys = NIL;
	int			close;

	if (!has_word(flow, at, "insert") || !has_word(flow, at + 1, "into"))
		return;
	for (at += 2; words[at].is_name || has_word(flow, at, "."); at++)
		;
	if (!has_word(flow, at, "("))
		return;
	close = snowflake_convert_find_close(flow->source, at);
	for (at++; at < close; at++)
	{
		are_keys = lappend_int(are_keys,
							   snowflake_convert_has_name(flow->key_names, words[at].text));
		at = snowflake_convert_next_item(flow->source, at);
	}
	at = close + 1;
	if (has_word(flow, at, "select"))
		follow_row(flow, at + 1, are_keys);
	else if (has_word(flow, at, "values"))
	{
		for (at++; has_word(flow, at, "("); at = close + (has_word(flow, close + 1, ",") ? 2 : 1))
		{
			close = snowflake_convert_find_close(flow->source, at);
			follow_row(flow, at + 1, are_keys);
		}
	}
}

/*
 * The argument that a value of a call is, by its number or its name.
 */
static const SnowflakeArgument *
find_argument(const Flow *flow, const SnowflakeFunction *called, int at, int number)
{
	bool		is_named = has_word(flow, at + 1, "=>") || has_word(flow, at + 1, ":=");
	ListCell   *cell;

	foreach(cell, called->arguments)
	{
		const SnowflakeArgument *argument = lfirst(cell);

		if (argument->mode == PROARGMODE_OUT || argument->mode == PROARGMODE_TABLE)
			continue;
		if (is_named ? has_word(flow, at, argument->name) : number-- == 0)
			return argument;
	}
	return NULL;
}

/*
 * The values that a call passes to a function.
 */
static void
follow_arguments(Flow *flow, const SnowflakeFunction *called, int open)
{
	int			close = snowflake_convert_find_close(flow->source, open);
	int			number = 0;

	for (int at = open + 1; at < close; at++)
	{
		const SnowflakeArgument *argument = find_argument(flow, called, at, number++);
		int			end;
		Value		value;

		if (has_word(flow, at + 1, "=>") || has_word(flow, at + 1, ":="))
			at += 2;
		value = read_value(flow, at);
		end = snowflake_convert_next_item(flow->source, at);
		if (argument != NULL && argument->variable != NULL && value.end == end)
		{
			Value		parameter = {
				.is_key = argument->variable->holds_key,
				.variable = argument->variable
			};

			join_values(flow, &value, &parameter);
		}
		at = end;
	}
}

static void
follow_call(Flow *flow, int at)
{
	ListCell   *cell;

	if (!flow->source->words[at].is_name || !has_word(flow, at + 1, "("))
		return;
	foreach(cell, flow->functions)
	{
		const SnowflakeFunction *called = lfirst(cell);

		if (strcmp(called->name, flow->source->words[at].text) == 0)
			follow_arguments(flow, called, at + 1);
	}
}

/*
 * What holds the result of a function: its columns, or itself.
 */
static List *
result_variables(const SnowflakeFunction *function)
{
	List	   *variables = NIL;
	ListCell   *cell;

	foreach(cell, function->arguments)
	{
		const SnowflakeArgument *argument = lfirst(cell);

		if (argument->mode == PROARGMODE_OUT || argument->mode == PROARGMODE_TABLE ||
			argument->mode == PROARGMODE_INOUT)
			variables = lappend(variables, argument->variable);
	}
	return variables != NIL ? variables : list_make1(function->result);
}

/*
 * The last query of a function in SQL, which may have others in WITH.
 */
static void
follow_last_query(Flow *flow, int at)
{
	bool		is_query = has_word(flow, at, "select") &&
		(at == 0 || has_word(flow, at - 1, ";") || has_word(flow, at - 1, ")"));

	if (!flow->function->is_sql || !(is_query || has_word(flow, at, "returning")))
		return;
	for (int next = at + 1; next < flow->source->count - 2; next++)
	{
		if (has_word(flow, next, ";"))
			return;
	}
	follow_items(flow, at + 1, result_variables(flow->function));
}

/*
 * The word with which the items of a query begin: behind SELECT, or RETURNING of a
 * statement that has it; -1 if there is none.
 */
static int
find_items(const Flow *flow, int at)
{
	int			items = -1;

	while (has_word(flow, at, "("))
		at++;
	for (; at < flow->source->count - 1 && !has_word(flow, at, ";"); at++)
	{
		if (has_word(flow, at, "("))
			at = snowflake_convert_find_close(flow->source, at);
		else if (has_word(flow, at, "returning") ||
				 (items < 0 && has_word(flow, at, "select")))
			items = at + 1;
	}
	return items;
}

/*
 * RETURN and RETURN QUERY
 */
static void
follow_return(Flow *flow, int at)
{
	const List *results;

	if (flow->function->is_sql || !has_word(flow, at++, "return"))
		return;
	results = result_variables(flow->function);
	if (has_word(flow, at, "query"))
	{
		at = find_items(flow, at + 1);
		if (at >= 0)
			follow_items(flow, at, results);
	}
	else if (flow->function->result != NULL)
		follow_items(flow, has_word(flow, at, "next") ? at + 1 : at, results);
}

/*
 * Is a name that of a key's column, perhaps with a prefix such as p_?
 */
static bool
has_key_name(const Flow *flow, const char *name)
{
	static const char *const prefixes[] = {"p_", "v_", "in_", "i_", "l_", "new_", "old_", "_"};

	if (snowflake_convert_has_name(flow->key_names, name))
		return true;
	for (size_t i = 0; i < lengthof(prefixes); i++)
	{
		size_t		length = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], length) == 0 &&
			snowflake_convert_has_name(flow->key_names, name + length))
			return true;
	}
	return false;
}

static void
follow_names(Flow *flow)
{
	ListCell   *cell;

	foreach(cell, flow->function->variables)
	{
		SnowflakeVariable *variable = lfirst(cell);
		ListCell   *name;

		foreach(name, variable->names)
		{
			if (flow->function->uses_tables && has_key_name(flow, lfirst(name)))
				mark(flow, variable);
		}
	}
}

static void
follow_function(Flow *flow, const SnowflakeFunction *function)
{
	flow->function = function;
	flow->source = &function->source;
	follow_names(flow);
	for (int at = 0; at < flow->source->count - 1; at++)
	{
		CHECK_FOR_INTERRUPTS();
		follow_operator(flow, at);
		follow_into(flow, at);
		follow_for(flow, at);
		follow_insert(flow, at);
		follow_call(flow, at);
		follow_return(flow, at);
		follow_last_query(flow, at);
	}
}

/*
 * Mark what holds keys.
 */
void
snowflake_convert_follow_keys(const List *functions, const List *key_names)
{
	Flow		flow = {.functions = functions,.key_names = key_names};

	do
	{
		ListCell   *cell;

		flow.found = false;
		foreach(cell, functions)
			follow_function(&flow, lfirst(cell));
	} while (flow.found);
}

/*
 * The words that are types of casts of keys to integers.
 */
List *
snowflake_convert_find_casts(const SnowflakeFunction *function, const List *functions,
							 const List *key_names)
{
	Flow		flow = {.functions = functions,.key_names = key_names,
	.function = function,.source = &function->source};
	List	   *casts = NIL;

	for (int at = 0; at < flow.source->count - 1; at++)
	{
		Value		value = read_value(&flow, at);

		CHECK_FOR_INTERRUPTS();
		if (!value.is_key)
			continue;
		if (has_word(&flow, value.end_before_cast, "::") &&
			snowflake_convert_is_integer(flow.source, value.end_before_cast + 1))
			casts = list_append_unique_int(casts, value.end_before_cast + 1);
		if (has_word(&flow, at, "cast") &&
			snowflake_convert_is_integer(flow.source, value.end_before_cast - 2))
			casts = list_append_unique_int(casts, value.end_before_cast - 2);
	}
	return casts;
}
