/*-------------------------------------------------------------------------
 *
 * queries.c
 *	  Queries of the catalogs for snowflake_convert(), and the one that finds
 *	  the columns that must be converted together.
 *
 * The catalogs are queried with SQL, because a question such as "which columns
 * reference this one, through which others" is a join.  Names in the queries
 * are looked up in pg_catalog only.  The queries are not in functions of the
 * extension, because the owner of the table might not have the privilege to
 * call them.
 *
 * Planning these joins takes several times as long as running them, and an
 * online conversion asks some of them for each partition, and others each time
 * that it looks whether it can continue, some while it has tables locked.  So that
 * these have one text, what they are about is a parameter, and their plans are
 * kept until the call ends.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/queries.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "convert/catalog/queries.h"
#include "catalog/queries/texts.sql.h"

/*
 * What is the source of IDs, as users specify it.
 */
const char *
snowflake_convert_kind_name(SnowflakeConvertKind kind)
{
	static const char *const names[SNOWFLAKE_CONVERT_KINDS] = {
		[SNOWFLAKE_CONVERT_GENERATOR] = "generator",
		[SNOWFLAKE_CONVERT_SNOWFLAKE] = "snowflake",
		[SNOWFLAKE_CONVERT_RANGE] = "range",
		[SNOWFLAKE_CONVERT_LOCAL] = "local",
	};

	return names[kind];
}

/*
 * A member of each struct of a list, for a parameter of queries.
 */
static Datum
array_of(const List *structs, Oid type, size_t member)
{
	int			n = list_length(structs);
	Datum	   *values = palloc_array(Datum, n);
	int16		length;
	bool		by_value;
	char		align;

	get_typlenbyvalalign(type, &length, &by_value, &align);
	for (int i = 0; i < n; i++)
	{
		const char *value = (const char *) list_nth(structs, i) + member;

		values[i] = type == TEXTOID ? CStringGetTextDatum(*(const char *const *) value) :
			fetch_att(value, by_value, length);
	}
	return PointerGetDatum(construct_array(values, n, type, length, by_value, align));
}

static Datum
array_of_oids(const List *oids)
{
	List	   *pointers = NIL;
	ListCell   *cell;

	foreach(cell, oids)
		pointers = lappend(pointers, &lfirst_oid(cell));
	return array_of(pointers, OIDOID, 0);
}

/* A query that is put together, and its plan, if plans are kept. */
typedef struct Asked
{
	SnowflakeQuery query;
	char	   *text;
	int			nparameters;
	uint8		parameters[SNOWFLAKE_PARAMETERS];	/* that $1, $2, ... are */
	SPIPlanPtr	plan;
} Asked;

/* There are some dozens of them.  The context is NULL if plans are not kept. */
static List *kept;
static MemoryContext plans_context;

/*
 * MemoryContextCallbackFunction: forget the plans.
 */
static void
free_plans(void *argument)
{
	ListCell   *cell;

	foreach(cell, kept)
	{
		Asked	   *asked = lfirst(cell);

		if (asked->plan != NULL)
			SPI_freeplan(asked->plan);
	}
	kept = NIL;
	plans_context = NULL;
}

/*
 * Keep the plans of queries until a memory context is reset or deleted.  A
 * session has one online conversion at a time (check_outermost() in
 * online/functions.c).
 */
void
snowflake_convert_keep_plans(MemoryContext context)
{
	MemoryContextCallback *callback = MemoryContextAllocZero(context, sizeof(*callback));

	Assert(plans_context == NULL);
	callback->func = free_plans;
	MemoryContextRegisterResetCallback(context, callback);
	plans_context = context;
}

/*
 * The number that a parameter has in a query: these are in the order in which they
 * are found.
 */
static int
number_of(Asked *asked, uint8 parameter)
{
	for (int i = 0; i < asked->nparameters; i++)
	{
		if (asked->parameters[i] == parameter)
			return i + 1;
	}
	asked->parameters[asked->nparameters++] = parameter;
	return asked->nparameters;
}

