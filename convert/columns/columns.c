/*-------------------------------------------------------------------------
 *
 * columns.c
 *	  Which columns that hold a key without a foreign key are widened.
 *
 * Most applications declare no foreign keys, or not all of them, and a column
 * that is forgotten fails with the first new ID that it gets, perhaps months
 * later.  Neither names nor values tell enough: count and size are numbers, too,
 * and every small number is in some key.  So the columns are in two groups, sure
 * and perhaps, and each has a reason that a person can judge:
 *
 * - If most of its values are in no key, a column is none of these, or perhaps, if its
 *	 name says that it holds one.
 * - Values tell, if there are several, not only small ones, and all are in one key that
 *	 has many rows, and a few are enough if the name is like that of a reference.
 * - Without values only a name that says whose key it is tells.
 * - A name of something else, such as a count, makes all of this perhaps.
 * - All others are perhaps, the likely ones first: by the name, and by the share that
 *	 they have of the rows of the table with the key.
 *
 * So what has the values of a key is reported, whatever its name.
 *
 * A smallint or integer can hold the values of a bigint key only as long as there
 * are few, so values tell only of keys that are as small.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/columns.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "storage/proc.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

#include "convert/catalog/queries.h"
#include "convert/catalog/subtransaction.h"
#include "convert/columns/columns.h"
#include "convert/columns/values.h"
#include "shared/table_owner.h"

/* By so many different values, of which one is greater, a column may hold a key. */
#define SOME_VALUES		3
#define SMALL_VALUE		20

/* How long to wait for other tables than those that are converted. */
#define MAX_WAIT_MS		100

/* A key is told from a small list of codes by having as many rows. */
#define MANY_ROWS		20

/* What the argument widen says. */
typedef struct Widen
{
	bool		names;			/* columns whose names end in id */
	bool		sure;
	bool		perhaps;
	List	   *columns;		/* lists of names, of a table and a column */
} Widen;

/* Does a column hold a key? */
typedef enum Verdict
{
	NO,
	PERHAPS,
	SURE
} Verdict;

/* What a name says, as queries/columns.sql knows it. */
typedef enum Strength
{
	SUPPLIED_KEY = -2,
	OF_SOMETHING_ELSE,
	OF_NOTHING,
	A_BIT,
	LIKE_A_REFERENCE,
	WHOSE_KEY
} Strength;

/* A column that might hold a key. */
typedef struct Column
{
	SnowflakeValues *values;
	const char *by_name;		/* what its name says, or NULL */
	const char *pair;			/* the column that names the table, or NULL */
	Strength	strength;		/* of what its name says */
	bool		is_id;			/* does its name end in id? */
	bool		is_integer;		/* can it be widened? */
	bool		is_fixed;		/* is it in a partition key? */
	int			key;			/* that it is named for; -1 if none */
	int			best;			/* the key that has most of its values, or -1 */
	Verdict		verdict;
} Column;

/* The columns of a schema. */
typedef struct Columns
{
	const SnowflakeConversion *conversion;
	List	   *columns;		/* of Column */
	int		   *nrows;			/* as snowflake_convert_look_up() returns them */
	bool		any_unread;		/* is there a key that was not read? */
	bool	   *small;			/* which keys are smallints or integers */
	bool		any_small;
	bool		of_one_key;		/* is only one table converted? */
} Columns;

/*
 * Split the argument at its commas, except for those in quotes.
 */
static List *
split_words(const char *text)
{
	List	   *words = NIL;
	const char *start = text;
	bool		quoted = false;

	for (const char *at = text;; at++)
	{
		if (*at == '"')
			quoted = !quoted;
		if (*at == '\0' || (*at == ',' && !quoted))
		{
			words = lappend(words, pnstrdup(start, at - start));
			if (*at == '\0')
				return words;
			start = at + 1;
		}
	}
}

