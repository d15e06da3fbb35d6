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
 * - A query of the database tells, if it compares a column with a key (compared.c).
 * - A name tells, if it is that of a table or key (queries/columns.sql).  Both, unless
 *	 more than half of the values are in no key.
 * - Values tell, if there are several, not only small ones, and all are in one
 *	 key that has many rows, unless the name is that of a number, such as a count.
 * - Then a column of another table with the same name as one of which a query or the
 *	 values tell holds a key, too, unless its own values say otherwise.
 * - Perhaps a column holds a key, if nothing of this says that it does not.
 *
 * Of the latter, those without any value are widened with the sure ones.  Nothing can
 * be told of them, as of most columns right after an installation; a column that was
 * forgotten fails, and one that is bigint for nothing does not.
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
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

#include "convert/catalog/queries.h"
#include "convert/columns/columns.h"
#include "convert/columns/compared.h"
#include "convert/columns/values.h"
#include "shared/table_owner.h"

/* By so many different values, of which one is greater, a column may hold a key. */
#define SOME_VALUES		3
#define SMALL_VALUE		20

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

/* A column that might hold a key. */
typedef struct Column
{
	SnowflakeValues *values;
	const char *path;			/* names of the table and the column */
	const char *by_name;		/* what its name says, or NULL */
	const char *core;			/* its name without a prefix */
	const char *pair;			/* the column that names the table, or NULL */
	bool		is_id;			/* does its name end in id? */
	bool		is_fixed;		/* is it in a partition key? */
	bool		is_number;		/* is it a name of counts and the like? */
	bool		is_key;			/* is it a primary key that is named id? */
	bool		is_other;		/* is its name that of a table that is not
								 * converted? */
	bool		is_weak;		/* does it take values to be sure of what the
								 * name says? */
	int			key;			/* that it is named for; -1 if none */
	int			best;			/* the key that has most of its values, or -1 */
	bool		by_values;		/* do they tell that it holds a key? */
	bool		is_compared;	/* with a key, by a query? */
	Verdict		verdict;
	const char *reason;
} Column;

