/*-------------------------------------------------------------------------
 *
 * sessions.c
 *	  The sessions that a swap and the default wait for: those with snapshots that
 *	  are older than the copies of the columns, and those that may have statements
 *	  which were prepared before the swap.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/sessions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/value.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "convert/online/names.h"
#include "convert/online/sessions.h"
#include "convert/online/steps.h"
#include "convert/rows.h"
#include "shared/table_owner.h"

/*
 * The statements that keep which sessions there are when the key is swapped.
 * Process IDs mean something until the server is started again only.
 */
List *
snowflake_online_session_statements(const SnowflakeOnline *online)
{
	char	   *table = snowflake_relation_name(online->relid);
	char	   *sessions;

	/* What the list was earlier in this transaction would be repeated. */
	pgstat_clear_snapshot();
	sessions = snowflake_convert_first(snowflake_ask_server("SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),"
															"  string_agg(pid::text, ' ' ORDER BY pid))"
															" FROM pg_stat_activity"
															" WHERE datname = current_database() AND backend_type = 'client backend'"));
	return list_make2(psprintf("CREATE OR REPLACE TRIGGER \"" SNOWFLAKE_SWAP_TRIGGER "\" BEFORE INSERT ON %s"
							   " FOR EACH ROW EXECUTE FUNCTION %s.snowflake_convert_copy(%s)",
							   table, quote_identifier(get_namespace_name(online->namespace)),
							   quote_literal_cstr(sessions)),
					  psprintf("ALTER TABLE %s DISABLE TRIGGER \"" SNOWFLAKE_SWAP_TRIGGER "\"", table));
}

/*
 * Who has a snapshot that may be older than the copies of the columns?  The
 * argument is a transaction ID as old as those.  The last column says whether a
 * session can import the snapshot of another one.
 *
 * A snapshot is not older because it has an older xmin: any transaction of the
 * server that is open for long holds that back.  So of sessions, those are waited
 * for that were there at the first look, and any that may have imported a
 * snapshot since then, because one was exported at this look or the one before,
 * or because no transaction is open that would explain the xmin.  Of a standby
 * nothing else is known.
 */
#define OLD_SNAPSHOTS \
"SELECT key, format(CASE WHEN holder IS NULL THEN '%%s has a snapshot that is older than the copy of the columns.'" \
"    ELSE '%%s may have a snapshot that is older than the copy of the columns, until %%s has ended.' END," \
"    who, holder) AS sentence," \
"  EXISTS (SELECT FROM pg_ls_dir('pg_snapshots'))::int AS exported," \
"  (age(xmin) > ALL (SELECT age(backend_xid) FROM pg_stat_activity WHERE backend_xid IS NOT NULL" \
"                    UNION ALL SELECT age(transaction) FROM pg_prepared_xacts))::int AS unexplained" \
" FROM (SELECT format('%%s %%s', pid, extract(epoch FROM xact_start)), " SNOWFLAKE_PROCESS("Process") ", backend_xmin" \
"       FROM pg_stat_activity" \
"       WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'" \
"       AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)" \
"       UNION ALL" \
"       SELECT NULL, " SNOWFLAKE_PROCESS("Process") ", backend_xmin FROM pg_stat_activity WHERE datname IS NULL AND backend_type = 'walsender'" \
"       UNION ALL" \
"       SELECT NULL, format('Replication slot \"%%s\"', slot_name), xmin FROM pg_replication_slots" \
"       WHERE coalesce(database = current_database(), true)) s(key, who, xmin)" \
"  LEFT JOIN LATERAL (" \
"    SELECT " SNOWFLAKE_PROCESS("process") " FROM pg_stat_activity WHERE backend_xid = s.xmin" \
"    UNION ALL" \
"    SELECT format('prepared transaction %%L of %%s', gid, owner) FROM pg_prepared_xacts WHERE transaction = s.xmin) h(holder)" \
"    ON key IS NULL" \
" WHERE age(xmin) >= age('%s'::xid) ORDER BY age(xmin) DESC, key"

