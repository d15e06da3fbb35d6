/*-------------------------------------------------------------------------
 *
 * new_ids.c
 *	  Whether tables accept the IDs to come.
 *
 * A conversion that succeeds is of little use if INSERTs fail after it.  So the
 * generator is called once, also in a dry run, and what the tables demand of
 * the column is evaluated with that ID, and with others that may follow it:
 *
 * - Rows must be below new IDs.
 * - There must be partitions for them.  A partition accepts an ID unless its
 *	 partition constraint, which includes those of its parents, becomes false
 *	 when the column is replaced by the ID.  Other columns of the partition key
 *	 stay variables, so it is enough that the partition takes some of their
 *	 values.  For IDs of a later time, there may be none yet.
 * - What else depends on the column must accept them: expressions.c.
 *
 * Of a key of type uuid only the generator is checked.
 *
 * The code that is evaluated belongs to the owner of the table; tables of other
 * owners are left out.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/checks/new_ids.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "convert/catalog/findings.h"
#include "convert/checks/expressions.h"
#include "convert/checks/new_ids.h"
#include "shared/table_owner.h"
#include "src/snowflake_api.h"

/* IDs generated now, and those of a later time. */
#define SAMPLES	2

static const char add_partitions[] = "Add partitions for new IDs; snowflake_lower_bound() returns the first ID of a point in time.";

/*
 * The greatest value of a field of an ID, and its bits with a value.
 */
static int64
field_max(const SnowflakeApiField *field)
{
	return (int64) ((UINT64CONST(1) << field->width) - 1);
}

static int64
put_field(const SnowflakeApiField *field, int64 value)
{
	return (int64) ((uint64) value << field->shift);
}

/*
 * Fill a sample: with an ID, or, if it is a snowflake ID, with those that begin
 * some time after it: two of every other tick, one number of the sequence after
 * the other, up to the last tick of the scheme.
 */
static void
take_sample(const SnowflakeKey *key, int64 id,
			SnowflakeSample *sample)
{
	const SnowflakeApiScheme *scheme = snowflake_get_api(1)->get_scheme();
	int64		last_tick = field_max(&scheme->timestamp);
	int64		last_number = field_max(&scheme->sequence);
	SnowflakeApiParts parts;
	int64		tick;

	/* Those that follow cannot be foretold. */
	if (!key->snowflakes)
	{
		sample->count = sample->later_us == 0 ? 1 : 0;
		sample->ids[0] = id;
		return;
	}

	/* What is left of the ID is the same in all of them. */
	snowflake_get_api(1)->parse(id, &parts);
	id -= put_field(&scheme->timestamp, parts.tick);
	id -= put_field(&scheme->sequence, parts.sequence);
	tick = parts.tick + sample->later_us / scheme->tick_us;
	sample->count = 0;
	for (int i = 0; i < SNOWFLAKE_SAMPLE_SIZE && tick + i <= last_tick; i++)
		sample->ids[sample->count++] = id +
			put_field(&scheme->timestamp, tick + i - i % 2) +
			put_field(&scheme->sequence, (parts.sequence + i) & last_number);
}

/*
 * Is the column in the partition key of a table, which is locked?
 */
static bool
is_in_key(const SnowflakeKey *key, Oid relid)
{
	Relation	table = relation_open(relid, NoLock);
	AttrNumber	attnum = get_attnum(relid, key->column);
	bool		in_key;

	in_key = has_partition_attrs(table,
								 bms_make_singleton(attnum - FirstLowInvalidHeapAttributeNumber),
								 NULL);
	relation_close(table, NoLock);
	return in_key;
}

/*
 * Is the column in a partition key of the table, or of its partitions?  If it
 * is, find those that have no partitions of their own; those with the greatest
 * IDs come first.
 *
 * A table that references the key may belong to anybody, and its partition key
 * may call functions, so nothing is found out about tables of other owners.
 */
static bool
find_leaves(const SnowflakeKey *key, List **leaves)
{
	bool		in_key = false;
	ListCell   *cell;

	*leaves = NIL;
	if (get_rel_relkind(key->relid) != RELKIND_PARTITIONED_TABLE)
		return false;
	foreach(cell, find_all_inheritors(key->relid, AccessShareLock, NULL))
	{
		Oid			relid = lfirst_oid(cell);

		if (snowflake_table_owner(relid) != GetUserId())
			return false;
		if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
			*leaves = lcons_oid(relid, *leaves);
		else if (is_in_key(key, relid))
			in_key = true;
	}
	return in_key;
}

/*
 * Does a partition accept IDs only because no other one does?
 */
