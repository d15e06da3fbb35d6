/*-------------------------------------------------------------------------
 *
 * sequences.c
 *	  Sequences that stay, and get another kind.
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
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "convert/catalog/findings.h"
#include "convert/direct/sequences.h"
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
	SnowflakeFinding *finding;

	if (!OidIsValid(conversion->schema) || conversion->sequences == NIL ||
		conversion->kind != SNOWFLAKE_CONVERT_SNOWFLAKE || id_width() <= DBL_MANT_DIG)
		return;
	finding = snowflake_convert_add_finding(findings, SNOWFLAKE_INFO, NULL,
											psprintf("schema %s",
													 quote_identifier(get_namespace_name(conversion->schema))),
											"new IDs are above 2^53",
											"For a program that is not your own, the scheme \"javascript\" is the safer one. Choose it before the first ID is generated.");
	finding->detail = "A program that holds them as doubles, such as one in JavaScript, rounds them without an error.";
}

/*
 * Where no kind was specified, sequences become snowflake sequences, if they can,
 * and there is no other generator.
 */
void
snowflake_convert_choose_kind(SnowflakeConversion *conversion, Oid generator)
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

/*
 * Find what prevents sequences from getting their kind.
 */
void
snowflake_convert_find_kind_obstacles(const SnowflakeConversion *conversion, List **obstacles)
{
	(void) snowflake_convert_ask_obstacles(conversion, sql_kind_obstacles, obstacles);
}

/*
 * The statements that have the registry know sequences, while clients use them.
 */
List *
snowflake_convert_prepare_statements(const SnowflakeConversion *conversion)
{
	return snowflake_convert_texts(snowflake_convert_ask(conversion, sql_prepare_statements));
}

/*
 * The statements that give them the kind.
 */
List *
snowflake_convert_kind_statements(const SnowflakeConversion *conversion)
{
	return snowflake_convert_texts(snowflake_convert_ask(conversion, sql_kind_statements));
}
