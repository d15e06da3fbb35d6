/*-------------------------------------------------------------------------
 *
 * sequences.c
 *	  Sequences that stay, and get another kind: those of keys; or, with the columns
 *	  that they feed as they are, all that feed some.
 *
 * The kinds range and local fit every column.  So no type, function, or view
 * changes, and there are no keys to choose: each sequence that feeds a column gets
 * the kind.  Those that feed none may be counters of documents, or keys that a client
 * asks for by name, which nothing in the database tells, so they are named.  Then each
 * sequence is changed as its owner, in a security-restricted operation.  All is
 * one transaction, which has a lock on each sequence from when it is changed on, and
 * locks tables only against changes of their definitions.
 *
 * The statements are DDL, and calls of the function by which the owner of a
 * sequence sets its kind, so that a dry run shows all that is done.  The function
 * checks again, under the lock of the sequence, that the columns suit the kind.
 *
 * A default may have the name of a sequence as a text, which is looked up each time.
 * It means what it would mean for the application: its role is taken to be the owner
 * of the table.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/sequences.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/subtransaction.h"
#include "convert/columns/keys.h"
#include "convert/direct/sequences.h"
#include "shared/table_owner.h"
#include "src/snowflake_api.h"

/*
 * Do calls of nextval() in this database know kinds, or will they with the first label?
 */
static bool
is_attached(void)
{
	Oid			support = get_func_support(F_NEXTVAL);

	return !OidIsValid(support) ||
		getExtensionOfObject(ProcedureRelationId, support) == get_extension_oid("snowflake", true);
}

/*
 * The greatest INCREMENT of a snowflake sequence: the middle of 2n - 1 IDs of one
 * tick is what a client counts up and down from.
 */
static int64
max_increment(void)
{
	const SnowflakeApiField *sequence = &snowflake_get_api(1)->get_scheme()->sequence;

	if (sequence->shift > 0)
		return 1;
	return (int64) (((UINT64CONST(1) << sequence->width) + 1) / 2);
}

/*
 * The bits that IDs have.
 */
static int
id_width(void)
{
	const SnowflakeApiScheme *scheme = snowflake_get_api(1)->get_scheme();
	const SnowflakeApiField *fields[] = {&scheme->timestamp, &scheme->datacenter,
	&scheme->worker, &scheme->sequence};
	int			width = 0;

	for (size_t i = 0; i < lengthof(fields); i++)
		width = Max(width, fields[i]->width + fields[i]->shift);
	return width;
}

/*
 * Say of a schema whose sequences get another kind that programs may hold IDs as
 * doubles: nobody sees that, because they round without an error.
 */
void
snowflake_convert_find_doubles(const SnowflakeConversion *conversion, List **findings)
{
	const char *schema = get_namespace_name(conversion->schema);
	SnowflakeFinding *finding;

	if (schema == NULL || conversion->sequences == NIL ||
		conversion->kind != SNOWFLAKE_CONVERT_SNOWFLAKE || id_width() <= DBL_MANT_DIG)
		return;
	finding = snowflake_convert_add_finding(findings, SNOWFLAKE_INFO, NULL,
											psprintf("schema %s", quote_identifier(schema)),
											"new IDs are above 2^53",
											"For a program that is not your own, the scheme \"javascript\" is the safer one. Choose it before the first ID is generated.");
	finding->detail = "A program that holds them as doubles, such as one in JavaScript, rounds them without an error.";
}

/*
 * Where no kind was specified, sequences become snowflake sequences, if they can,
 * and there is no other generator.
 */
static void
choose_kind(SnowflakeConversion *conversion, Oid generator)
{
	bool		attached = is_attached();

	if (conversion->kind == SNOWFLAKE_CONVERT_GENERATOR && !OidIsValid(generator) && attached)
		conversion->kind = SNOWFLAKE_CONVERT_SNOWFLAKE;
	if (conversion->kind == SNOWFLAKE_CONVERT_GENERATOR)
		return;
	if (conversion->kind != SNOWFLAKE_CONVERT_LOCAL && !attached)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this database does not know kinds of sequences"),
				 errdetail("nextval() has a support function of another extension."),
				 errhint("Drop the other extension, or convert to a generator.")));
	if (conversion->kind == SNOWFLAKE_CONVERT_SNOWFLAKE)
		conversion->max_increment = max_increment();
}