/*
 * Bytes that generate.awk puts into texts.  After the mark of a parameter, or of a snippet's
 * argument, comes its number.  After that of a piece, which is a snippet or CTE, come its number,
 * and its arguments, each with its end.  No piece has one of these as its number.
 */
enum
{
	mark_parameter = 1,
	mark_piece,
	end_of_argument,
	end_of_arguments,
	mark_argument,
};

/*
 * A text: pieces, by their numbers, and behind them queries.  They are one constant,
 * because each address in the library would take 24 bytes more.
 */
static const char *
text_of(int number)
{
	const char *found = all_texts;

	while (number-- > 0)
		found += strlen(found) + 1;
	return found;
}

/*
 * Add a text up to its end, or to that of an argument.  Returns what follows.
 */
static const char *
append_text(StringInfo query, Asked *asked, const char *next, const List *arguments)
{
	static const char marks[] = {mark_parameter, mark_piece, end_of_argument, mark_argument, 0};

	for (;;)
	{
		size_t		length = strcspn(next, marks);
		uint8		mark = next[length];
		uint8		number;
		List	   *values = NIL;

		appendBinaryStringInfo(query, next, length);
		next += length + 1;
		if (mark == 0 || mark == end_of_argument)
			return next;

		number = *next++;
		if (mark == mark_parameter)
			appendStringInfo(query, "$%d", number_of(asked, number));
		else if (mark == mark_argument)
			appendStringInfoString(query, list_nth(arguments, number - 1));
		else
		{
			while (*next != end_of_arguments)
			{
				StringInfoData value;

				initStringInfo(&value);
				next = append_text(&value, asked, next, arguments);
				values = lappend(values, value.data);
			}
			next++;
			append_text(query, asked, text_of(number - first_piece), values);
		}
	}
}

/*
 * Put a query together.  Its text begins with the numbers of the CTEs that it uses.
 */
static Asked *
assemble(SnowflakeQuery query)
{
	Asked	   *asked = palloc0_object(Asked);
	const char *rest = text_of(npieces + query);
	const char *with = "WITH RECURSIVE ";
	StringInfoData text;

	asked->query = query;
	initStringInfo(&text);
	for (; *rest != end_of_arguments; rest++)
	{
		appendStringInfoString(&text, with);
		append_text(&text, asked, text_of((uint8) *rest - first_piece), NIL);
		with = ",\n";
	}
	append_text(&text, asked, rest + 1, NIL);
	asked->text = text.data;

	return asked;
}

/*
 * The same, if it is not kept yet.
 */
static Asked *
assemble_or_keep(SnowflakeQuery query)
{
	MemoryContext old;
	ListCell   *cell;

	if (plans_context == NULL)
		return assemble(query);
	foreach(cell, kept)
	{
		Asked	   *asked = lfirst(cell);

		if (asked->query == query)
			return asked;
	}
	old = MemoryContextSwitchTo(plans_context);
	kept = lappend(kept, assemble(query));
	MemoryContextSwitchTo(old);
	return llast(kept);
}

/*
 * The plan of a query, for all values of its parameters.  The server makes it
 * again if something changed on which it depends.
 */
static void
prepare(Asked *asked, int ntypes, Oid *types)
{
	SPIPlanPtr	plan = SPI_prepare_cursor(asked->text, ntypes, types, CURSOR_OPT_GENERIC_PLAN);

	if (plan == NULL)
		elog(ERROR, "query cannot be prepared: %s", asked->text);
	SPI_keepplan(plan);
	asked->plan = plan;
}

/*
 * The value of a parameter; 0 for an array that was not found yet, which is null.
 */
