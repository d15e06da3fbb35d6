/*-------------------------------------------------------------------------
 *
 * functions.c
 *	  Functions that hold keys in integers, and how they change.
 *
 * A conversion gives them bigint in the place of integer and smallint.  Where that is a
 * variable or a cast, the function is replaced.  A function with other parameters or
 * another result is another function, so it is dropped, and created with the owner,
 * privileges and comment that it had.  That is not possible if something depends on it
 * that does not come back.
 *
 * The queries say which functions are looked at, and key_flow.c what of them holds keys.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "parser/parse_func.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "convert/functions.h"
#include "convert/key_flow.h"
#include "convert/rows.h"
#include "convert/source.h"
#include "convert/subtransaction.h"
#include "queries/functions.sql.h"
#include "shared/compat.h"

/* What is done to functions. */
typedef struct Changes
{
	const SnowflakeConversion *conversion;
	List	   *functions;
	List	   *key_names;
	List	   *dropped;		/* OIDs */
	List	   *created;		/* these, as they are called afterwards */
	List	   *changed;		/* these, and others that are replaced */
	List	   *hidden;			/* of these, which calls with integers lose */
	List	   *kept;			/* those that hold keys, but cannot be changed */
	List	   *statements;
} Changes;

/* What snowflake_convert_do() has as its work: read the words. */
static bool
read_source(void *argument)
{
	SnowflakeFunction *function = argument;

	snowflake_convert_read_source(&function->source,
								  snowflake_convert_text(function->row, "source"));
	return true;
}

static SnowflakeVariable *
make_variable(int64 number_type)
{
	SnowflakeVariable *variable;

	if (number_type == 0)
		return NULL;
	variable = palloc0(sizeof(SnowflakeVariable));
	variable->is_integer = number_type == 1;
	variable->type_at = -1;
	variable->to = PG_INT32_MAX;
	return variable;
}

static void
add_argument(SnowflakeFunction *function, char **row)
{
	SnowflakeArgument *argument = palloc0(sizeof(SnowflakeArgument));

	argument->mode = snowflake_convert_text(row, "mode")[0];
	argument->name = snowflake_convert_text(row, "name");
	argument->quoted = snowflake_convert_text(row, "quoted");
	argument->type = snowflake_convert_text(row, "type");
	argument->type_oid = snowflake_convert_oid(row, "type_oid");
	argument->default_value = snowflake_convert_text(row, "default");
	argument->variable = make_variable(snowflake_convert_number(row, "number_type"));
	function->arguments = lappend(function->arguments, argument);
	if (argument->variable == NULL)
		return;
	argument->variable->names = list_make1(psprintf("$%d", list_length(function->arguments)));
	if (argument->name[0] != '\0')
		argument->variable->names = lappend(argument->variable->names, (char *) argument->name);
	function->variables = lappend(function->variables, argument->variable);
	/* The only column of a result is the result. */
	if (function->result != NULL &&
		(argument->mode == PROARGMODE_OUT || argument->mode == PROARGMODE_INOUT))
		function->result = argument->variable;
}

static void
add_function(Changes *changes, char **row)
{
	SnowflakeFunction *function = palloc0(sizeof(SnowflakeFunction));

	/* It may have been dropped since the snapshot. */
	if (snowflake_convert_text(row, "tag") == NULL)
		return;
	function->row = row;
	function->oid = snowflake_convert_oid(row, "oid");
	function->name = snowflake_convert_text(row, "name");
	function->is_sql = strcmp(snowflake_convert_text(row, "language"), "sql") == 0;
	function->uses_tables = snowflake_convert_flag(row, "uses");
	function->result = make_variable(snowflake_convert_number(row, "result_type"));
	if (snowflake_convert_try(read_source, function) == NULL)
		changes->functions = lappend(changes->functions, function);
}

static void
find_functions(Changes *changes)
{
	ListCell   *cell;
	ListCell   *function;

	foreach(cell, snowflake_convert_ask(changes->conversion, sql_functions))
		add_function(changes, lfirst(cell));
	foreach(cell, snowflake_convert_ask(changes->conversion, sql_function_arguments))
	{
		Oid			oid = snowflake_convert_oid(lfirst(cell), "function");

		CHECK_FOR_INTERRUPTS();
		foreach(function, changes->functions)
		{
			if (((SnowflakeFunction *) lfirst(function))->oid == oid)
				add_argument(lfirst(function), lfirst(cell));
		}
	}
	foreach(function, changes->functions)
	{
		if (!((SnowflakeFunction *) lfirst(function))->is_sql)
			snowflake_convert_find_variables(lfirst(function));
	}
}