static bool
accepts_by_default(const SnowflakeKey *key, Oid leaf)
{
	Oid			child = leaf;
	ListCell   *cell;

	foreach(cell, get_partition_ancestors(leaf))
	{
		Oid			parent = lfirst_oid(cell);

		if (get_default_partition_oid(parent) == child &&
			is_in_key(key, parent))
			return true;
		if (parent == key->relid)
			break;
		child = parent;
	}
	return false;
}

/*
 * Which IDs of a sample does a partition accept?  Returns how many of them
 * were not accepted before.
 */
static int
count_accepted(const SnowflakeKey *key, Oid leaf,
			   const SnowflakeSample *sample, bool *accepted)
{
	Relation	table = relation_open(leaf, NoLock);
	Node	   *constraint = (Node *) make_ands_explicit(RelationGetPartitionQual(table));
	AttrNumber	attnum = get_attnum(leaf, key->column);
	int			count = 0;

	for (int i = 0; i < sample->count; i++)
	{
		if (!accepted[i] && !snowflake_convert_is_false(constraint, attnum, sample->ids[i]))
		{
			accepted[i] = true;
			count++;
		}
	}
	relation_close(table, NoLock);
	return count;
}

/*
 * Must the column become a bigint?  One of a partition key cannot.
 */
static bool
is_narrow(const SnowflakeKey *key)
{
	Oid			type = getBaseType(get_atttype(key->relid, key->attnum));

	return type == INT2OID || type == INT4OID;
}

/*
 * Check that there are partitions for the IDs of a sample.
 *
 * Without them for IDs generated now, INSERTs would fail.  Those of a later
 * time can still be added.  A DEFAULT partition accepts what others do not,
 * but is hardly meant for all new rows.
 */
static void
check_partitions(const SnowflakeKey *key, const char *hint,
				 const SnowflakeSample *sample, List **findings)
{
	const char *all_or_some;
	const char *message;
	const char *table = psprintf("table %s", key->table);
	bool		accepted[SNOWFLAKE_SAMPLE_SIZE] = {false};
	bool		by_default[SNOWFLAKE_SAMPLE_SIZE] = {false};
	int			naccepted = 0;
	int			nfound = 0;
	List	   *leaves;
	MemoryContext context;
	ListCell   *cell;

	if (sample->count == 0 || is_narrow(key) || !find_leaves(key, &leaves))
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "partitions",
									ALLOCSET_DEFAULT_SIZES);
	foreach(cell, leaves)
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		bool		is_default = accepts_by_default(key, lfirst_oid(cell));
		int			count = count_accepted(key, lfirst_oid(cell), sample,
										   is_default ? by_default : accepted);

		if (!is_default)
			naccepted += count;
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
		CHECK_FOR_INTERRUPTS();
		if (naccepted == sample->count)
			return;
	}

	for (int i = 0; i < sample->count; i++)
		nfound += accepted[i] || by_default[i];
	all_or_some = nfound > 0 ? "some " : "";
	message = psprintf("table %s has no partition for %s%s", key->table, all_or_some, sample->name);
	if (nfound < sample->count && sample->later_us == 0)
		snowflake_convert_add_obstacle(findings, table, message, hint);
	else if (nfound < sample->count)
		(void) snowflake_convert_add_finding(findings, SNOWFLAKE_WARNING, NULL, table, message,
											 psprintf("%s INSERTs will fail when they are missing.",
													  hint));
	else if (sample->later_us == 0)
	{
		SnowflakeFinding *doubt;

		doubt = snowflake_convert_add_finding(findings, SNOWFLAKE_WARNING, NULL, table,
											  psprintf("new rows of table %s will be stored in a DEFAULT partition",
													   key->table),
											  psprintf("%s Do so before the first INSERT, because a partition cannot be added for rows that a DEFAULT partition has.",
													   hint));
		doubt->detail = naccepted > 0 ? "No other partition accepts some of their IDs." :
			"No other partition accepts their IDs.";
	}
}

/*
 * An ID of the generator of a key, as text, or NULL.
 */
char *
snowflake_convert_generate(const SnowflakeKey *key)
{
	Oid			schema = get_func_namespace(key->generator);
	const char *name = quote_qualified_identifier(get_namespace_name(schema),
												  get_func_name(key->generator));

	/* Whoever uses the sequence needs no right on a function. */
	if (key->keeps_sequences)
		return psprintf(INT64_FORMAT, snowflake_get_api(1)->generate());
	return snowflake_convert_value(psprintf("SELECT %s()", name));
}

/*
 * The same; NULL is an obstacle.
 */
