/*-------------------------------------------------------------------------
 *
 * catalog_rows.c
 *	  The rows of the catalogs that a conversion changes, and functions that it
 *	  calls by name.
 *
 * GRANT and REVOKE take no lock on a table, but update its rows in the catalogs.
 * Others do so with what belongs to a table: ALTER FUNCTION with the function
 * of a trigger, ALTER STATISTICS, DROP PUBLICATION.
 *
 * - While such a transaction is open, ALTER TABLE would wait for it, with its
 *	 locks, and then fail.  So it is waited for before.
 * - A swap takes over what it has found.  What is committed between that and the
 *	 swap would be lost: a privilege that was revoked would be granted again.  So
 *	 the rows are locked.  Who comes then waits, and fails if the swap has replaced
 *	 what it is about, otherwise it continues.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/catalog_rows.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/subtrans.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "lib/stringinfo.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

#include "convert/convert.h"
#include "convert/online/catalog_rows.h"
#include "convert/online/names.h"
#include "convert/rows.h"

/*
 * The rows about tables, an array of OIDs.  Of what may belong to others, only
 * what the owner of the table could change as well: who converts a table cannot
 * have others wait for their own objects.
 */
static const char *const rows_of_tables[] = {
	"pg_class r WHERE r.oid = ANY ('%s')",
	"pg_attribute r WHERE r.attrelid = ANY ('%s') AND r.attnum > 0",
	"pg_depend d JOIN pg_class r ON r.oid = d.objid AND r.relkind = 'S' WHERE d.refclassid = d.classid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND d.refobjid = ANY ('%s')",
	"pg_statistic_ext r JOIN pg_class t ON t.oid = r.stxrelid WHERE t.oid = ANY ('%s') AND pg_has_role(t.relowner, r.stxowner, 'USAGE')",
	"pg_publication_rel r JOIN pg_class t ON t.oid = r.prrelid JOIN pg_publication b ON b.oid = r.prpubid WHERE t.oid = ANY ('%s') AND pg_has_role(t.relowner, b.pubowner, 'USAGE')",
	"pg_trigger g JOIN pg_proc r ON r.oid = g.tgfoid JOIN pg_class t ON t.oid = g.tgrelid WHERE NOT g.tgisinternal AND t.oid = ANY ('%s') AND pg_has_role(t.relowner, r.proowner, 'USAGE')",
};

/*
 * Functions that a swap alters beside these.  To find them takes time if there is much
 * source, so that it is not done with locks that clients wait for.
 */
static const char row_functions[] =
"(" SNOWFLAKE_ROW_FUNCTIONS("SELECT t.* FROM pg_class t WHERE t.oid = ANY ('%s')") ") u(oid, owner) JOIN pg_proc r ON r.oid = u.oid WHERE " SNOWFLAKE_MAY_ALTER("u.owner", "r");

/* Functions in the definitions that a swap reads and writes again. */
static const char functions_of_tables[] =
"(SELECT '%s'::oid[]) s(tables), pg_proc r WHERE r.oid IN (SELECT d.refobjid FROM pg_depend d"
" WHERE d.refclassid = 'pg_proc'::regclass AND (d.classid, d.objid) IN ("
"   SELECT 'pg_policy'::regclass::oid, oid FROM pg_policy WHERE polrelid = ANY (tables)"
"   UNION ALL SELECT 'pg_rewrite'::regclass, oid FROM pg_rewrite WHERE ev_class = ANY (tables)"
"   UNION ALL SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgrelid = ANY (tables)"
"   UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE conrelid = ANY (tables)"
"   UNION ALL SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid = ANY (tables)"
"   UNION ALL SELECT 'pg_publication_rel'::regclass, oid FROM pg_publication_rel WHERE prrelid = ANY (tables)))"
" ORDER BY r.oid";

/*
 * The FROM clause of some of the rows.
 */