/*
 * Does an integer hold a key?
 */
static bool
is_widened(const SnowflakeVariable *variable)
{
	return variable != NULL && variable->is_integer && variable->holds_key;
}

static bool
is_input(const SnowflakeArgument *argument)
{
	return argument->mode != PROARGMODE_OUT && argument->mode != PROARGMODE_TABLE;
}

static const char *
type_of(const SnowflakeArgument *argument)
{
	return is_widened(argument->variable) ? "bigint" : argument->type;
}

/*
 * The words of the body that become bigint.
 */
static List *
find_words(const Changes *changes, const SnowflakeFunction *function)
{
	List	   *words = snowflake_convert_find_casts(function, changes->functions,
													 changes->key_names);
	ListCell   *cell;

	foreach(cell, function->variables)
	{
		const SnowflakeVariable *variable = lfirst(cell);

		if (is_widened(variable) && variable->type_at >= 0)
			words = list_append_unique_int(words, variable->type_at);
	}
	list_sort(words, list_int_cmp);
	return words;
}

static char *
new_body(const SnowflakeFunction *function, const List *words)
{
	const SnowflakeSource *source = &function->source;
	StringInfoData body;
	int			copied = 0;
	ListCell   *cell;

	initStringInfo(&body);
	foreach(cell, words)
	{
		const SnowflakeWord *word = &source->words[lfirst_int(cell)];

		appendBinaryStringInfo(&body, source->text +copied, word->start - copied);
		appendStringInfoString(&body, "bigint");
		copied = word->start + word->length;
	}
	appendStringInfoString(&body, source->text +copied);
	return body.data;
}

/*
 * The arguments of a mode or another, as CREATE FUNCTION has them; or the types alone,
 * by which others name the function.
 */
static char *
list_arguments(const SnowflakeFunction *function, bool of_table, bool types_only)
{
	StringInfoData list;
	ListCell   *cell;

	initStringInfo(&list);
	foreach(cell, function->arguments)
	{
		const SnowflakeArgument *argument = lfirst(cell);

		if ((argument->mode == PROARGMODE_TABLE) != of_table ||
			(types_only && !is_input(argument)))
			continue;
		if (list.len > 0)
			appendStringInfoString(&list, ", ");
		if (!types_only)
			appendStringInfo(&list, "%s%s%s",
							 argument->mode == PROARGMODE_OUT ? "OUT " :
							 argument->mode == PROARGMODE_INOUT ? "INOUT " :
							 argument->mode == PROARGMODE_VARIADIC ? "VARIADIC " : "",
							 argument->name[0] == '\0' ? "" : argument->quoted,
							 argument->name[0] == '\0' ? "" : " ");
		appendStringInfoString(&list, type_of(argument));
		if (!types_only && argument->default_value != NULL)
			appendStringInfo(&list, " DEFAULT %s", argument->default_value);
	}
	return list.data;
}

/*
 * The clause RETURNS, which a procedure does not have; other columns of a result than
 * those of a table say it themselves.
 */
static char *
returns_clause(const SnowflakeFunction *function)
{
	const char *set_of = snowflake_convert_text(function->row, "set_of");
	const char *result = snowflake_convert_text(function->row, "result");
	char	   *columns = list_arguments(function, true, false);
	int			noutputs = 0;
	ListCell   *cell;

	if (result == NULL)
		return "";
	if (columns[0] != '\0')
		return psprintf("\n RETURNS TABLE(%s)", columns);
	foreach(cell, function->arguments)
	{
		const SnowflakeArgument *argument = lfirst(cell);

		if (argument->mode != PROARGMODE_OUT && argument->mode != PROARGMODE_INOUT)
			continue;
		if (++noutputs == 1 && is_widened(argument->variable))
			result = psprintf("%sbigint", set_of);
	}
	if (noutputs > 1)
		result = snowflake_convert_text(function->row, "result");
	else if (noutputs == 0 && is_widened(function->result))
		result = psprintf("%sbigint", set_of);
	return psprintf("\n RETURNS %s", result);
}

