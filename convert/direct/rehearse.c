/*-------------------------------------------------------------------------
 *
 * rehearse.c
 *	  Trying rows with new keys: does all that triggers, defaults, generated
 *	  columns and constraints do with a key still work?
 *
 * What code does with a key can only be found out by running it.  So copies of
 * a row of each table are inserted, two of them, each with the key that the table
 * gives it, and one of them is updated, to reference the key of the other one if
 * its table references itself.  This is done twice: before the conversion, and
 * with new IDs after it.  Each time is a subtransaction that is rolled back,
 * and with it the conversion, and what sequences have given, as they are
 * changed in it.  What works before and fails afterwards is a finding, and so
 * is a column whose values are different before, and equal afterwards, such as
 * one with the first digits of the key.
 *
 * Tables that are referenced come first, and the new keys of their rows are what
 * rows of other tables reference.  Each statement is a subtransaction, so that
 * an error of one table leaves the others.
 *
 * Triggers run with the caller's search path and row security, as they are
 * written for these; and as the owner of the tables in a security-restricted
 * operation, like all of a conversion.  In such an operation nothing can be
 * deferred, so what is deferred fires at the end of each statement.  A role that
 * cannot become the owner must not get the owner's rights this way: setval() in a
 * sequence of its own is not rolled back, and would tell it what it may not read.
 * So a table whose rows would run code of such a role gets none.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/rehearse.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/queries.h"
#include "convert/catalog/subtransaction.h"
#include "convert/checks/new_ids.h"
#include "convert/direct/conversion.h"
#include "convert/direct/rehearse.h"
#include "shared/table_owner.h"

/* The rows of a table: how many are inserted, and which of them is updated. */
#define ROWS	2
#define UPDATED_ROW	1

/* A trial, and what came out of it. */
typedef struct Trial
{
	const char *object;			/* the table */
	int			key;			/* the index of its key, or -1 */
	const char *references;		/* numbers of other keys, as an array, or NULL */
	const char *insert;			/* statements; NULL if there is nothing */
	const char *compare;
	const char *update;
	const char *verb;			/* what was tried last */
	const char *statement;
	ErrorData  *error;			/* NULL: it worked */
	bool		inserted;		/* did INSERT work? */
	char	   *places[ROWS];	/* where its rows are; NULL if there are none */
	List	   *columns;		/* rows with their names, and whether their
								 * values are equal */
} Trial;

/* One of the two times, before or after the conversion. */
typedef struct Rehearsal
{
	SnowflakeConversion conversion;
	bool		after;
	char	  **keys[ROWS];		/* by their number, the new ones; or NULL */
	List	   *trials;
	Trial	   *trial;			/* the present one */
} Rehearsal;

/*
 * Fail if triggers of the transaction wait for its end: they would be fired by
 * what makes those of the rehearsal fire.
 */
void
snowflake_convert_refuse_pending_triggers(void)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_oids(snowflake_convert_ask_with(NIL, sql_deferrable_tables)))
	{
		if (AfterTriggerPendingOnRel(lfirst_oid(cell)))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("cannot rehearse a conversion while deferred triggers of table %s wait for the end of the transaction",
							snowflake_relation_name(lfirst_oid(cell))),
					 errhint("Rehearse in another transaction, or run SET CONSTRAINTS ALL IMMEDIATE before.")));
	}
}

/*
 * The keys of a row as the text of an array.
 */
static char *
array_of(char **keys, int count)
{
	StringInfoData array;

	initStringInfo(&array);
	for (int i = 0; i < count; i++)
		appendStringInfo(&array, "%c%s", i == 0 ? '{' : ',',
						 keys[i] != NULL ? keys[i] : "NULL");
	appendStringInfoChar(&array, '}');
	return array.data;
}

/*
 * Run a statement of the present trial for one of the rows.  Returns its rows.
 */
