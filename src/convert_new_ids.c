/*-------------------------------------------------------------------------
 *
 * convert_new_ids.c
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
 * - What else depends on the column must accept them: convert_expressions.c.
 *
 * The code that is evaluated belongs to the owner of the table.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/convert_new_ids.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "convert.h"
#include "state.h"
#include "scheme.h"

/*
 * Fill a sample: with an ID, or, if it is a snowflake ID, with those that begin
 * some time after it, tick by tick, one number of the sequence after the other.
 */
static void
take_sample(const SnowflakeConversion *conversion, int64 id,
			SnowflakeSample *sample)
{
	const SnowflakeScheme *scheme = snowflake_server_scheme();
	int64		last_tick = snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP);
	int64		last_number = snowflake_field_max(scheme, SNOWFLAKE_SEQUENCE);
	int64		tick = snowflake_field_get(scheme, SNOWFLAKE_TIMESTAMP, id);
	int64		number = snowflake_field_get(scheme, SNOWFLAKE_SEQUENCE, id);

	/* Those that follow cannot be foretold. */
	if (!conversion->snowflakes)
	{
		sample->count = sample->later_us == 0 ? 1 : 0;
		sample->ids[0] = id;
		return;
	}

	/* What is left of the ID is the same in all of them. */
	id -= snowflake_field_put(scheme, SNOWFLAKE_TIMESTAMP, tick);
	id -= snowflake_field_put(scheme, SNOWFLAKE_SEQUENCE, number);
	tick += sample->later_us / scheme->tick_us;
	sample->count = SNOWFLAKE_SAMPLE_SIZE;
	for (int i = 0; i < SNOWFLAKE_SAMPLE_SIZE; i++)
		sample->ids[i] = id +
			snowflake_field_put(scheme, SNOWFLAKE_TIMESTAMP,
								Min(tick + i, last_tick)) +
			snowflake_field_put(scheme, SNOWFLAKE_SEQUENCE,
								(number + i) & last_number);
}

/*
 * Is the column in the partition key of a table, which is locked?
 */