/*
 * Find which keys keep their sequences, and which of these are to become snowflake
 * sequences.  A key with a generator of its own does not use any that it might have.
 */
void
snowflake_convert_find_key_sequences(SnowflakeConversion *conversion)
{
	ListCell   *cell;

	conversion->sequences = NIL;
	if (conversion->kind != SNOWFLAKE_CONVERT_SNOWFLAKE)
		return;
	foreach(cell, conversion->keys)
		((SnowflakeKey *) lfirst(cell))->keeps_sequences = false;
	foreach(cell, snowflake_convert_ask(conversion, sql_key_sequences))
	{
		const SnowflakeRow *row = lfirst(cell);
		SnowflakeKey *key = list_nth(conversion->keys,
									 snowflake_convert_number(row, "key") - 1);

		if (key->has_generator)
			continue;
		if (!key->keeps_sequences)
			key->set_default = false;
		key->keeps_sequences = true;
		if (snowflake_convert_text(row, "narrow") != NULL ||
			strcmp(snowflake_convert_text(row, "kind"), "snowflake") == 0)
			continue;
		key->set_default = true;
		conversion->sequences = list_append_unique_oid(conversion->sequences,
													   snowflake_convert_oid(row, "sequence"));
	}
}

static SnowflakeConvertKind
kind_of(const char *name)
{
	for (SnowflakeConvertKind kind = SNOWFLAKE_CONVERT_SNOWFLAKE;
		 kind < SNOWFLAKE_CONVERT_KINDS; kind++)
	{
		if (strcmp(name, snowflake_convert_kind_name(kind)) == 0)
			return kind;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown kind \"%s\"", name),
			 errhint("Kinds are snowflake, range, and local.")));
}

/*
 * The kind that an argument names, or that it is without one, and how the
 * application finds sequences by their names.
 */
void
snowflake_convert_get_kind(FunctionCallInfo fcinfo, int argument, Oid generator,
						   SnowflakeConversion *conversion)
{
	conversion->search_path = pstrdup(GetConfigOption("search_path", false, false));
	if (!PG_ARGISNULL(argument))
	{
		if (OidIsValid(generator))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("kind and generator cannot be specified together")));
		conversion->kind = kind_of(text_to_cstring(PG_GETARG_TEXT_PP(argument)));
	}
	choose_kind(conversion, generator);
}

/*
 * Does a conversion only change the kind of sequences?
 */
bool
snowflake_convert_keeps_columns(const SnowflakeConversion *conversion)
{
	return conversion->kind == SNOWFLAKE_CONVERT_RANGE ||
		conversion->kind == SNOWFLAKE_CONVERT_LOCAL;
}

/*
 * Is a column one of those that the call is about?
 */
static bool
is_wanted(const SnowflakeKindCall *call, const SnowflakeRow *row)
{
	if (call->column != NULL &&
		strcmp(call->column, snowflake_convert_text(row, "attname")) != 0)
		return false;
	return call->exclude == NULL ||
		!snowflake_convert_contains(call->exclude, snowflake_convert_oid(row, "relid"));
}

/*
 * Fail if a sequence does not belong to the caller.
 */