/*
 * Does somebody have a snapshot that is older than the copies of the columns?  In
 * the new columns it would see NULL.  Returns who.
 *
 * Whoever has accessed the table holds a lock on it.  CREATE INDEX CONCURRENTLY
 * has waited for the others, but for none on a standby, and for none if a foreign
 * key was created later.  A standby says how old its snapshots are if it has
 * hot_standby_feedback.
 */
char *
snowflake_online_find_old_snapshot(SnowflakeOnline *online, Oid relid)
{
	bool		is_first = online->swap.relid != relid;
	bool		may_import = is_first || online->swap.exported;
	char	   *result = NULL;
	MemoryContext old;
	List	   *rows;
	ListCell   *cell;

	rows = snowflake_ask(&online->transaction.conversion,
						 psprintf("%s SELECT k.xmin FROM pg_constraint k JOIN tab ON relid = conrelid"
								  " WHERE k.contype = 'c' AND k.convalidated"
								  " AND k.conname IN (" SNOWFLAKE_COPY_CHECKS ")"
								  " ORDER BY age(k.xmin) LIMIT 1",
								  snowflake_online_tables));
	if (rows == NIL)
		return NULL;
	rows = snowflake_ask_server(psprintf(OLD_SNAPSHOTS, snowflake_convert_first(rows)));

	old = MemoryContextSwitchTo(online->context);
	if (is_first)
		online->swap.old_sessions = NIL;
	online->swap.relid = relid;
	online->swap.exported = rows != NIL && snowflake_convert_flag(linitial(rows), "exported");
	may_import |= online->swap.exported;
	foreach(cell, rows)
	{
		char	  **row = lfirst(cell);
		char	   *name = snowflake_convert_text(row, "key");
		String	   *key = name == NULL ? NULL : makeString(pstrdup(name));

		if (key != NULL && (may_import || snowflake_convert_flag(row, "unexplained")))
			online->swap.old_sessions = lappend(online->swap.old_sessions, key);
		if (result == NULL && (key == NULL || list_member(online->swap.old_sessions, key)))
			result = snowflake_convert_text(row, "sentence");
	}
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * The statement that drops the list of sessions; NULL if there is none.
 */
char *
snowflake_online_drop_sessions(const SnowflakeOnline *online)
{
	const SnowflakeConversion *conversion = &online->transaction.conversion;
	const SnowflakeKey *key = linitial(conversion->keys);

	if (snowflake_ask(conversion, psprintf("%s SELECT FROM swapped", snowflake_online_tables)) == NIL)
		return NULL;
	return psprintf("DROP TRIGGER \"" SNOWFLAKE_SWAP_TRIGGER "\" ON %s", key->table);
}

/*
 * Are there sessions that are older than the swap?  Returns which.
 */
char *
snowflake_online_find_old_sessions(const SnowflakeOnline *online)
{
	List	   *rows = snowflake_ask(&online->transaction.conversion,
									 psprintf("%s SELECT sessions FROM swapped",
											  snowflake_online_tables));
	char	   *sessions;

	if (rows == NIL)
		return NULL;
	sessions = quote_literal_cstr(snowflake_convert_first(rows));
	rows = snowflake_ask_server(psprintf("SELECT format('%%s sessions are older than the swap, and may have prepared statements: %%s.',"
										 "  count(*), string_agg(format('process %%s (%%s, %%s)', pid, usename,"
										 "    coalesce(nullif(application_name, ''), backend_type)), ', ' ORDER BY pid))"
										 " FROM pg_stat_activity"
										 " WHERE datname = current_database() AND pid <> pg_backend_pid()"
										 " AND backend_type = 'client backend'"
										 " AND pid::text = ANY (string_to_array(%s, ' '))"
										 " AND starts_with(%s, extract(epoch FROM pg_postmaster_start_time())::text)"
										 " HAVING count(*) > 0",
										 sessions, sessions));
	return snowflake_convert_first(rows);
}