/* The columns of a schema. */
typedef struct Columns
{
	const SnowflakeConversion *conversion;
	List	   *columns;		/* of Column */
	List	   *texts;			/* of SnowflakeColumn */
	bool	   *many;			/* which keys have many rows */
	bool	   *small;			/* which keys are smallints or integers */
	bool		any_small;
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
 * for, or the first.
 */
static void
find_best_key(const Columns *all, Column *column)
{
	column->best = column->key;
	for (int k = 0; k < list_length(all->conversion->keys); k++)
	{
		if (in_key(column, k) > in_key(column, column->best))
			column->best = k;
	}
}

/*
 * Are most of its values in no key?  Those of a column that names the table, too, are
 * in several.
 */
static bool
is_refuted(const Column *column)
{
	int			found = column->pair != NULL ? column->values->known : in_key(column, column->best);

	return found * 2 < column->values->count;
}

/*
 * Do the values tell that a column holds a key, of which the name says nothing?
 */
static void
find_key_by_values(const Columns *all, Column *column)
{
	const SnowflakeValues *values = column->values;

	if (column->is_number || column->is_key || column->is_weak || column->is_other ||
		values->count < SOME_VALUES || values->values[values->count - 1] <= SMALL_VALUE)
		return;
	for (int k = 0; k < list_length(all->conversion->keys) && !column->by_values; k++)
	{
		if (!all->many[k] || !all->small[k] || in_key(column, k) < values->count)
			continue;
		column->by_values = true;
		if (in_key(column, column->key) < values->count)
			column->best = k;
	}
}

/*
 * What the name says comes first.  Of a schema whose keys are bigint, which may have been
 * converted, it is all that counts, so that what was left then is not named each night.
 */
static Verdict
judge(const Columns *all, const Column *column)
{
	int			count = column->values->count;

	if (column->by_name != NULL && !column->is_number && !column->is_weak && !is_refuted(column))
		return column->key >= 0 || all->any_small ? SURE : PERHAPS;
	if (!all->any_small)
		return NO;
	if (column->is_key)
		return count > 0 && in_key(column, column->best) == count ? PERHAPS : NO;
	if (column->is_number)
		return column->by_name == NULL || is_refuted(column) ? NO : PERHAPS;
	if (column->is_weak && count > 1 && in_key(column, column->key) == count)
		return SURE;
	if (column->by_name != NULL && !column->is_weak)
		return PERHAPS;
	if (column->by_values)
		return SURE;
	return is_refuted(column) ? NO : PERHAPS;
}

/*
 * A column with the name of another one of which a query or the values tell that it holds a
 * key.
 */
static const Column *
find_same_name(const Columns *all, const Column *column)
{
	ListCell   *cell;

	foreach(cell, all->columns)
	{
		const Column *other = lfirst(cell);

		if ((other->by_values || other->is_compared) && other->verdict == SURE &&
			strcmp(other->core, column->core) == 0)
			return other;
	}
	return NULL;
}

/*
 * Columns with such a name hold a key, too.
 */
static void
judge_by_others(Columns *all)
{
	ListCell   *cell;

	foreach(cell, all->columns)
	{
		Column	   *column = lfirst(cell);
		const Column *same;

		CHECK_FOR_INTERRUPTS();
		if (column->verdict != PERHAPS || column->is_number || column->is_key ||
			column->is_other || is_refuted(column))
			continue;
		same = find_same_name(all, column);
		if (same == NULL)
			continue;
		column->by_name = psprintf("%s has such a name, and holds a key", same->path);
		column->verdict = SURE;
	}
}

/*
 * Is there nothing that could say that a column does not hold a key?
 */
static bool
is_empty(const Column *column)
{
	return column->verdict == PERHAPS && column->values->is_read && column->values->count == 0;
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
		by_values = psprintf("none of %d values is in a key", count);
	else if (count > 0)
		by_values = psprintf("%d of %d values are in %s", in_key(column, column->best), count,
							 column->best == column->key || column->by_values ?
							 key_name(all->conversion, column->best) : "a key");
	else if (is_empty(column))
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
		column->path = snowflake_convert_text(row, "path");
		column->by_name = snowflake_convert_text(row, "by_name");
		column->core = snowflake_convert_text(row, "core");
		column->pair = snowflake_convert_text(row, "pair");
		column->is_id = snowflake_convert_flag(row, "is_id");
		column->is_key = snowflake_convert_flag(row, "is_key");
		column->is_other = snowflake_convert_flag(row, "is_other");
		column->is_weak = snowflake_convert_flag(row, "is_weak");
		column->is_fixed = snowflake_convert_flag(row, "is_fixed");
		column->is_number = snowflake_convert_flag(row, "is_number");
		column->key = snowflake_convert_number(row, "key") - 1;
		all->columns = lappend(all->columns, column);
	}
}

static Column *
find_column(const Columns *all, const SnowflakeOrigin *origin)
{
	ListCell   *cell;

	foreach(cell, all->columns)
	{
		Column	   *column = lfirst(cell);

		if (column->values->relid == origin->relid && column->values->attnum == origin->attnum)
			return column;
	}
	return NULL;
}

/*
 * The number of the key that a column is or references, or -1.
 */
static int
find_key(const SnowflakeConversion *conversion, const SnowflakeOrigin *origin)
{
	int			place = snowflake_convert_find_target(conversion, origin->relid, origin->attnum);
	ArrayType  *keys = DatumGetArrayTypeP(conversion->arrays[parameter_target_keys]);

	return place < 0 ? -1 : ((int32 *) ARR_DATA_PTR(keys))[place] - 1;
}

/*
 * If a query compares a column with a key, or with a column that is compared with one, that
 * says more than its name.  Returns whether it was not known.
 */
static bool
use_comparison(const Columns *all, const SnowflakeOrigin *one, const SnowflakeOrigin *other,
			   const char *where)
{
	Column	   *column = find_column(all, one);
	const Column *known = find_column(all, other);
	int			key = known != NULL && known->is_compared ? known->key :
		find_key(all->conversion, other);

	if (column == NULL || column->is_compared || key < 0)
		return false;
	column->key = key;
	column->is_compared = true;
	column->by_name = psprintf("%s compares it with %s", where,
							   known != NULL ? known->path : key_name(all->conversion, key));
	column->is_number = column->is_key = column->is_other = column->is_weak = false;
	return true;
}

