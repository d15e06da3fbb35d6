/*-------------------------------------------------------------------------
 *
 * suitable.c
 *	  Which sequences can be of which kind: their definitions, and the columns
 *	  that use them.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/suitable.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "generator/loaded.h"
#include "generator/state.h"
#include "ranges/numbers.h"
#include "sequences/suitable.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

/* How many ALTER TABLE run in this session, one in the other, and the first command. */
static int	nalters = 0;
static CommandId first_alter;

/* What is called with each column that uses a sequence. */
typedef void (*ColumnFunction) (Oid relid, Oid table, int column, void *arg);

FormData_pg_sequence
snowflake_get_definition(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(relid));
	FormData_pg_sequence definition;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", relid);
	definition = *(Form_pg_sequence) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	return definition;
}

/*
 * A position that the definition allows, which may be another one by now.
 */
SequencePosition
snowflake_position_within(SequencePosition position,
						  const FormData_pg_sequence *definition)
{
	position.last_value = Min(position.last_value, definition->seqmax);
	if (position.last_value < definition->seqmin)
	{
		position.last_value = definition->seqmin;
		position.is_called = false;
	}
	return position;
}

/*
 * The greatest INCREMENT of a kind.
 */
static int64
greatest_increment(SnowflakeSequenceKind kind)
{
	const SnowflakeScheme *scheme;

	if (kind == SNOWFLAKE_KIND_RANGE)
		return SNOWFLAKE_MAX_RANGE_STEP;
	scheme = snowflake_server_scheme();
	return scheme->shift[SNOWFLAKE_SEQUENCE] > 0 ? 1 :
		(snowflake_field_max(scheme, SNOWFLAKE_SEQUENCE) + 2) / 2;
}

/*
 * Fail if the INCREMENT of a sequence cannot be that of a kind.  The scheme may
 * be another one than when the label was set.
 */
void
snowflake_check_increment(Oid relid, int64 increment, SnowflakeSequenceKind kind)
{
	int64		most;

	if (kind == SNOWFLAKE_KIND_SNOWFLAKE && (increment == 1 || snowflake_state == NULL))
		return;
	most = greatest_increment(kind);
	if (increment >= 1 && increment <= most)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("INCREMENT " INT64_FORMAT " of sequence \"%s\" is not possible for a %s sequence",
					increment, get_rel_name(relid), snowflake_kind_name(kind)),
			 kind == SNOWFLAKE_KIND_SNOWFLAKE ?
			 errdetail("With this \"snowflake.scheme\", it must be from 1 to " INT64_FORMAT ".",
					   most) :
			 errdetail("It must be from 1 to " INT64_FORMAT ".", most)));
}

/*
 * Fail if the definition of a sequence does not suit its kind.
 */
void
snowflake_check_definition(Oid relid, SnowflakeSequenceKind kind)
{
	snowflake_check_increment(relid, snowflake_get_definition(relid).seqincrement, kind);
	if (snowflake_get_definition(relid).seqcycle)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s sequence \"%s\" must not have CYCLE",
						snowflake_kind_name(kind), get_rel_name(relid)),
				 errdetail("What does not know its kind would get small numbers."),
				 errhint("Use ALTER SEQUENCE ... NO CYCLE.")));
}

/*
 * Call a function with all columns that a sequence belongs to, or that have it
 * in a default.
 */
static void
for_each_column(Oid relid, ColumnFunction function, void *arg)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			table;
	int32		column;

	if (sequenceIsOwned(relid, DEPENDENCY_AUTO, &table, &column) ||
		sequenceIsOwned(relid, DEPENDENCY_INTERNAL, &table, &column))
		function(relid, table, column, arg);

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == AttrDefaultRelationId)
		{
			ObjectAddress object = GetAttrDefaultColumnAddress(form->objid);

			function(relid, object.objectId, object.objectSubId, arg);
		}
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
}

/*
 * The greatest value of a type of integer; of others, of bigint.
 */