static List *
run(Rehearsal *rehearsal, const char *statement, int row, char *third, char *fourth)
{
	int			nkeys = list_length(rehearsal->conversion.keys) + 1;

	rehearsal->trial->statement = statement;
	(void) set_config_option("search_path", rehearsal->conversion.search_path,
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
	(void) set_config_option("row_security", "on", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	return snowflake_convert_run(statement,
								 list_make4(array_of(rehearsal->keys[row], nkeys),
											array_of(rehearsal->keys[ROWS - 1 - row], nkeys),
											third, fourth));
}

/*
 * Insert the rows of a trial, and compare them.  Each has a key that its table
 * gives it, and after the conversion a new one in columns that have the name of a key.
 */
static bool
insert_rows(void *argument)
{
	Rehearsal  *rehearsal = argument;
	Trial	   *trial = rehearsal->trial;
	List	   *keys = rehearsal->conversion.keys;

	trial->verb = "INSERT";
	for (int row = 0; row < ROWS; row++)
	{
		if (rehearsal->after)
			rehearsal->keys[row][list_length(keys)] = snowflake_convert_generate(linitial(keys));
		trial->places[row] = snowflake_convert_first(run(rehearsal, trial->insert, row,
														 psprintf("%d", row + 1), NULL));
		if (trial->key >= 0)
			rehearsal->keys[row][trial->key] = trial->places[row];
	}
	if (trial->places[0] != NULL && trial->places[1] != NULL && trial->compare != NULL)
		trial->columns = run(rehearsal, trial->compare, 0, trial->places[0],
							 trial->places[1]);
	return true;
}

/*
 * Change a row of a trial.
 */
static bool
update_row(void *argument)
{
	Rehearsal  *rehearsal = argument;
	Trial	   *trial = rehearsal->trial;

	trial->verb = "UPDATE";
	(void) run(rehearsal, trial->update, UPDATED_ROW,
			   trial->places[UPDATED_ROW], NULL);
	return true;
}

/*
 * Insert the rows of a trial, or none.  Other tables reference the new keys of
 * the rows that were inserted last.
 */
static void
try_insert(Rehearsal *rehearsal)
{
	Trial	   *trial = rehearsal->trial;
	char	   *keys[ROWS] = {NULL};
	int			own = trial->key;

	for (int row = 0; row < ROWS && own >= 0; row++)
		keys[row] = rehearsal->keys[row][own];
	trial->inserted = snowflake_convert_attempt(insert_rows, rehearsal, &trial->error) &&
		trial->places[UPDATED_ROW] != NULL;
	for (int row = 0; row < ROWS && own >= 0 && !trial->inserted; row++)
		rehearsal->keys[row][own] = keys[row];
}

/*
 * Do the tables have new keys that a trial references?
 */
static bool
has_references(const Rehearsal *rehearsal, const Trial *trial)
{
	const char *number = trial->references;

	while (number != NULL && (number = strpbrk(number, "0123456789")) != NULL)
	{
		if (rehearsal->keys[0][strtol(number, NULL, 10) - 1] == NULL)
			return false;
		number += strspn(number, "0123456789");
	}
	return true;
}

/*
 * Insert the rows of all tables.
 */
static void
insert_all(Rehearsal *rehearsal)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(&rehearsal->conversion, sql_trials))
	{
		const SnowflakeRow *row = lfirst(cell);
		Trial	   *trial = palloc0_object(Trial);

		CHECK_FOR_INTERRUPTS();
		trial->object = snowflake_convert_text(row, "object");
		trial->key = (int) snowflake_convert_number(row, "key") - 1;
		trial->references = snowflake_convert_text(row, "keys");
		trial->insert = snowflake_convert_text(row, "insert");
		trial->compare = snowflake_convert_text(row, "compare");
		trial->update = snowflake_convert_text(row, "update");
		rehearsal->trials = lappend(rehearsal->trials, trial);
		rehearsal->trial = trial;
		try_insert(rehearsal);
	}
}

/*
 * Change a row of each table that has new ones, when all have.
 */
static void
update_all(Rehearsal *rehearsal)
{
	ListCell   *cell;

	foreach(cell, rehearsal->trials)
	{
		Trial	   *trial = lfirst(cell);

		rehearsal->trial = trial;
		if (trial->inserted && trial->update != NULL)
			(void) snowflake_convert_attempt(update_row, rehearsal, &trial->error);
	}
}

static bool
rehearse(void *argument)
{
	Rehearsal  *rehearsal = argument;

	if (rehearsal->after)
	{
		SnowflakeConversion *conversion = &rehearsal->conversion;

		snowflake_convert_execute(conversion, snowflake_convert_find_statements(conversion));
	}
	snowflake_convert_run_statements(snowflake_convert_ask_texts(&rehearsal->conversion,
																 sql_sequences_to_move));
	if (SPI_execute("SET CONSTRAINTS ALL IMMEDIATE", false, 0) < 0)
		elog(ERROR, "constraints cannot be set");
	insert_all(rehearsal);
	update_all(rehearsal);
	return false;
}

/*
 * The context of an error, without the lines from the statement that failed on.
 */
static char *
inner_context(const Trial *trial)
{
	char	   *context = pstrdup(trial->error->context == NULL ? "" : trial->error->context);
	char	   *own = strstr(context, trial->statement);

	while (own != NULL && own > context && own[-1] != '\n')
		own--;
	if (own != NULL)
		*own = '\0';
	return context;
}

/*
 * Where an error was raised: the first line of its context that names a function,
 * otherwise the first one; NULL if there is none.  The texts of statements have
 * quotes before them.
 */
static const char *
origin_of(const Trial *trial)
{
	char	   *first = strtok(inner_context(trial), "\n");

	for (char *line = first; line != NULL; line = strtok(NULL, "\n"))
	{
		char	   *word = strstr(line, " function ");

		if (word != NULL && memchr(line, '"', word - line) == NULL)
			return line;
	}
	return first;
}

/*
 * What an error is about: its message, and where it was raised.
 */
static char *
describe_error(const Trial *trial)
{
	const char *origin = origin_of(trial);

	return psprintf("%s%s%s", trial->error->message, origin == NULL ? "" : "; in ",
					origin == NULL ? "" : origin);
}