static char *
rows_from(const char *clause, const List *relids)
{
	StringInfoData array;
	StringInfoData result;
	const char *place = strstr(clause, "%s");
	ListCell   *cell;

	initStringInfo(&array);
	foreach(cell, relids)
		appendStringInfo(&array, "%s%u", array.len > 0 ? "," : "", lfirst_oid(cell));
	initStringInfo(&result);
	appendStringInfo(&result, "%.*s{%s}%s", (int) (place - clause), clause,
					 array.data, place + 2);
	return result.data;
}

/*
 * Who has this transaction?  NULL if it has ended.
 */
static char *
find_owner(TransactionId xid)
{
	List	   *rows;

	rows = snowflake_ask_server(psprintf("SELECT CASE WHEN l.pid IS NOT NULL THEN " SNOWFLAKE_PROCESS("Process")
										 "    ELSE format('Prepared transaction %%L of %%s', p.gid, p.owner) END"
										 " FROM pg_locks l LEFT JOIN pg_stat_activity USING (pid)"
										 "   LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid"
										 " WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted"
										 " AND l.transactionid = '%u'",
										 xid));
	return snowflake_convert_first(rows);
}

/*
 * Has somebody changed the rows about these tables, or functions that use their
 * rows, in a transaction that is open?  Returns who.
 */
char *
snowflake_online_find_changer(const List *relids)
{
	StringInfoData query;
	ListCell   *cell;

	initStringInfo(&query);
	for (size_t i = 0; i < lengthof(rows_of_tables); i++)
		appendStringInfo(&query, "%s SELECT r.xmax::text FROM %s AND r.xmax <> 0",
						 i > 0 ? " UNION" : "", rows_from(rows_of_tables[i], relids));
	appendStringInfo(&query, " UNION SELECT r.xmax::text FROM %s AND r.xmax <> 0",
					 rows_from(row_functions, relids));
	foreach(cell, snowflake_convert_texts(snowflake_ask_server(query.data)))
	{
		TransactionId xid = strtoul(lfirst(cell), NULL, 10);
		char	   *owner;

		/* It may be the ID of a multixact, which is any number. */
		if (!TransactionIdIsNormal(xid) || TransactionIdPrecedes(xid, TransactionXmin) ||
			!TransactionIdPrecedes(xid, ReadNextTransactionId()) ||
			TransactionIdIsCurrentTransactionId(xid) || !TransactionIdIsInProgress(xid))
			continue;

		/* A subtransaction that was released has no lock any more. */
		owner = find_owner(SubTransGetTopmostTransaction(xid));
		if (owner != NULL)
			return psprintf("%s has changed privileges or definitions of these tables, or of what belongs to them, in a transaction that is open.",
							owner);
	}
	return NULL;
}

/*
 * Lock the rows until the end of the transaction, or fail if somebody has
 * changed one: who waits for one and has others could be in a deadlock.
 */
void
snowflake_online_lock_rows(const List *relids)
{
	for (size_t i = 0; i < lengthof(rows_of_tables); i++)
		(void) snowflake_ask_server(psprintf("SELECT FROM %s FOR NO KEY UPDATE OF r NOWAIT",
											 rows_from(rows_of_tables[i], relids)));
	AcceptInvalidationMessages();
}

/*
 * Lock the functions that a swap reads by name, and looks for by that name again,
 * against getting another one.  Not their rows: ALTER FUNCTION ... RENAME waits for
 * these with a lock that the swap itself needs.  But, after that, the rows of those
 * that it alters.
 */
void
snowflake_online_lock_functions(const List *relids)
{
	List	   *rows = snowflake_ask_server(psprintf("SELECT r.oid FROM %s",
													 rows_from(functions_of_tables, relids)));
	ListCell   *cell;

	foreach(cell, snowflake_convert_oids(rows))
		LockDatabaseObject(ProcedureRelationId, lfirst_oid(cell), 0, AccessShareLock);
	(void) snowflake_ask_server(psprintf("SELECT FROM %s FOR NO KEY UPDATE OF r NOWAIT",
										 rows_from(row_functions, relids)));
	AcceptInvalidationMessages();
}