static void
check_sequence_owner(Oid sequence)
{
	if (!has_privs_of_role(GetUserId(), snowflake_table_owner(sequence)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of sequence %s", snowflake_relation_name(sequence))));
}

/*
 * Lock a table with its columns, unless it is locked.  Returns whether it was not.
 */
static bool
lock_table(const SnowflakeRow *row, List **locked)
{
	Oid			relid = snowflake_convert_oid(row, "relid");

	if (!OidIsValid(relid) || list_member_oid(*locked, relid))
		return false;
	*locked = lappend_oid(*locked, relid);
	(void) snowflake_convert_lock(relid, AccessShareLock);
	return true;
}

/*
 * The same for a sequence of the caller, which can be used meanwhile, but neither
 * renamed nor given to somebody else.
 */
static bool
lock_sequence(Oid sequence, List **locked)
{
	if (list_member_oid(*locked, sequence))
		return false;
	*locked = lappend_oid(*locked, sequence);
	LockRelationOid(sequence, AccessShareLock);
	check_sequence_owner(sequence);
	return true;
}

/*
 * Find the sequences, and lock them and their tables, so that all that is read of them
 * stays as it is, unless locked is NULL.  Returns whether there were any that were not
 * locked before.
 */
static bool
find_sequences(SnowflakeKindCall *call, List **locked)
{
	const SnowflakeConversion *conversion = call->conversion;
	bool		found = false;
	ListCell   *cell;

	call->sequences = NIL;
	call->rows = NIL;
	call->done = NIL;
	foreach(cell, snowflake_convert_ask_of(conversion, call->relid, sql_fed_columns))
	{
		const SnowflakeRow *row = lfirst(cell);
		Oid			sequence = snowflake_convert_oid(row, "sequence");

		if (!is_wanted(call, row))
			continue;
		if (strcmp(snowflake_convert_text(row, "kind"),
				   snowflake_convert_kind_name(conversion->kind)) == 0)
		{
			call->done = list_append_unique_oid(call->done, sequence);
			continue;
		}
		call->rows = lappend(call->rows, lfirst(cell));
		call->sequences = list_append_unique_oid(call->sequences, sequence);
		check_sequence_owner(sequence);
		if (locked == NULL)
			continue;
		found |= lock_table(row, locked);
		found |= lock_sequence(sequence, locked);
	}
	return found;
}

/*
 * Fail if the table, or its column, is none that could have a sequence.
 */
static void
check_table(const SnowflakeKindCall *call)
{
	(void) snowflake_convert_lock(call->relid, AccessShareLock);
	if (call->column != NULL)
		(void) snowflake_convert_find_column(call->relid,
											 snowflake_relation_name(call->relid),
											 call->column);
}

/*
 * Find the sequences, and what prevents them from getting the kind.
 */
static List *
find_kinds(SnowflakeKindCall *call, bool lock)
{
	SnowflakeConversion *conversion = call->conversion;
	List	   *locked = NIL;
	List	   *obstacles = NIL;

	while (find_sequences(call, lock ? &locked : NULL))
		;
	if (lock && OidIsValid(call->relid))
		check_table(call);
	conversion->sequences = call->sequences;
	conversion->again = call->done != NIL;
	(void) snowflake_convert_ask_obstacles(conversion, sql_kind_obstacles, &obstacles);
	return obstacles;
}

/*
 * What the sequences would be, as rows of a report.  That one has not the kind is a
 * reason to worry only if others have it, and one that feeds no column only before
 * that.
 */
List *
snowflake_convert_list_kinds(SnowflakeKindCall *call)
{
	List	   *findings = find_kinds(call, true);
	const char *kind = snowflake_convert_kind_name(call->conversion->kind);
	bool		is_new = call->conversion->again;
	ListCell   *cell;

	foreach(cell, call->rows)
	{
		const SnowflakeRow *row = lfirst(cell);
		char	   *column = snowflake_convert_text(row, "column_name");
		char	   *name = snowflake_relation_name(snowflake_convert_oid(row, "sequence"));
		const char *others = column == NULL ? "Others are. " : "Others are, so the table is new. ";

		(void) snowflake_convert_add_finding(&findings, is_new ? SNOWFLAKE_WARNING : SNOWFLAKE_INFO,
											 psprintf("sequences are not of kind %s", kind),
											 psprintf("sequence %s", name),
											 psprintf("it is of kind %s, and feeds %s",
													  snowflake_convert_text(row, "kind"),
													  column == NULL ? "no column" : column),
											 psprintf("%sCall snowflake_convert_schema() with kind => '%s'.",
													  is_new ? others : "", kind));
	}
	return list_concat(findings, snowflake_convert_ask_notices(call->conversion, sql_kind_notices));
}

/*
 * Find statements for the sequences of an owner, and execute them unless it is a dry
 * run.
 */
static void
run_for_owner(SnowflakeKindCall *call, Oid owner, SnowflakeQuery query)
{
	SnowflakeConversion part = *call->conversion;
	List	   *statements;
	SnowflakeCaller caller;
	ListCell   *cell;

	part.sequences = NIL;
	foreach(cell, call->sequences)
	{
		if (snowflake_table_owner(lfirst_oid(cell)) == owner)
			part.sequences = lappend_oid(part.sequences, lfirst_oid(cell));
	}
	snowflake_become_owner(owner, &caller);
	statements = snowflake_convert_ask_texts(&part, query);
	if (!call->conversion->dry_run)
		snowflake_convert_run_statements(statements);
	snowflake_become_caller(&caller);
	call->statements = list_concat(call->statements, statements);
}

static void
run_for_owners(SnowflakeKindCall *call, SnowflakeQuery query)
{
	List	   *owners = NIL;
	ListCell   *cell;

	foreach(cell, call->sequences)
		owners = list_append_unique_oid(owners, snowflake_table_owner(lfirst_oid(cell)));
	foreach(cell, owners)
		run_for_owner(call, lfirst_oid(cell), query);
}

/*
 * What the sequences belong to, as it is in messages.
 */
static char *
describe(const SnowflakeKindCall *call)
{
	return OidIsValid(call->relid) ?
		psprintf("table %s", snowflake_relation_name(call->relid)) :
		psprintf("schema \"%s\"", get_namespace_name(call->conversion->schema));
}

/*
 * Say what was done, and what was left.
 */
static void
report_kinds(const SnowflakeKindCall *call)
{
	const SnowflakeConversion *conversion = call->conversion;
	const char *kind = snowflake_convert_kind_name(conversion->kind);
	char	   *of = describe(call);

	snowflake_convert_give_notices(conversion, call->notices);
	if (call->sequences == NIL && call->done == NIL)
		ereport(NOTICE, (errmsg("no sequence feeds a column of %s", of)));
	else if (call->sequences == NIL)
		ereport(NOTICE,
				(errmsg("sequences of %s are already of kind %s", of, kind),
				 conversion->kind == SNOWFLAKE_CONVERT_RANGE ?
				 errhint("To have them continue above the rows of this server again, call snowflake_set_sequence_kinds().") : 0));
	else
		ereport(NOTICE,
				(conversion->dry_run ?
				 errmsg("sequences of %s would be of kind %s", of, kind) :
				 errmsg("sequences of %s are of kind %s", of, kind),
				 errdetail("sequences that get this kind: %d\nsequences that had it before: %d",
						   list_length(call->sequences), list_length(call->done)),
				 conversion->dry_run ? errhint("Nothing was changed.") : 0));
}

/*
 * Have the registry know the sequences, unless it is a dry run.
 */
static bool
prepare(void *argument)
{
	SnowflakeKindCall *call = argument;

	snowflake_convert_report_obstacles(call->conversion, find_kinds(call, false));
	run_for_owners(call, sql_prepare_statements);
	return false;
}

/*
 * Give the sequences the kind, unless it is a dry run.  The registry is asked before
 * anything is locked, and about what has changed meanwhile at the end.  The locks with
 * which keys were read for that are released: see above.
 */
void
snowflake_convert_change_kinds(SnowflakeKindCall *call)
{
	SnowflakeCaller caller;

	snowflake_become_owner(GetUserId(), &caller);
	if (call->conversion->kind == SNOWFLAKE_CONVERT_RANGE)
		(void) snowflake_convert_do(prepare, call, NULL);
	snowflake_convert_report_obstacles(call->conversion, find_kinds(call, true));
	call->notices = snowflake_convert_ask_notices(call->conversion, sql_kind_notices);
	run_for_owners(call, sql_kind_statements);
	snowflake_become_caller(&caller);
	report_kinds(call);
}
