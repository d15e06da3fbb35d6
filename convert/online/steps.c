/*-------------------------------------------------------------------------
 *
 * steps.c
 *	  The steps of a conversion of tables in use, and which of them are done.
 *
 * What is done is read from the catalogs each time, by names that are derived
 * from those of the old objects.  So the conversion can be interrupted at any
 * moment, and even continue in a database that was restored from a dump.
 *
 * The definition of a new index, constraint or statistics object is that of
 * the old one, with the new columns in the place of the old ones.  The server
 * itself writes it: an empty table is created like this one, with the old
 * object; then its columns become bigint and get the new names; then the
 * definition is read; and then all of this is rolled back.  The transaction
 * should be as well: see snowflake_online_rollback().
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/steps.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_statistic_ext.h"
#include "executor/spi.h"
#include "utils/builtins.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/subtransaction.h"
#include "convert/online/steps.h"
#include "convert/online/transaction.h"

static const char *const phase_names[] = {
	[SNOWFLAKE_PHASE_PREPARE] = "prepare",
	[SNOWFLAKE_PHASE_BACKFILL] = "backfill",
	[SNOWFLAKE_PHASE_INDEXES] = "indexes",
	[SNOWFLAKE_PHASE_FOREIGN_KEYS] = "foreign keys",
	[SNOWFLAKE_PHASE_SWAP] = "swap",
	[SNOWFLAKE_PHASE_DEFAULT] = "default",
};

static const char *const kind_names[] = {
	[SNOWFLAKE_STEP_PREPARE] = "prepare",
	[SNOWFLAKE_STEP_BACKFILL] = "backfill",
	[SNOWFLAKE_STEP_INDEX] = "index",
	[SNOWFLAKE_STEP_CHECK] = "check",
	[SNOWFLAKE_STEP_STATISTICS] = "statistics",
	[SNOWFLAKE_STEP_ANALYZE] = "analyze",
	[SNOWFLAKE_STEP_FOREIGN_KEY] = "foreign key",
	[SNOWFLAKE_STEP_VALIDATE] = "validate",
	[SNOWFLAKE_STEP_SWAP] = "swap",
	[SNOWFLAKE_STEP_DEFAULT] = "default",
};

/*
 * The place of a name in such a list.
 */
static int
find_name(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
	{
		if (strcmp(names[i], name) == 0)
			return (int) i;
	}
	elog(ERROR, "unexpected name in a step: %s", name);
}

const char *
snowflake_online_phase_name(SnowflakeOnlinePhase phase)
{
	return phase_names[phase];
}

/*
 * All steps that are not behind a swap, in their order.
 */
List *
snowflake_online_list_steps(const SnowflakeConversion *conversion)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	List	   *steps = NIL;
	SnowflakeOnlineStep *last;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_steps))
	{
		const SnowflakeRow *row = lfirst(cell);
		SnowflakeOnlineStep *step = palloc0_object(SnowflakeOnlineStep);

		step->kind = find_name(kind_names, lengthof(kind_names),
							   snowflake_convert_text(row, "kind"));
		step->phase = find_name(phase_names, lengthof(phase_names),
								snowflake_convert_text(row, "phase"));
		step->done = snowflake_convert_flag(row, "done");
		step->relid = snowflake_convert_oid(row, "relid");
		step->other = snowflake_convert_oid(row, "other");
		step->object = snowflake_convert_oid(row, "object");
		step->table = snowflake_convert_text(row, "name");
		step->new_name = snowflake_convert_text(row, "newname");
		step->tablespace = snowflake_convert_text(row, "spcname");
		step->statement = snowflake_convert_text(row, "statement");
		steps = lappend(steps, step);
	}

	last = palloc0_object(SnowflakeOnlineStep);
	last->kind = SNOWFLAKE_STEP_DEFAULT;
	last->phase = SNOWFLAKE_PHASE_DEFAULT;
	last->relid = key->relid;
	last->table = key->table;
	last->done = steps == NIL && !key->set_default &&
		snowflake_convert_ask(conversion, sql_sessions) == NIL;
	return lappend(steps, last);
}

/*
 * Has a conversion begun, which is not complete?
 */
bool
snowflake_online_has_begun(const SnowflakeConversion *conversion, const List *steps)
{
	ListCell   *cell;

	foreach(cell, steps)
	{
		const SnowflakeOnlineStep *step = lfirst(cell);

		if (step->kind == SNOWFLAKE_STEP_PREPARE && step->done)
			return true;
	}
	return snowflake_convert_ask(conversion, sql_sessions) != NIL;
}

/* A step whose statement is to be found. */
typedef struct StepDefinition
{
	const SnowflakeConversion *conversion;
	const SnowflakeOnlineStep *step;
	char	   *statement;
	bool		differs;		/* does the new object have another one? */
} StepDefinition;

/*
 * Create an object on a copy of its table, and read its definition.  Nothing is left of the
 * copy.
 */