int64
snowflake_type_maximum(Oid type)
{
	switch (getBaseType(type))
	{
		case INT2OID:
			return PG_INT16_MAX;
		case INT4OID:
			return PG_INT32_MAX;
		default:
			return PG_INT64_MAX;
	}
}

/*
 * Does the definition of a new sequence say nothing of its values that a kind cannot
 * have?
 */
bool
snowflake_has_plain_definition(Oid relid, SnowflakeSequenceKind kind)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);

	return definition.seqincrement >= 1 &&
		definition.seqincrement <= greatest_increment(kind) && !definition.seqcycle &&
		(definition.seqmax == PG_INT16_MAX || definition.seqmax == PG_INT32_MAX ||
		 definition.seqmax == PG_INT64_MAX);
}

/*
 * Does a column of a table count for a sequence?  Anybody who may use a sequence can name
 * it in a default, which must neither prevent that it gets a kind, nor say where it
 * continues, nor have its owner execute code.  So the owner of the table has the rights
 * of the owner of the sequence.
 */
static bool
counts(Oid table, Oid relid)
{
	return has_privs_of_role(snowflake_table_owner(table), snowflake_table_owner(relid));
}

static void
find_bigint(Oid relid, Oid table, int column, void *found)
{
	if (getBaseType(get_atttype(table, column)) == INT8OID && counts(table, relid))
		*(bool *) found = true;
}

bool
snowflake_has_bigint_column(Oid relid)
{
	bool		found = false;

	for_each_column(relid, find_bigint, &found);
	return found;
}

/*
 * Fail if a column is too narrow for snowflake IDs.
 */
static void
check_wide_column(Oid relid, Oid table, int column, void *arg)
{
	if (snowflake_type_maximum(get_atttype(table, column)) < PG_INT64_MAX &&
		counts(table, relid))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("sequence \"%s\" cannot be a snowflake sequence because column \"%s\" of table \"%s\" is not bigint",
						get_rel_name(relid),
						get_attname(table, column, false), get_rel_name(table)),
				 errhint("Convert the column first.")));
}

/*
 * Fail if a column is too narrow for the last value of a range sequence.
 */
static void
check_range_column(Oid relid, Oid table, int column, void *arg)
{
	int64		last = snowflake_get_definition(relid).seqmax;
	Oid			type = get_atttype(table, column);

	if (snowflake_type_maximum(type) < last && counts(table, relid))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("MAXVALUE of sequence \"%s\" does not fit in column \"%s\" of table \"%s\"",
						get_rel_name(relid),
						get_attname(table, column, false), get_rel_name(table)),
				 errhint("Use ALTER SEQUENCE ... AS %s MAXVALUE " INT64_FORMAT " first.",
						 format_type_be(getBaseType(type)), snowflake_type_maximum(type))));
}

/*
 * Is a sequence one of the extension's own, which lastval() uses?
 */
bool
snowflake_is_own_sequence(Oid relid)
{
	Oid			extension = getExtensionOfObject(RelationRelationId, relid);

	return OidIsValid(extension) && extension == get_extension_oid("snowflake", true);
}

/*
 * Fail if a sequence cannot be of a kind.
 */
void
snowflake_check_suitable(Oid relid, SnowflakeSequenceKind kind)
{
	if (snowflake_is_own_sequence(relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" of the extension cannot be a %s sequence",
						get_rel_name(relid), snowflake_kind_name(kind))));
	if (kind == SNOWFLAKE_KIND_RANGE &&
		get_rel_persistence(relid) == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("temporary sequence \"%s\" cannot be a range sequence",
						get_rel_name(relid)),
				 errdetail("No other session uses it.")));
	snowflake_check_definition(relid, kind);
	for_each_column(relid, kind == SNOWFLAKE_KIND_RANGE ?
					check_range_column : check_wide_column, NULL);
}

/*
 * Has this transaction locked a relation like this, or more strongly?
 */
bool
snowflake_is_locked(Oid relid, LOCKMODE mode)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	return snowflake_holds_lock(&tag, mode);
}