static const char *
generate(const SnowflakeKey *key, List **findings)
{
	char	   *id = snowflake_convert_generate(key);

	if (id == NULL)
		snowflake_convert_add_obstacle(findings, psprintf("table %s", key->table),
									   "the generator returned null",
									   "Use a generator that always returns an ID.");
	return id;
}

/*
 * Is the greatest value of a key found without reading all rows?
 */
static bool
has_index(const SnowflakeConversion *conversion, const SnowflakeKey *key)
{
	return list_member_oid(snowflake_convert_ask_oids(conversion, key->relid, sql_ordered_columns),
						   key->attnum);
}

/*
 * Check that the rows of a table are below new IDs.
 *
 * An online conversion does that before it locks the table, too.  With the lock,
 * nobody is to wait until all rows are read.
 */
static void
check_rows(const SnowflakeConversion *conversion, const SnowflakeKey *key,
		   int64 id, List **findings)
{
	char	   *greatest;

	if (conversion->online && !conversion->dry_run && !has_index(conversion, key))
		return;
	greatest = snowflake_convert_value(psprintf("SELECT max(%s) FROM %s",
												quote_identifier(key->column),
												key->table));

	if (greatest != NULL && pg_strtoint64(greatest) >= id)
		snowflake_convert_add_obstacle(findings, psprintf("table %s", key->table),
									   psprintf("table %s contains the value %s, which is not below new IDs",
												key->table, greatest),
									   "Change such values, or set snowflake.scheme to the layout that they have.");
}

/*
 * Check that there are partitions for the IDs of samples, until some are missing.
 */
static void
check_all_partitions(const SnowflakeKey *key, const char *hint,
					 const SnowflakeSample *samples, List **findings)
{
	int			length = list_length(*findings);

	for (int i = 0; i < SAMPLES && list_length(*findings) == length; i++)
		check_partitions(key, hint, &samples[i], findings);
}

/*
 * The same for the columns of partitioned tables that receive IDs of the generator of
 * a key.  The tables are locked, as those of the keys are.
 */
static void
check_references(const SnowflakeConversion *conversion, const SnowflakeKey *key,
				 const SnowflakeSample *samples, List **findings)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_partitioned))
	{
		const SnowflakeRow *row = lfirst(cell);
		SnowflakeKey reference = *key;

		if (snowflake_convert_oid(row, "generator") != key->generator)
			continue;
		reference.relid = snowflake_convert_oid(row, "relid");
		reference.column = snowflake_convert_text(row, "attname");
		reference.table = snowflake_convert_text(row, "name");
		reference.attnum = get_attnum(reference.relid, reference.column);
		LockRelationOid(reference.relid, AccessShareLock);
		check_all_partitions(&reference, psprintf("%s%s", add_partitions,
												  snowflake_convert_text(row, "hint")),
							 samples, findings);
	}
}

/*
 * Check that the tables whose keys get IDs of a generator accept them, and
 * those that reference these keys.
 */
static void
check_generator(const SnowflakeConversion *conversion, const List *keys,
				List **findings)
{
	const SnowflakeKey *first = linitial(keys);
	SnowflakeSample samples[SAMPLES] = {
		{.name = "IDs generated now"},
		{.name = "IDs generated a year from now",.later_us = 365 * USECS_PER_DAY},
	};
	const char *generated = generate(first, findings);
	int64		id;
	ListCell   *cell;

	/* A uuid may be anywhere among those of the rows. */
	if (generated == NULL || first->type == UUIDOID)
		return;
	id = pg_strtoint64(generated);
	foreach(cell, keys)
		check_rows(conversion, lfirst(cell), id, findings);

	for (int i = 0; i < SAMPLES; i++)
		take_sample(first, id, &samples[i]);
	if (!snowflake_convert_check_expressions(conversion, first->generator, samples,
											 SAMPLES, findings))
		return;
	foreach(cell, keys)
		check_all_partitions(lfirst(cell), add_partitions, samples, findings);
	check_references(conversion, first, samples, findings);
}

/*
 * Check that rows are below new IDs, and that tables accept them, for the keys
 * of each generator, which is called once.
 */
void
snowflake_convert_check_new_ids(const SnowflakeConversion *conversion,
								List **findings)
{
	List	   *checked = NIL;
	ListCell   *cell;

	foreach(cell, conversion->keys)
	{
		SnowflakeKey *first = lfirst(cell);
		List	   *keys = NIL;
		ListCell   *other;

		if (!first->set_default || list_member_oid(checked, first->generator))
			continue;
		foreach(other, conversion->keys)
		{
			SnowflakeKey *key = lfirst(other);

			if (key->set_default && key->generator == first->generator)
				keys = lappend(keys, key);
		}
		check_generator(conversion, keys, findings);
		checked = lappend_oid(checked, first->generator);
	}
}