static char *
new_signature(const SnowflakeFunction *function)
{
	return psprintf("%s(%s)", snowflake_convert_text(function->row, "qualified"),
					list_arguments(function, false, true));
}

/*
 * Is there another function with the new parameters, or will there be one?
 */
static bool
is_taken(const Changes *changes, const SnowflakeFunction *function)
{
	const char *signature = new_signature(function);
	Oid			types[FUNC_MAX_ARGS];
	int			ntypes = 0;
	ListCell   *cell;
	Oid			other;

	foreach(cell, changes->created)
	{
		if (strcmp(lfirst(cell), signature) == 0)
			return true;
	}
	foreach(cell, function->arguments)
	{
		const SnowflakeArgument *argument = lfirst(cell);

		if (is_input(argument))
			types[ntypes++] = is_widened(argument->variable) ? INT8OID : argument->type_oid;
	}
	other = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
							CStringGetDatum(function->name),
							PointerGetDatum(buildoidvector(types, ntypes)),
							ObjectIdGetDatum(snowflake_convert_oid(function->row, "schema")));
	return OidIsValid(other) && other != function->oid;
}

/*
 * Give the arguments of a candidate for a call the types that they will have.
 */
static void
widen_candidate(const Changes *changes, FuncCandidateList candidate)
{
	ListCell   *cell;

	foreach(cell, changes->functions)
	{
		const SnowflakeFunction *function = lfirst(cell);
		int			n = 0;
		ListCell   *argument;

		if (function->oid != candidate->oid || list_member_oid(changes->kept, function->oid) ||
			!snowflake_convert_flag(function->row, "may_drop"))
			continue;
		foreach(argument, function->arguments)
		{
			if (!is_input(lfirst(argument)))
				continue;
			if (n < candidate->nargs &&
				is_widened(((SnowflakeArgument *) lfirst(argument))->variable))
				candidate->args[n] = INT8OID;
			n++;
		}
	}
}

/*
 * Give all candidates these types, but those that would be like the function, which are
 * not changed.
 */
static void
widen_candidates(const Changes *changes, FuncCandidateList candidates,
				 FuncCandidateList own, int nargs)
{
	Oid			types[FUNC_MAX_ARGS];

	widen_candidate(changes, own);
	for (; candidates != NULL; candidates = candidates->next)
	{
		if (candidates == own)
			continue;
		memcpy(types, candidates->args, nargs * sizeof(Oid));
		widen_candidate(changes, candidates);
		if (memcmp(candidates->args, own->args, nargs * sizeof(Oid)) == 0)
			memcpy(candidates->args, types, nargs * sizeof(Oid));
	}
}

/*
 * Would calls with arguments of the present types find a function, and no longer do?
 * Another one of the name may be preferred, such as f(double precision), or as good.
 */
static bool
loses_calls(const Changes *changes, const SnowflakeFunction *function, const Oid *types,
			int nargs)
{
	char	   *schema = get_namespace_name(snowflake_convert_oid(function->row, "schema"));
	List	   *name = list_make2(makeString(schema), makeString((char *) function->name));
	FuncCandidateList all = snowflake_function_candidates(name, nargs);
	FuncCandidateList own = all;
	FuncCandidateList best;

	while (own != NULL && memcmp(own->args, types, nargs * sizeof(Oid)) != 0)
		own = own->next;
	if (own == NULL || own->oid != function->oid)
		return false;
	widen_candidates(changes, all, own, nargs);
	if (func_match_argtypes(nargs, (Oid *) types, all, &best) > 1)
		best = func_select_candidate(nargs, (Oid *) types, best);
	return best == NULL || best->oid != function->oid;
}

/*
 * Would calls of a function find another one, with the arguments that have no default,
 * or more of them?
 */
static bool
is_hidden(const Changes *changes, const SnowflakeFunction *function)
{
	Oid			types[FUNC_MAX_ARGS];
	int			nargs = 0;
	ListCell   *cell;

	foreach(cell, function->arguments)
	{
		const SnowflakeArgument *argument = lfirst(cell);

		if (!is_input(argument))
			continue;
		if (nargs > 0 && argument->default_value != NULL &&
			loses_calls(changes, function, types, nargs))
			return true;
		types[nargs++] = argument->type_oid;
	}
	return nargs > 0 && loses_calls(changes, function, types, nargs);
}