void
snowflake_begin_alter_table(void)
{
	if (nalters++ == 0)
		first_alter = GetCurrentCommandId(false);
}

void
snowflake_end_alter_table(void)
{
	nalters--;
}

/*
 * Find what this session alters, perhaps with values of a sequence, of a table and those
 * that are read with it: its partitions, and what inherits from it.  They cannot be read:
 * new indexes are empty files, and rows are of the types from before.  Nor can the table,
 * which comes last.
 */
static List *
find_altered(Oid table)
{
	List	   *altered = NIL;
	ListCell   *cell;

	if (nalters == 0)
		return NIL;
	foreach(cell, find_all_inheritors(table, NoLock, NULL))
	{
		if (snowflake_is_locked(lfirst_oid(cell), AccessExclusiveLock))
			altered = lappend_oid(altered, lfirst_oid(cell));
	}
	return altered == NIL ? NIL : lappend_oid(altered, table);
}

/*
 * Can a column have keys?  Temporary tables are left out: only their own sessions can read
 * them.
 */
static bool
can_have_keys(Oid table, int column)
{
	char		kind = get_rel_relkind(table);
	Oid			type = getBaseType(get_atttype(table, column));

	return (kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE) &&
		get_rel_persistence(table) != RELPERSISTENCE_TEMP &&
		(type == INT2OID || type == INT4OID || type == INT8OID);
}

/*
 * Fail if a column of a table that cannot be read was there before this session altered
 * it, and so can have keys.
 */