static void
add_finding(List **findings, const char *object, const char *finding, const char *what_to_do)
{
	ListCell   *cell;

	/* Both trials of a table may find the same. */
	foreach(cell, *findings)
	{
		const SnowflakeFinding *other = lfirst(cell);

		if (strcmp(other->object, object) == 0 && strcmp(other->message, finding) == 0)
			return;
	}
	(void) snowflake_convert_add_finding(findings, SNOWFLAKE_WARNING, NULL, object, finding,
										 what_to_do);
}

/*
 * Does a list of columns have one whose values are different?
 */
static bool
is_different(const List *columns, const char *name)
{
	ListCell   *cell;

	foreach(cell, columns)
	{
		const SnowflakeRow *row = lfirst(cell);

		if (strcmp(snowflake_convert_text(row, "name"), name) == 0)
			return !snowflake_convert_flag(row, "equal");
	}
	return false;
}

/*
 * Report what works before, and fails with new keys.  Without the new keys that it
 * references, a row is as another one, which a unique index might refuse.
 */
static void
report_failure(const Trial *before, const Trial *after, bool has_keys, List **findings)
{
	if (!has_keys)
		add_finding(findings, after->object,
					"it is not rehearsed with new keys of a table that it references, because INSERT into that fails",
					"Change what the rows about that table say, and rehearse again.");
	if (after->error != NULL && (has_keys || after->inserted) &&
		(before->error == NULL || (before->inserted && !after->inserted)))
		add_finding(findings, after->object,
					psprintf("%s with a new key fails: %s", after->verb,
							 describe_error(after)),
					"Change the function, default or column so that it accepts a bigint, and rehearse again.");
}

/*
 * Report columns whose values are equal only with new keys.
 */
static void
report_equal_values(const Trial *before, const Trial *after, List **findings)
{
	ListCell   *cell;

	foreach(cell, after->columns)
	{
		const SnowflakeRow *row = lfirst(cell);
		const char *name = snowflake_convert_text(row, "name");

		if (snowflake_convert_flag(row, "equal") && is_different(before->columns, name))
			add_finding(findings, name,
						"two rows with different new keys get the same value",
						"It is computed from the key, and does not contain all of it, such as lpad(id::text, 8, '0'). Have it contain the whole key, or something else.");
	}
}

/*
 * Say of a table that no row could be inserted before the conversion.
 */
static void
report_untried(const Trial *complete, const Trial *needed, List **findings)
{
	const Trial *failed = complete->error != NULL ? complete : needed;

	if (complete->inserted || needed->inserted)
		return;
	add_finding(findings, complete->object,
				failed->error == NULL ?
				"it is not rehearsed: before the conversion, too, INSERT stores no row in it" :
				psprintf("it is not rehearsed: before the conversion, too, INSERT of a copy of a row fails: %s",
						 describe_error(failed)),
				"Convert a copy of the database, and try the table with the application.");
}

/*
 * Say which tables get no row, because that could run code of roles that must not get
 * the rights of the owner.
 */
static void
report_code_of_others(const SnowflakeConversion *conversion, List **findings)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_untried))
	{
		const SnowflakeRow *row = lfirst(cell);

		add_finding(findings, snowflake_convert_text(row, "object"),
					snowflake_convert_text(row, "finding"),
					"Give what is named to the owner of the table, or drop it, and rehearse again.");
	}
}

/*
 * Rehearse before or after the conversion.
 */
static Rehearsal *
rehearse_once(const SnowflakeConversion *conversion, bool after, ErrorData **error)
{
	Rehearsal  *rehearsal = palloc0(sizeof(Rehearsal));

	rehearsal->conversion = *conversion;
	rehearsal->after = after;
	for (int row = 0; row < ROWS; row++)
		rehearsal->keys[row] = palloc0((list_length(conversion->keys) + 1) * sizeof(char *));
	(void) snowflake_convert_attempt(rehearse, rehearsal, error);
	return rehearsal;
}

/*
 * Rehearse a conversion that has no obstacles, and whose tables are locked.
 */
List *
snowflake_convert_rehearse(const SnowflakeConversion *conversion)
{
	List	   *findings = NIL;
	ErrorData  *error;
	Rehearsal  *before = rehearse_once(conversion, false, &error);
	Rehearsal  *after;
	const char *schema = quote_identifier(get_namespace_name(conversion->schema));

	if (error != NULL)
		ReThrowError(error);
	report_code_of_others(conversion, &findings);
	after = rehearse_once(conversion, true, &error);
	if (error != NULL)
	{
		(void) snowflake_convert_add_finding(&findings, SNOWFLAKE_OBSTACLE, NULL,
											 psprintf("schema %s", schema),
											 psprintf("the conversion fails: %s", error->message),
											 error->hint);
		return findings;
	}
	for (int i = 0; i < list_length(after->trials); i++)
	{
		const Trial *old = list_nth(before->trials, i);
		const Trial *new = list_nth(after->trials, i);

		report_failure(old, new,
					   has_references(after, new) || !has_references(before, old),
					   &findings);
		report_equal_values(old, new, &findings);
		if (i % 2 == 1)
			report_untried(list_nth(before->trials, i - 1), old, &findings);
	}
	return findings;
}