static Widen
parse_widen(const char *text)
{
	Widen		widen = {0};
	ListCell   *cell;

	foreach(cell, split_words(text))
	{
		const char *part = lfirst(cell);
		List	   *names = part[strspn(part, " \t\n\r")] == '\0' ? list_make1(makeString("")) :
			textToQualifiedNameList(cstring_to_text(part));
		int			n = list_length(names);
		const char *word = n == 1 ? strVal(linitial(names)) : "";

		if (n == 2 || n == 3)
			widen.columns = lappend(widen.columns, names);
		else if (strcmp(word, "names") == 0)
			widen.names = true;
		else if (strcmp(word, "keys") == 0)
			widen.sure = true;
		else if (strcmp(word, "all") == 0)
			widen.sure = widen.perhaps = true;
		else if (strcmp(word, "none") != 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("unknown value \"%s\" of widen", NameListToString(names)),
					 errhint("It is none, names, keys, all, or a list of columns with their tables, such as 'keys, orders.customer'.")));
	}
	return widen;
}

/*
 * Fail if the argument widen is none that is known.
 */
void
snowflake_convert_check_widen(const char *widen)
{
	(void) parse_widen(widen);
}

static const char *
key_name(const SnowflakeConversion *conversion, int number)
{
	const SnowflakeKey *key = list_nth(conversion->keys, number);

	return quote_qualified_identifier(get_rel_name(key->relid), key->column);
}

static int
in_key(const Column *column, int key)
{
	return key < 0 ? 0 : column->values->in_key[key];
}

/*
 * Find the key that has most values of a column: among equals, the one that it is named
 * for, or that with the fewest rows.
 */
static void
find_best_key(const Columns *all, Column *column)
{
	column->best = column->key;
	for (int k = 0; k < list_length(all->conversion->keys); k++)
	{
		int			more = in_key(column, k) - in_key(column, column->best);

		if (more > 0 || (more == 0 && column->best != column->key &&
						 all->nrows[k] < all->nrows[column->best]))
			column->best = k;
	}
}

/*
 * How many of its values are in a key: those of a column beside which another one names the
 * table are in several.
 */
static int
count_found(const Column *column)
{
	return column->pair != NULL ? column->values->known : in_key(column, column->best);
}

/*
 * Are most of its values in no key that was read?
 */
static bool
is_refuted(const Column *column)
{
	return count_found(column) * 2 < column->values->count;
}

static bool
is_spread(const Column *column)
{
	const SnowflakeValues *values = column->values;

	return values->count >= SOME_VALUES && values->values[values->count - 1] > SMALL_VALUE;
}

/*
 * Do the values tell that a column holds a key, which a name other than that of something
 * else does not contradict?
 */
static bool
is_told_by_values(const Columns *all, const Column *column)
{
	int			count = column->values->count;

	if (count == 0 || count_found(column) < count || !all->small[column->best])
		return false;
	return column->strength >= LIKE_A_REFERENCE ||
		(is_spread(column) && all->nrows[column->best] >= MANY_ROWS);
}

static Verdict
judge(const Columns *all, const Column *column)
{
	bool		without_values = column->values->count == 0 ||
		(all->any_unread && is_refuted(column));

	/* Those of a key that was not read may be any values. */
	if (!without_values && is_refuted(column))
		return column->strength >= A_BIT ? PERHAPS : NO;
	if (column->strength == WHOSE_KEY ||
		(column->strength >= OF_NOTHING && is_told_by_values(all, column)))
		return SURE;
	if (without_values ?
		column->strength < (all->of_one_key || !all->any_small || !column->is_integer ?
							LIKE_A_REFERENCE : OF_SOMETHING_ELSE) :
		all->of_one_key && column->strength < A_BIT && !is_spread(column))
		return NO;
	return PERHAPS;
}

/*
 * How likely a column holds a key, to have quantities and positions come last.
 */
static double
likelihood(const Columns *all, const Column *column)
{
	int			found = in_key(column, column->best);
	double		share = found == 0 ? 0 : (double) found / all->nrows[column->best];

	return column->verdict * 1000 + column->strength * 10 + is_spread(column) * 5 + Min(share, 1);
}

static int
compare_likelihood(const ListCell *a, const ListCell *b)
{
	const SnowflakeColumn *one = lfirst(a);
	const SnowflakeColumn *other = lfirst(b);

	return (one->likelihood < other->likelihood) - (one->likelihood > other->likelihood);
}