static Datum
value_of(SnowflakeParameter parameter, const SnowflakeConversion *conversion, Oid object)
{
	switch (parameter)
	{
		case parameter_tables:
			return array_of(conversion->keys, OIDOID, offsetof(SnowflakeKey, relid));
		case parameter_columns:
			return array_of(conversion->keys, INT2OID, offsetof(SnowflakeKey, attnum));
		case parameter_generators:
			return array_of(conversion->keys, OIDOID, offsetof(SnowflakeKey, generator));
		case parameter_set_default:
			return array_of(conversion->keys, BOOLOID, offsetof(SnowflakeKey, set_default));
		case parameter_keeps_sequences:
			return array_of(conversion->keys, BOOLOID, offsetof(SnowflakeKey, keeps_sequences));
		case parameter_sequences:
			return array_of_oids(conversion->sequences);
		case parameter_other_tables:
			return array_of(conversion->widened, OIDOID, offsetof(SnowflakeColumn, relid));
		case parameter_other_columns:
			return array_of(conversion->widened, INT2OID, offsetof(SnowflakeColumn, attnum));
		case parameter_found_tables:
			return array_of(conversion->found, OIDOID, offsetof(SnowflakeColumn, relid));
		case parameter_found_columns:
			return array_of(conversion->found, INT2OID, offsetof(SnowflakeColumn, attnum));
		case parameter_found_verdicts:
			return array_of(conversion->found, TEXTOID, offsetof(SnowflakeColumn, verdict));
		case parameter_found_reasons:
			return array_of(conversion->found, TEXTOID, offsetof(SnowflakeColumn, reason));
		case parameter_kind:
			return CStringGetTextDatum(snowflake_convert_kind_name(conversion->kind));
		case parameter_max_increment:
			return Int64GetDatum(conversion->max_increment);
		case parameter_schema:
			return ObjectIdGetDatum(conversion->schema);
		case parameter_object:
			return ObjectIdGetDatum(object);
		case parameter_search_path:
			return CStringGetTextDatum(conversion->search_path == NULL ? "" :
									   conversion->search_path);
		case parameter_online:
			return BoolGetDatum(conversion->online);
		case parameter_again:
			return BoolGetDatum(conversion->again);
		default:
			return conversion->arrays[parameter];
	}
}

/*
 * Run a query, by the plan that is kept of it, if plans are kept: with the parameters that it
 * names, or with the texts.
 */
static void
run(SnowflakeQuery query, const SnowflakeConversion *conversion, Oid object, const List *texts)
{
	Asked	   *asked = assemble_or_keep(query);
	int			n = asked->nparameters + list_length(texts);
	Oid		   *types = palloc_array(Oid, n);
	Datum	   *values = palloc_array(Datum, n);
	char	   *nulls = palloc_array(char, n);
	int			rc;

	Assert(asked->nparameters == 0 || texts == NIL);
	for (int i = 0; i < asked->nparameters; i++)
	{
		types[i] = parameter_types[asked->parameters[i]];
		values[i] = value_of(asked->parameters[i], conversion, object);
		nulls[i] = values[i] == (Datum) 0 && type_is_array(types[i]) ? 'n' : ' ';
	}
	for (int i = asked->nparameters; i < n; i++)
	{
		types[i] = TEXTOID;
		values[i] = CStringGetTextDatum(list_nth(texts, i));
		nulls[i] = ' ';
	}

	if (plans_context != NULL && asked->plan == NULL)
		prepare(asked, n, types);
	if (asked->plan != NULL)
		rc = SPI_execute_plan(asked->plan, values, nulls, false, 0);
	else
		rc = SPI_execute_with_args(asked->text, n, types, values, nulls, false, 0);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "query failed: %s", asked->text);
}

/* A row of a query's result: texts, NULL for a null. */
struct SnowflakeRow
{
	TupleDesc	desc;
	char	   *values[FLEXIBLE_ARRAY_MEMBER];
};

/*
 * The rows of the query that was run last, if it has returned any.
 */
static List *
rows_of_result(void)
{
	TupleDesc	desc;
	List	   *rows = NIL;

	if (SPI_tuptable == NULL)
		return NIL;
	desc = CreateTupleDescCopy(SPI_tuptable->tupdesc);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		SnowflakeRow *row = palloc(offsetof(SnowflakeRow, values) + desc->natts * sizeof(char *));

		row->desc = desc;
		for (int j = 0; j < desc->natts; j++)
			row->values[j] = SPI_getvalue(SPI_tuptable->vals[i], desc, j + 1);
		rows = lappend(rows, row);
	}
	return rows;
}