/*
 * Drop a function, and create it with other parameters or another result, and with what
 * it has beside its definition.
 */
static void
create_again(Changes *changes, const SnowflakeFunction *function, const char *body)
{
	char	  **row = function->row;
	const char *kind = snowflake_convert_text(row, "kind");
	const char *name = snowflake_convert_text(row, "qualified");
	const char *tag = snowflake_convert_text(row, "tag");
	char	   *signature = new_signature(function);
	ListCell   *cell;

	changes->statements = lappend(changes->statements,
								  psprintf("DROP %s %s", kind,
										   snowflake_convert_text(row, "signature")));
	changes->statements = lappend(changes->statements,
								  psprintf("CREATE %s %s(%s)%s%sAS %s%s%s", kind, name,
										   list_arguments(function, false, false),
										   returns_clause(function),
										   snowflake_convert_text(row, "options"),
										   tag, body, tag));
	foreach(cell, snowflake_convert_ask_of(changes->conversion, function->oid,
										   sql_function_properties))
		changes->statements = lappend(changes->statements,
									  psprintf("%s%s%s",
											   snowflake_convert_text(lfirst(cell), "before"),
											   signature,
											   snowflake_convert_text(lfirst(cell), "behind")));
	changes->dropped = lappend_oid(changes->dropped, function->oid);
	changes->created = lappend(changes->created, signature);
}

static void
replace(Changes *changes, const SnowflakeFunction *function, const char *body)
{
	const char *tag = snowflake_convert_text(function->row, "tag");

	changes->statements = lappend(changes->statements,
								  psprintf("%sAS %s%s%s",
										   snowflake_convert_text(function->row, "definition"),
										   tag, body, tag));
}

/*
 * Have a function change, if something of it does.
 */
static void
change_function(Changes *changes, const SnowflakeFunction *function)
{
	List	   *words = find_words(changes, function);
	bool		is_other = is_widened(function->result);
	ListCell   *cell;

	foreach(cell, function->arguments)
		is_other |= is_widened(((SnowflakeArgument *) lfirst(cell))->variable);
	if (!is_other && words == NIL)
		return;
	if (is_other ? !snowflake_convert_flag(function->row, "may_drop") || is_taken(changes, function) :
		!snowflake_convert_flag(function->row, "may_replace"))
	{
		changes->kept = lappend_oid(changes->kept, function->oid);
		return;
	}
	changes->changed = lappend_oid(changes->changed, function->oid);
	if (is_other && is_hidden(changes, function))
		changes->hidden = lappend_oid(changes->hidden, function->oid);
	if (is_other)
		create_again(changes, function, new_body(function, words));
	else
		replace(changes, function, new_body(function, words));
}

static Datum
array_of_texts(const List *texts)
{
	Datum	   *values = palloc_array(Datum, list_length(texts) + 1);

	for (int i = 0; i < list_length(texts); i++)
		values[i] = CStringGetTextDatum(list_nth(texts, i));
	return PointerGetDatum(construct_array(values, list_length(texts), TEXTOID, -1, false,
										   TYPALIGN_INT));
}

/*
 * Find the functions that hold keys in integers, and what to do about them.
 */
void
snowflake_convert_find_functions(SnowflakeConversion *conversion)
{
	Changes		changes = {.conversion = conversion};
	ListCell   *cell;

	changes.key_names = snowflake_convert_texts(snowflake_convert_ask(conversion, sql_key_names));
	find_functions(&changes);
	snowflake_convert_follow_keys(changes.functions, changes.key_names);
	foreach(cell, changes.functions)
		change_function(&changes, lfirst(cell));
	conversion->functions[0] = snowflake_convert_array_of_oids(changes.dropped);
	conversion->functions[1] = snowflake_convert_array_of_oids(changes.changed);
	conversion->functions[2] = snowflake_convert_array_of_oids(changes.kept);
	conversion->functions[3] = array_of_texts(changes.statements);
	conversion->hidden_functions = snowflake_convert_array_of_oids(changes.hidden);
	conversion->functions_change = changes.changed != NIL;
}
