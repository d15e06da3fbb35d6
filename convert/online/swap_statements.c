/*-------------------------------------------------------------------------
 *
 * swap_statements.c
 *	  The statements that swap the columns of a table.
 *
 * The statements are found and executed while the table is locked.  All that
 * depends on the old columns is dropped by a statement of its own, never by
 * CASCADE.  Then snowflake_online_check_swap() looks whether something else depends
 * on them, which would be dropped with them without notice.  Only then they
 * are dropped; the new ones get their names, and what hung on the old ones is
 * created again from its definition, which has these names already.
 *
 * A partitioned table is swapped with all its partitions.  What they have from
 * their parent is dropped and created with that; what they have alone, or have
 * changed, is treated as that of any table.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/swap_statements.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/queries.h"
#include "convert/online/steps.h"
#include "convert/online/swap_statements.h"
#include "shared/table_owner.h"

/*
 * The statements of a swap: until the old columns can be dropped, and from
 * then on.
 */
void
snowflake_online_swap_statements(const SnowflakeConversion *conversion, Oid relid,
								 List **before_drop, List **after_drop)
{
	ListCell   *cell;

	*before_drop = NIL;
	*after_drop = NIL;
	foreach(cell, snowflake_convert_ask_of(conversion, relid, sql_swap_statements))
	{
		const SnowflakeRow *row = lfirst(cell);
		char	   *command = snowflake_convert_text(row, "command");

		if (command == NULL)
			elog(ERROR, "no statement in stage %s of a swap",
				 snowflake_convert_text(row, "stage"));
		if (snowflake_convert_flag(row, "after_drop"))
			*after_drop = lappend(*after_drop, command);
		else
			*before_drop = lappend(*before_drop, command);
	}
}

/*
 * Fail, because the columns cannot be swapped any more.
 */
static void
report_change(Oid relid, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("table %s was changed during the conversion",
					snowflake_relation_name(relid)),
			 errdetail("%s.", detail),
			 errhint("Its columns were not swapped. Call snowflake_convert_online() again.")));
}

/*
 * Fail if there are rows, which say why.
 */
static void
check_none(Oid relid, List *rows, const char *message)
{
	if (rows != NIL)
		report_change(relid, psprintf("%s %s", message, snowflake_convert_first(rows)));
}

/*
 * Is all there that takes the place of the old columns, and are there no obstacles
 * that were not there when the call began?
 */
void
snowflake_online_check_swap(const SnowflakeConversion *conversion, Oid relid,
							const List *obstacles)
{
	check_none(relid, snowflake_convert_ask_of(conversion, relid, sql_missing),
			   "There is no counterpart for");
	if (obstacles != NIL)
		report_change(relid, ((SnowflakeFinding *) linitial(obstacles))->line);
}

/*
 * The names of relations, by which views that are created again are found.
 */
char *
snowflake_online_swap_names(const List *relids)
{
	List	   *tables = snowflake_convert_oids_parameter(relids);

	return snowflake_convert_first(snowflake_convert_ask_server(tables, sql_swap_names));
}

/*
 * The privileges on views, and columns of relations, by which those
 * before a swap and after it are compared.
 */
char *
snowflake_online_swap_privileges(char *names)
{
	return snowflake_convert_first(snowflake_convert_ask_server(list_make1(names),
																sql_swap_privileges));
}

/*
 * Fail if privileges are not as they were.  What the swap has found is locked,
 * but for default privileges, of which there may be others since then; and an
 * event trigger may grant some.
 */
void
snowflake_online_check_privileges(Oid relid, char *names, const char *privileges)
{
	if (strcmp(snowflake_online_swap_privileges(names), privileges) != 0)
		report_change(relid, "Its views or columns would have other privileges, by new default privileges or an event trigger");
}

/*
 * Before the old columns are dropped: does anything still depend on them?
 */
void
snowflake_online_check_drop(Oid relid, const List *trees)
{
	check_none(relid,
			   snowflake_convert_ask_with(snowflake_convert_oids_parameter(trees),
										  sql_dependents_of_columns),
			   "The old column would be dropped with");
}