static const char *
reason_of(const Columns *all, const Column *column)
{
	const char *by_name = column->by_name;
	const char *by_values = NULL;
	int			count = column->values->count;

	if (column->pair != NULL)
		by_values = psprintf("%s names the table", quote_identifier(column->pair));
	else if (count > 0 && in_key(column, column->best) == 0)
		by_values = psprintf(all->any_unread ?
							 "none of %d values is in a key that could be read" :
							 "none of %d values is in a key", count);
	else if (count > 0)
		by_values = psprintf("%d of %d values are in %s", in_key(column, column->best), count,
							 key_name(all->conversion, column->best));
	else if (column->verdict == PERHAPS && column->values->is_read)
		by_values = "it has no value";
	if (by_name != NULL && by_values != NULL)
		return psprintf("%s, and %s", by_name, by_values);
	if (by_name != NULL || by_values != NULL)
		return by_name != NULL ? by_name : by_values;
	return "nothing says that it does not";
}

/*
 * The columns of the schema that might hold a key, with what their names say.
 */
static void
find_columns(Columns *all)
{
	int			nest_level = NewGUCNestLevel();
	List	   *rows;
	ListCell   *cell;

	/* The planner cannot know how many names there are. */
	(void) set_config_option("enable_nestloop", "off", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	rows = snowflake_convert_ask(all->conversion, sql_columns);
	AtEOXact_GUC(false, nest_level);
	foreach(cell, rows)
	{
		const SnowflakeRow *row = lfirst(cell);
		Column	   *column = palloc0_object(Column);

		column->values = palloc0_object(SnowflakeValues);
		column->values->relid = snowflake_convert_oid(row, "relid");
		column->values->attnum = snowflake_convert_number(row, "attnum");
		column->by_name = snowflake_convert_text(row, "by_name");
		column->pair = snowflake_convert_text(row, "pair");
		column->strength = snowflake_convert_number(row, "strength");
		column->is_id = snowflake_convert_flag(row, "is_id");
		column->is_integer = snowflake_convert_flag(row, "is_integer");
		column->is_fixed = snowflake_convert_flag(row, "is_fixed");
		column->key = snowflake_convert_number(row, "key") - 1;
		all->columns = lappend(all->columns, column);
	}
}

/*
 * Read their values, and look for them in the keys.
 */
static void
find_values(Columns *all)
{
	List	   *values = NIL;
	ListCell   *cell;

	foreach(cell, all->columns)
		values = lappend(values, ((Column *) lfirst(cell))->values);
	snowflake_convert_read_values(values, !all->of_one_key);
	all->nrows = snowflake_convert_look_up(all->conversion->keys, values);
	for (int k = 0; k < list_length(all->conversion->keys); k++)
		all->any_unread |= all->nrows[k] < 0;
}

static void
find_small_keys(Columns *all)
{
	ListCell   *cell;

	all->small = palloc0_array(bool, list_length(all->conversion->keys));
	foreach(cell, all->conversion->keys)
	{
		const SnowflakeKey *key = lfirst(cell);
		Oid			type = get_atttype(key->relid, key->attnum);

		all->small[foreach_current_index(cell)] = type == INT2OID || type == INT4OID;
		all->any_small |= all->small[foreach_current_index(cell)];
	}
}

/*
 * Find the columns of the schema, and judge them.
 */
static void
find_and_judge(Columns *all)
{
	ListCell   *cell;

	find_columns(all);
	find_small_keys(all);
	find_values(all);
	foreach(cell, all->columns)
	{
		Column	   *column = lfirst(cell);

		CHECK_FOR_INTERRUPTS();
		find_best_key(all, column);
		column->verdict = judge(all, column);
	}
}

static SnowflakeColumn *
make_column(Oid relid, AttrNumber attnum)
{
	SnowflakeColumn *column = palloc0_object(SnowflakeColumn);

	column->relid = relid;
	column->attnum = attnum;
	return column;
}

/*
 * What the report has of a column.
 */
static SnowflakeColumn *
describe(const Columns *all, const Column *column)
{
	SnowflakeColumn *described = make_column(column->values->relid, column->values->attnum);

	described->verdict = !column->is_integer ? "unfit" :
		column->verdict == SURE ? "sure" : "perhaps";
	described->reason = reason_of(all, column);
	described->likelihood = likelihood(all, column);
	return described;
}

/*
 * A column that the argument names, in the schema unless it names another one.
 */
static SnowflakeColumn *
find_named_column(const SnowflakeConversion *conversion, List *names)
{
	int			n = list_length(names);
	Oid			schema = n == 2 ? conversion->schema :
		get_namespace_oid(strVal(linitial(names)), true);
	const char *table = strVal(list_nth(names, n - 2));
	const char *name = strVal(llast(names));
	Oid			relid = OidIsValid(schema) ? get_relname_relid(table, schema) : InvalidOid;
	AttrNumber	attnum = OidIsValid(relid) ? get_attnum(relid, name) : InvalidAttrNumber;

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table of column %s to widen does not exist", NameListToQuotedString(names)),
				 errhint("snowflake_convert_report() has the names of the columns.")));
	if (attnum <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column %s to widen does not exist", NameListToQuotedString(names)),
				 errhint("snowflake_convert_report() has the names of the columns.")));
	return make_column(relid, attnum);
}