static bool
is_in_key(const SnowflakeConversion *conversion, Oid relid)
{
	Relation	table = relation_open(relid, NoLock);
	AttrNumber	attnum = get_attnum(relid, conversion->column);
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
 */
static bool
find_leaves(const SnowflakeConversion *conversion, List **leaves)
{
	bool		in_key = false;
	ListCell   *cell;

	*leaves = NIL;
	if (get_rel_relkind(conversion->relid) != RELKIND_PARTITIONED_TABLE)
		return false;
	foreach(cell, find_all_inheritors(conversion->relid, AccessShareLock, NULL))
	{
		Oid			relid = lfirst_oid(cell);

		if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
			*leaves = lcons_oid(relid, *leaves);
		else if (is_in_key(conversion, relid))
			in_key = true;
	}
	return in_key;
}

/*
 * Does a partition accept IDs only because no other one does?
 */
static bool
accepts_by_default(const SnowflakeConversion *conversion, Oid leaf)
{
	Oid			child = leaf;
	ListCell   *cell;

	foreach(cell, get_partition_ancestors(leaf))
	{
		Oid			parent = lfirst_oid(cell);

		if (get_default_partition_oid(parent) == child &&
			is_in_key(conversion, parent))
			return true;
		if (parent == conversion->relid)
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
count_accepted(const SnowflakeConversion *conversion, Oid leaf,
			   const SnowflakeSample *sample, bool *accepted)
{
	Relation	table = relation_open(leaf, NoLock);
	Node	   *constraint = (Node *) make_ands_explicit(RelationGetPartitionQual(table));
	AttrNumber	attnum = get_attnum(leaf, conversion->column);
	int			count = 0;

	for (int i = 0; i < sample->count; i++)
	{
		if (!accepted[i] && !snowflake_is_false(constraint, attnum, sample->ids[i]))
		{
			accepted[i] = true;
			count++;
		}
	}
	relation_close(table, NoLock);
	return count;
}

/*
 * Check that there are partitions for the IDs of a sample.
 *
 * Without them for IDs generated now, INSERTs would fail.  Those of a later
 * time can still be added.  A DEFAULT partition accepts what others do not,
 * but is hardly meant for all new rows.
 */
static void
check_partitions(const SnowflakeConversion *conversion, const SnowflakeSample *sample,
				 SnowflakeObstacles *obstacles)
{
	const char *all_or_some;
	const char *hint = "Add partitions for new IDs; snowflake_lower_bound() returns the first ID of a point in time.";
	bool		accepted[SNOWFLAKE_SAMPLE_SIZE] = {false};
	bool		by_default[SNOWFLAKE_SAMPLE_SIZE] = {false};
	int			naccepted = 0;
	int			nfound = 0;
	List	   *leaves;
	MemoryContext context;
	ListCell   *cell;

	if (sample->count == 0 || !find_leaves(conversion, &leaves))
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "partitions",
									ALLOCSET_DEFAULT_SIZES);
	foreach(cell, leaves)
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		bool		is_default = accepts_by_default(conversion, lfirst_oid(cell));
		int			count = count_accepted(conversion, lfirst_oid(cell), sample,
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
	if (nfound == sample->count)
	{
		if (sample->later_us == 0)
			ereport(NOTICE,
					(errmsg("new rows of table %s will be stored in a DEFAULT partition",
							conversion->table),
					 naccepted > 0 ?
					 errdetail("No other partition accepts some of their IDs.") :
					 errdetail("No other partition accepts their IDs."),
					 errhint("%s Do so before the first INSERT, because a partition cannot be added for rows that a DEFAULT partition has.",
							 hint)));
	}
	else if (sample->later_us == 0)
		snowflake_add_obstacle(obstacles,
							   psprintf("table %s has no partition for %s%s",
										conversion->table, all_or_some, sample->name),
							   hint);
	else
		ereport(WARNING,
				(errmsg("table %s has no partition for %s%s",
						conversion->table, all_or_some, sample->name),
				 errhint("%s INSERTs will fail when they are missing.", hint)));
}

/*
 * Check that rows are below new IDs, and that tables accept them.
 */
void
snowflake_check_new_ids(const SnowflakeConversion *conversion,
						SnowflakeObstacles *obstacles)
{
	SnowflakeSample samples[] = {
		{.name = "IDs generated now"},
		{.name = "IDs generated a year from now",.later_us = 365 * USECS_PER_DAY},
	};
	char	   *id;
	char	   *greatest;
	int			length;

	id = snowflake_get_value(psprintf("SELECT %s.%s()",
									  quote_identifier(get_namespace_name(get_func_namespace(conversion->generator))),
									  quote_identifier(get_func_name(conversion->generator))));
	if (id == NULL)
	{
		snowflake_add_obstacle(obstacles, "the generator returned null",
							   "Use a generator that always returns an ID.");
		return;
	}

	greatest = snowflake_get_value(psprintf("SELECT max(%s) FROM %s",
											quote_identifier(conversion->column),
											conversion->table));
	if (greatest != NULL && pg_strtoint64(greatest) >= pg_strtoint64(id))
		snowflake_add_obstacle(obstacles,
							   psprintf("table %s contains the value %s, which is not below new IDs",
										conversion->table, greatest),
							   "Change values that are not below new IDs.");

	for (size_t i = 0; i < lengthof(samples); i++)
		take_sample(conversion, pg_strtoint64(id), &samples[i]);
	length = obstacles->lines.len;
	snowflake_check_expressions(conversion, samples, lengthof(samples),
								obstacles);

	/* The partition key might be among what cannot be computed. */
	if (obstacles->lines.len > length)
		return;
	for (size_t i = 0; i < lengthof(samples) && obstacles->lines.len == length; i++)
		check_partitions(conversion, &samples[i], obstacles);
}