/*
 * Use comparisons; returns whether one of them told what was not known.
 */
static bool
use_comparisons(const Columns *all, const List *comparisons)
{
	bool		found = false;
	ListCell   *cell;

	foreach(cell, comparisons)
	{
		const SnowflakeComparison *comparison = lfirst(cell);

		CHECK_FOR_INTERRUPTS();
		found |= use_comparison(all, &comparison->one, &comparison->other, comparison->where);
		found |= use_comparison(all, &comparison->other, &comparison->one, comparison->where);
	}
	return found;
}

/*
 * Read their values, and look for them in the keys.
 */
static void
find_values(Columns *all)
{
	char	   *names = snowflake_convert_first(snowflake_convert_ask(all->conversion,
																	  sql_table_names));
	List	   *values = NIL;
	List	   *read = NIL;
	ListCell   *cell;

	foreach(cell, all->columns)
	{
		const Column *column = lfirst(cell);

		values = lappend(values, column->values);
		if (!column->is_number || column->by_name != NULL)
			read = lappend(read, column->values);
	}
	all->texts = snowflake_convert_read_values(read, names);
	all->many = snowflake_convert_look_up(all->conversion->keys, values);
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
 * Judge the columns, and say why.
 */
static void
judge_columns(Columns *all)
{
	ListCell   *cell;

	find_small_keys(all);
	find_values(all);
	foreach(cell, all->columns)
	{
		Column	   *column = lfirst(cell);

		CHECK_FOR_INTERRUPTS();
		find_best_key(all, column);
		find_key_by_values(all, column);
		column->verdict = judge(all, column);
	}
	judge_by_others(all);
	foreach(cell, all->columns)
	{
		Column	   *column = lfirst(cell);

		column->reason = reason_of(all, column);
	}
}

static SnowflakeColumn *
make_column(Oid relid, AttrNumber attnum, Verdict verdict, const char *reason)
{
	SnowflakeColumn *column = palloc_object(SnowflakeColumn);

	column->relid = relid;
	column->attnum = attnum;
	column->verdict = verdict == SURE ? "sure" : "perhaps";
	column->reason = reason;
	return column;
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
	return make_column(relid, attnum, SURE, "");
}

/*
 * Is a column widened?  Those of other owners, and of partition keys, are not, unless the
 * caller names them: they would prevent the conversion.
 */
static bool
is_widened(const Column *column, const Widen *widen)
{
	return ((widen->names && column->is_id) ||
			(widen->sure && (column->verdict == SURE || is_empty(column))) ||
			(widen->perhaps && column->verdict == PERHAPS)) &&
		!column->is_fixed &&
		snowflake_table_owner(column->values->relid) == GetUserId();
}

/*
 * Find the columns of the schema that hold a key without a foreign key, and choose
 * those that are widened beside the ones that reference keys.
 */
void
snowflake_convert_choose_columns(SnowflakeConversion *conversion, const char *argument)
{
	Columns		all = {0};
	Widen		widen = parse_widen(argument);
	List	   *comparisons;
	ListCell   *cell;

	all.conversion = conversion;
	snowflake_convert_find_targets(conversion);
	find_columns(&all);
	comparisons = snowflake_convert_find_comparisons(conversion);
	while (use_comparisons(&all, comparisons))
		;
	judge_columns(&all);

	foreach(cell, all.columns)
	{
		const Column *column = lfirst(cell);
		SnowflakeColumn *found = make_column(column->values->relid, column->values->attnum,
											 column->verdict, column->reason);

		if (column->verdict != NO)
			conversion->found = lappend(conversion->found, found);
		if (is_widened(column, &widen))
			conversion->widened = lappend(conversion->widened, found);
	}
	conversion->found = list_concat(conversion->found, all.texts);
	foreach(cell, widen.columns)
		conversion->widened = lappend(conversion->widened,
									  find_named_column(conversion, lfirst(cell)));
}