/*
 * Is a column widened?  Those of other owners, and of partition keys, are not, unless the
 * caller names them: they would prevent the conversion.
 */
static bool
is_widened(const Column *column, const Widen *widen)
{
	return ((widen->names && column->is_id) ||
			(widen->sure && column->verdict == SURE) ||
			(widen->perhaps && column->verdict == PERHAPS)) &&
		column->is_integer && !column->is_fixed &&
		snowflake_table_owner(column->values->relid) == GetUserId();
}

/*
 * What was found, the likely ones first.
 */
static List *
list_found(const Columns *all)
{
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, all->columns)
	{
		const Column *column = lfirst(cell);

		if (column->verdict != NO)
			found = lappend(found, describe(all, column));
	}
	list_sort(found, compare_likelihood);
	return found;
}

/*
 * Find the columns of the schema that hold a key without a foreign key, and choose
 * those that are widened beside the ones that reference keys.
 */
void
snowflake_convert_choose_columns(SnowflakeConversion *conversion, const char *argument)
{
	Columns		all = {.conversion = conversion};
	Widen		widen = parse_widen(argument);
	ListCell   *cell;

	snowflake_convert_find_targets(conversion);
	find_and_judge(&all);
	conversion->found = list_found(&all);
	foreach(cell, all.columns)
	{
		const Column *column = lfirst(cell);

		if (is_widened(column, &widen))
			conversion->widened = lappend(conversion->widened,
										  make_column(column->values->relid,
													  column->values->attnum));
	}
	foreach(cell, widen.columns)
		conversion->widened = lappend(conversion->widened,
									  find_named_column(conversion, lfirst(cell)));
}

/*
 * Find the columns that hold the key of a single table, in its schema.  Returns false, to
 * keep no locks.
 */
static bool
look_for_holders(void *argument)
{
	SnowflakeConversion *conversion = argument;
	SnowflakeConversion of_schema = *conversion;
	Columns		all = {.conversion = &of_schema,.of_one_key = true};

	of_schema.schema = get_rel_namespace(((SnowflakeKey *) linitial(conversion->keys))->relid);
	find_and_judge(&all);
	conversion->found = list_found(&all);
	return false;
}

/*
 * The same, without a foreign key.  The conversion of a table neither fails nor waits for
 * long because of other tables.
 */
void
snowflake_convert_find_holders(SnowflakeConversion *conversion)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	int			lock_timeout = LockTimeout;
	ErrorData  *error;

	if (key->type != INT8OID)
		return;
	LockTimeout = MAX_WAIT_MS;
	(void) snowflake_convert_do(look_for_holders, conversion, &error);
	LockTimeout = lock_timeout;
	if (error != NULL && ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION)
		ReThrowError(error);
}