static bool
define_on_copy(void *argument)
{
	StepDefinition *definition = argument;
	const SnowflakeOnlineStep *step = definition->step;
	SnowflakeConversion part = snowflake_convert_part(definition->conversion, step->relid);
	List	   *rows;

	rows = snowflake_convert_ask_of(&part, step->object, sql_copy_statements);
	snowflake_convert_run_statements(snowflake_convert_texts(rows));
	rows = snowflake_convert_ask_of(&part, step->object, sql_definition);
	if (list_length(rows) != 1)
	{
		/* REINDEX CONCURRENTLY has put another index in its place. */
		if (snowflake_convert_ask_of(&part, step->object, sql_is_there) == NIL)
			snowflake_convert_give_way("an index, constraint, or statistics object was replaced");
		elog(ERROR, "could not find the definition of %s", step->new_name);
	}
	definition->statement = snowflake_convert_text(linitial(rows), "statement");
	definition->differs = snowflake_convert_flag(linitial(rows), "differs");
	return false;
}

static StepDefinition
define(const SnowflakeConversion *conversion, const SnowflakeOnlineStep *step)
{
	StepDefinition definition = {.conversion = conversion,.step = step};

	(void) snowflake_convert_do(define_on_copy, &definition, NULL);
	return definition;
}

/*
 * The statement of a step that creates an index, a CHECK constraint, or a
 * statistics object.
 */
char *
snowflake_online_step_statement(const SnowflakeConversion *conversion,
								const SnowflakeOnlineStep *step)
{
	return step->statement != NULL ? step->statement : define(conversion, step).statement;
}

/*
 * The definitions of the indexes, constraints and statistics objects of tables, by
 * which those that were found in one transaction are known to be the same in another.
 */
char *
snowflake_online_definitions(const List *relids)
{
	List	   *tables = snowflake_convert_oids_parameter(relids);

	return snowflake_convert_first(snowflake_convert_ask_server(tables, sql_definitions));
}

/*
 * Has the old object another definition than when its new one was created?  A step
 * that creates no object has none.
 */
static bool
is_changed(const SnowflakeConversion *conversion, const SnowflakeOnlineStep *step)
{
	return step->done && OidIsValid(step->object) &&
		(step->kind == SNOWFLAKE_STEP_INDEX || step->kind == SNOWFLAKE_STEP_CHECK ||
		 step->kind == SNOWFLAKE_STEP_STATISTICS) &&
		define(conversion, step).differs;
}

/*
 * The old object of a step, for a message.
 */
static char *
describe(const SnowflakeOnlineStep *step)
{
	ObjectAddress object = {.objectId = step->object};

	object.classId = step->kind == SNOWFLAKE_STEP_INDEX ? RelationRelationId :
		step->kind == SNOWFLAKE_STEP_CHECK ? ConstraintRelationId :
		StatisticExtRelationId;
	return getObjectDescription(&object, false);
}

/*
 * Add objects of tables, or of all if there is no list, that were changed after their
 * counterparts were created.  A swap would take that back.
 */
void
snowflake_online_find_changed_objects(const SnowflakeConversion *conversion, const List *steps,
									  const List *relids, List **findings)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	List	   *changed = NIL;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_changed_objects))
	{
		const SnowflakeRow *row = lfirst(cell);

		if (relids == NIL || list_member_oid(relids, snowflake_convert_oid(row, "relid")))
			changed = lappend(changed, snowflake_convert_text(row, "what"));
	}
	foreach(cell, steps)
	{
		const SnowflakeOnlineStep *step = lfirst(cell);

		if ((relids == NIL || list_member_oid(relids, step->relid)) &&
			is_changed(conversion, step))
			changed = lappend(changed, describe(step));
	}
	foreach(cell, changed)
		snowflake_convert_add_obstacle(findings, key->table,
									   psprintf("%s was changed after its counterpart was created",
												(char *) lfirst(cell)),
									   "Drop the counterpart, which has the same name after \"snowflake_new_\"; the conversion creates it again.");
}

/*
 * The statements that take everything back, and the tables to lock.  Fails if
 * columns have been swapped.
 */
List *
snowflake_online_undo_statements(const SnowflakeConversion *conversion, List **tables)
{
	List	   *statements = NIL;
	ListCell   *cell;

	if (snowflake_convert_ask(conversion, sql_swapped_columns) != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot undo the conversion of table %s, because columns have been swapped",
						((SnowflakeKey *) linitial(conversion->keys))->table),
				 errhint("Call snowflake_convert_online() to complete it. snowflake_convert() with kind => 'local' has its sequence be local again.")));

	*tables = NIL;
	foreach(cell, snowflake_convert_ask(conversion, sql_undo))
	{
		const SnowflakeRow *row = lfirst(cell);

		char	   *command = snowflake_convert_text(row, "command");

		if (command == NULL)
			*tables = lappend_oid(*tables, snowflake_convert_oid(row, "relid"));
		else
			statements = lappend(statements, command);
	}
	return statements;
}