static void
check_new_column(Oid relid, Oid table, int column)
{
	Snapshot	before = RegisterSnapshot(GetLatestSnapshot());
	Relation	attributes = table_open(AttributeRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;

	before->curcid = first_alter;
	ScanKeyInit(&keys[0], Anum_pg_attribute_attrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(table));
	ScanKeyInit(&keys[1], Anum_pg_attribute_attnum, BTEqualStrategyNumber,
				F_INT2EQ, Int16GetDatum(column));
	scan = systable_beginscan(attributes, AttributeRelidNumIndexId, true, before, 2, keys);
	if (HeapTupleIsValid(systable_getnext(scan)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("keys of table \"%s\" cannot be read while it is altered",
						get_rel_name(table)),
				 errdetail("Numbers of sequence \"%s\" begin above them.", get_rel_name(relid)),
				 errhint("Before ALTER TABLE, call nextval() of the sequence, or set its kind.")));
	systable_endscan(scan);
	table_close(attributes, AccessShareLock);
	UnregisterSnapshot(before);
}

/*
 * The greatest key, and the last number of the sequence.
 */
typedef struct GreatestKey
{
	int64		key;
	int64		last;
	bool		has_keys;		/* can a column have keys that count? */
	Oid			left_out;		/* a table whose keys do not count */
} GreatestKey;

static char *
greatest_query(Oid table, int column, int64 last)
{
	const char *name = quote_identifier(get_attname(table, column, false));
	char	   *from = snowflake_relation_name(table);
	char	   *end = psprintf("'" INT64_FORMAT "'::pg_catalog.int8", last);
	char	   *middle = psprintf("'" INT64_FORMAT "'::pg_catalog.int8", last / 2);

	return psprintf("SELECT CASE WHEN key OPERATOR(pg_catalog.>) %4$s AND"
					" EXISTS (SELECT FROM %2$s WHERE %1$s OPERATOR(pg_catalog.>=) %3$s)"
					" THEN %3$s ELSE key END"
					" FROM (SELECT pg_catalog.max(%1$s)::pg_catalog.int8 FROM %2$s"
					" WHERE %1$s OPERATOR(pg_catalog.<) %3$s) greatest(key)",
					name, from, end, middle);
}

/*
 * The integer that a query of a table finds, as the owner of the table: the query
 * executes code of indexes.  Row security must not hide a row, if it is forced, either.
 */
static int64
ask_owner(Oid table, const char *query, bool *found)
{
	SnowflakeCaller caller;
	Oid			owner;
	int			sec_context;
	Datum		value = (Datum) 0;
	bool		isnull = true;

	snowflake_become_owner(snowflake_table_owner(table), &caller);
	GetUserIdAndSecContext(&owner, &sec_context);
	SetUserIdAndSecContext(owner, sec_context | SECURITY_NOFORCE_RLS);
	PushActiveSnapshot(GetLatestSnapshot());
	if (SPI_execute(query, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look for keys: %s", query);
	PopActiveSnapshot();
	snowflake_become_caller(&caller);
	if (SPI_processed > 0)
		value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	*found = !isnull;
	return *found ? DatumGetInt64(value) : 0;
}

static void
find_greatest(Oid relid, Oid table, int column, void *arg)
{
	GreatestKey *greatest = arg;
	List	   *altered;
	ListCell   *cell;
	int64		key;
	bool		found;

	if (!can_have_keys(table, column))
		return;
	if (!counts(table, relid))
	{
		greatest->left_out = table;
		return;
	}
	greatest->has_keys = true;
	altered = find_altered(table);
	foreach(cell, altered)
		check_new_column(relid, lfirst_oid(cell),
						 get_attnum(lfirst_oid(cell), get_attname(table, column, false)));
	if (altered != NIL)
		return;
	key = ask_owner(table, greatest_query(table, column, greatest->last), &found);
	if (found)
		greatest->key = Max(greatest->key, key);
}

/*
 * Call a function with all columns that use a sequence, which queries their tables.
 */
static void
ask_columns(Oid relid, ColumnFunction function, void *arg)
{
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	CommandCounterIncrement();
	for_each_column(relid, function, arg);
	SPI_finish();
}

/*
 * The greatest value of all columns that use a sequence, or 0, and whether there are such
 * columns.  Row security must not hide any, nor a snapshot of the transaction.
 *
 * A key at the end of the sequence, or above it, counts only if another one is in the
 * upper half: a row with the greatest integer, which somebody added, would otherwise
 * exhaust the sequence.
 */
int64
snowflake_greatest_key(Oid relid, bool *has_keys)
{
	GreatestKey greatest = {.last = snowflake_get_definition(relid).seqmax};

	ask_columns(relid, find_greatest, &greatest);
	if (OidIsValid(greatest.left_out))
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("keys of table \"%s\" do not count for sequence \"%s\"",
						get_rel_name(greatest.left_out), get_rel_name(relid)),
				 errdetail("Its owner does not have the rights of the owner of the sequence, which can continue below its keys."),
				 errhint("If they have keys of the same servers, give both the same owner, and call setval() with the greatest key.")));
	if (has_keys != NULL)
		*has_keys = greatest.has_keys;
	return greatest.key;
}

/*
 * A number, and whether a row has it, or the one before it, as its key.
 */
typedef struct SearchedKey
{
	int64		key;
	bool		found;
} SearchedKey;

static void
search_key(Oid relid, Oid table, int column, void *arg)
{
	SearchedKey *searched = arg;

	if (searched->found || !can_have_keys(table, column) || !counts(table, relid) ||
		find_altered(table) != NIL)
		return;
	(void) ask_owner(table,
					 psprintf("SELECT 1::pg_catalog.int8 FROM %s"
							  " WHERE %s OPERATOR(pg_catalog.=) ANY"
							  " (ARRAY['" INT64_FORMAT "', '" INT64_FORMAT "']::pg_catalog.int8[]) LIMIT 1",
							  snowflake_relation_name(table),
							  quote_identifier(get_attname(table, column, false)),
							  searched->key, searched->key - 1),
					 &searched->found);
}

/*
 * Has a column that uses a sequence a number, or the one before it?  The tables are
 * read as for the greatest key.  Without an index, that takes as long as to find the
 * greatest one.
 */
bool
snowflake_is_key(Oid relid, int64 number)
{
	SearchedKey searched = {.key = number};

	ask_columns(relid, search_key, &searched);
	return searched.found;
}
