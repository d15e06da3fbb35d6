/*-------------------------------------------------------------------------
 *
 * kinds.c
 *	  Sequences that get another kind, with the columns that they feed as they are.
 *
 * The kinds range and local fit every column.  So no type, function, or view
 * changes, and there are no keys to choose: each sequence that feeds a column gets
 * the kind.  Those that feed none may be counters of documents, or keys that a client
 * asks for by name, which nothing in the database tells, so they are named.
 *
 * Each sequence is changed as its owner, in a security-restricted operation.  All is
 * one transaction, which has a lock on each sequence from when it is changed on, and
 * locks tables only against changes of their definitions.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/kinds.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/subtransaction.h"
#include "convert/columns/keys.h"
#include "convert/columns/schema.h"
#include "convert/direct/conversion.h"
#include "convert/direct/kinds.h"
#include "convert/direct/sequences.h"
#include "shared/table_owner.h"

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
	snowflake_convert_choose_kind(conversion, generator);
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
 * What is to be said of the other sequences, and of what reads these.
 */
static List *
find_notices(const SnowflakeKindCall *call)
{
	return snowflake_convert_ask_notices(call->conversion,
										 call->done == NIL ? sql_first_kind_notices : sql_kind_notices);
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
	snowflake_convert_find_kind_obstacles(conversion, &obstacles);
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
	bool		is_new = call->done != NIL;
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
	return list_concat(findings, find_notices(call));
}

/*
 * Find statements for the sequences of an owner, and execute them unless it is a dry
 * run.
 */
static void
run_for_owner(SnowflakeKindCall *call, Oid owner,
			  List *(*find) (const SnowflakeConversion *conversion))
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
	statements = find(&part);
	if (!call->conversion->dry_run)
		snowflake_convert_run_statements(statements);
	snowflake_become_caller(&caller);
	call->statements = list_concat(call->statements, statements);
}

static void
run_for_owners(SnowflakeKindCall *call,
			   List *(*find) (const SnowflakeConversion *conversion))
{
	List	   *owners = NIL;
	ListCell   *cell;

	foreach(cell, call->sequences)
		owners = list_append_unique_oid(owners, snowflake_table_owner(lfirst_oid(cell)));
	foreach(cell, owners)
		run_for_owner(call, lfirst_oid(cell), find);
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
		ereport(NOTICE, (errmsg("sequences of %s are already of kind %s", of, kind)));
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
	run_for_owners(call, snowflake_convert_prepare_statements);
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
	call->notices = find_notices(call);
	run_for_owners(call, snowflake_convert_kind_statements);
	snowflake_become_caller(&caller);
	report_kinds(call);
}