char *
snowflake_convert_text(const SnowflakeRow *row, const char *column)
{
	int			number = SPI_fnumber(row->desc, column);

	if (number <= 0)
		elog(ERROR, "the result of a query has no column \"%s\"", column);
	return row->values[number - 1];
}

/*
 * The value of a column that has an OID, a number, or 1 for true; for a null it
 * is InvalidOid, 0, or false.
 */
Oid
snowflake_convert_oid(const SnowflakeRow *row, const char *column)
{
	char	   *text = snowflake_convert_text(row, column);

	return text == NULL ? InvalidOid : atooid(text);
}

int64
snowflake_convert_number(const SnowflakeRow *row, const char *column)
{
	char	   *text = snowflake_convert_text(row, column);

	return text == NULL ? 0 : pg_strtoint64(text);
}

bool
snowflake_convert_flag(const SnowflakeRow *row, const char *column)
{
	return snowflake_convert_number(row, column) == 1;
}

/*
 * The first value of the first row.  NULL if there is no row.
 */
char *
snowflake_convert_first(const List *rows)
{
	return rows == NIL ? NULL : ((SnowflakeRow *) linitial(rows))->values[0];
}

/*
 * The first value of each row.
 */
List *
snowflake_convert_texts(const List *rows)
{
	List	   *texts = NIL;
	ListCell   *cell;

	foreach(cell, rows)
		texts = lappend(texts, ((SnowflakeRow *) lfirst(cell))->values[0]);
	return texts;
}

/*
 * The same, as OIDs.
 */
List *
snowflake_convert_oids(const List *rows)
{
	List	   *oids = NIL;
	ListCell   *cell;

	foreach(cell, rows)
		oids = lappend_oid(oids, atooid(((SnowflakeRow *) lfirst(cell))->values[0]));
	return oids;
}

/*
 * Keep the arrays that a query has returned for its parameters, from one on.
 */
static void
keep_arrays(SnowflakeConversion *conversion, SnowflakeParameter first)
{
	TupleDesc	desc = SPI_tuptable->tupdesc;

	for (int i = 0; i < desc->natts; i++)
	{
		bool		isnull;
		Datum		value = SPI_getbinval(SPI_tuptable->vals[0], desc, i + 1, &isnull);

		/* That is memory of SPI, which ends with a subtransaction. */
		conversion->arrays[first + i] = isnull ? (Datum) 0 : datumCopy(value, false, -1);
	}
}

/*
 * Forget what was found of a conversion, to find it anew.
 */
void
snowflake_convert_forget(SnowflakeConversion *conversion)
{
	conversion->keys = NIL;
	conversion->sequences = NIL;
	conversion->widened = NIL;
	conversion->found = NIL;
	conversion->altered = NIL;
	conversion->views = NIL;
	memset(conversion->arrays, 0, sizeof(conversion->arrays));
}

/*
 * Find the columns that must be converted together.
 */
void
snowflake_convert_find_targets(SnowflakeConversion *conversion)
{
	run(sql_walk, conversion, InvalidOid, NIL);
	keep_arrays(conversion, parameter_target_tables);
}

/*
 * The place of a column among these, or -1.
 */
int
snowflake_convert_find_target(const SnowflakeConversion *conversion, Oid relid, AttrNumber attnum)
{
	ArrayType  *relids = DatumGetArrayTypeP(conversion->arrays[parameter_target_tables]);
	ArrayType  *attnums = DatumGetArrayTypeP(conversion->arrays[parameter_target_columns]);

	for (int i = 0; i < ArrayGetNItems(ARR_NDIM(relids), ARR_DIMS(relids)); i++)
	{
		if (((Oid *) ARR_DATA_PTR(relids))[i] == relid &&
			((AttrNumber *) ARR_DATA_PTR(attnums))[i] == attnum)
			return i;
	}
	return -1;
}

/*
 * Find the sequences of the keys, and what has their names.  This takes longer
 * the more functions there are, so it is done once.
 */
void
snowflake_convert_find_sequence_names(SnowflakeConversion *conversion)
{
	run(sql_sequence_names, conversion, InvalidOid, NIL);
	keep_arrays(conversion, parameter_known_sequences);
}

