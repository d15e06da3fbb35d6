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

#include "convert/catalog/queries.h"
#include "convert/online/names.h"
#include "convert/online/sessions.h"
#include "convert/online/steps.h"
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
	sessions = snowflake_convert_first(snowflake_convert_ask_server(NIL, sql_present_sessions));
	return list_make2(psprintf("CREATE OR REPLACE TRIGGER \"" SNOWFLAKE_ONLINE_SWAP_TRIGGER "\" BEFORE INSERT ON %s"
							   " FOR EACH ROW EXECUTE FUNCTION %s._snowflake_convert_copy(%s)",
							   table, quote_identifier(get_namespace_name(online->namespace)),
							   quote_literal_cstr(sessions)),
					  psprintf("ALTER TABLE %s DISABLE TRIGGER \"" SNOWFLAKE_ONLINE_SWAP_TRIGGER "\"", table));
}

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
	char	   *copied_at;
	char	   *result = NULL;
	MemoryContext old;
	List	   *rows;
	ListCell   *cell;

	rows = snowflake_convert_ask(&online->transaction.conversion, sql_copied_at);
	if (rows == NIL)
		return NULL;
	copied_at = snowflake_convert_first(rows);
	rows = snowflake_convert_ask_server(list_make1(copied_at), sql_old_snapshots);

	old = MemoryContextSwitchTo(online->context);
	if (is_first)
		online->swap.old_sessions = NIL;
	online->swap.relid = relid;
	online->swap.exported = rows != NIL && snowflake_convert_flag(linitial(rows), "exported");
	may_import |= online->swap.exported;
	foreach(cell, rows)
	{
		const SnowflakeRow *row = lfirst(cell);
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

	if (snowflake_convert_ask(conversion, sql_sessions) == NIL)
		return NULL;
	return psprintf("DROP TRIGGER \"" SNOWFLAKE_ONLINE_SWAP_TRIGGER "\" ON %s", key->table);
}

/*
 * Are there sessions that are older than the swap?  Returns which.
 */
char *
snowflake_online_find_old_sessions(const SnowflakeOnline *online)
{
	List	   *rows = snowflake_convert_ask(&online->transaction.conversion, sql_sessions);

	if (rows == NIL)
		return NULL;
	rows = snowflake_convert_ask_server(list_make1(snowflake_convert_first(rows)),
										sql_old_sessions);
	return snowflake_convert_first(rows);
}