/*
 * The part of a conversion that is about one table, for queries that need not
 * know the others.
 */
SnowflakeConversion
snowflake_convert_part(const SnowflakeConversion *conversion, Oid relid)
{
	SnowflakeConversion part = *conversion;

	run(sql_part, conversion, relid, NIL);
	keep_arrays(&part, parameter_target_tables);
	return part;
}

List *
snowflake_convert_ask(const SnowflakeConversion *conversion, SnowflakeQuery query)
{
	return snowflake_convert_ask_of(conversion, InvalidOid, query);
}

/*
 * Run a query about an object of a conversion, which is its parameter $object.
 */
List *
snowflake_convert_ask_of(const SnowflakeConversion *conversion, Oid object,
						 SnowflakeQuery query)
{
	run(query, conversion, object, NIL);
	return rows_of_result();
}

/*
 * Run a query that returns one column, of texts or OIDs.
 */
List *
snowflake_convert_ask_texts(const SnowflakeConversion *conversion, SnowflakeQuery query)
{
	return snowflake_convert_texts(snowflake_convert_ask(conversion, query));
}

List *
snowflake_convert_ask_oids(const SnowflakeConversion *conversion, Oid object,
						   SnowflakeQuery query)
{
	return snowflake_convert_oids(snowflake_convert_ask_of(conversion, object, query));
}

/*
 * Run a query with a list of texts as its parameters.
 */
List *
snowflake_convert_ask_with(const List *texts, SnowflakeQuery query)
{
	static const SnowflakeConversion no_conversion;

	run(query, &no_conversion, InvalidOid, texts);
	return rows_of_result();
}

/*
 * Run a statement that is not one of the sources, with a list of texts, or NULLs, as its
 * parameters.
 */
List *
snowflake_convert_run(const char *statement, const List *texts)
{
	int			n = list_length(texts);
	Oid		   *types = palloc_array(Oid, n);
	Datum	   *values = palloc_array(Datum, n);
	char	   *nulls = palloc_array(char, n);

	for (int i = 0; i < n; i++)
	{
		const char *text = list_nth(texts, i);

		types[i] = TEXTOID;
		nulls[i] = text == NULL ? 'n' : ' ';
		values[i] = text == NULL ? (Datum) 0 : CStringGetTextDatum(text);
	}
	if (SPI_execute_with_args(statement, n, types, values, nulls, false, 0) < 0)
		elog(ERROR, "statement failed: %s", statement);
	return rows_of_result();
}

/*
 * The first value of what a query returns.
 */
char *
snowflake_convert_value(const char *query)
{
	return snowflake_convert_first(snowflake_convert_run(query, NIL));
}

void
snowflake_convert_run_statements(const List *statements)
{
	ListCell   *cell;

	foreach(cell, statements)
		(void) snowflake_convert_run(lfirst(cell), NIL);
}

/*
 * Run a query with a list of texts, with all rows of system views visible.
 */
List *
snowflake_convert_ask_server(const List *texts, SnowflakeQuery query)
{
	Oid			user;
	int			sec_context;
	int			nest_level = NewGUCNestLevel();
	List	   *rows;

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	GetUserIdAndSecContext(&user, &sec_context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   sec_context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	rows = snowflake_convert_ask_with(texts, query);
	SetUserIdAndSecContext(user, sec_context);
	AtEOXact_GUC(false, nest_level);
	return rows;
}

/*
 * OIDs as such texts: one, or an array.
 */
List *
snowflake_convert_oid_parameter(Oid oid)
{
	return list_make1(psprintf("%u", oid));
}

List *
snowflake_convert_oids_parameter(const List *oids)
{
	StringInfoData array;
	ListCell   *cell;

	initStringInfo(&array);
	foreach(cell, oids)
		appendStringInfo(&array, "%c%u", array.len > 0 ? ',' : '{', lfirst_oid(cell));
	appendStringInfoString(&array, array.len > 0 ? "}" : "{}");
	return list_make1(array.data);
}
