/*-------------------------------------------------------------------------
 *
 * calls.c
 *	  Names that are looked up again.
 *
 * What a conversion creates again, or evaluates with new IDs, is read from its text, in
 * which a function is a name.  Whoever may create functions in the schema of that name
 * can add one that matches better, at any time, and have it called with the rights of the
 * owner of the tables; or a type of that name, to which a call with one argument is a
 * cast then; and whoever owns a type can have a function called by its casts.  Obstacles
 * say whether there is one.  So from before they are looked for until all is created,
 * nobody creates or renames a function, an operator or a cast, or, if somebody else may
 * create or rename one in such a schema, a type.
 *
 * That is a lock on their catalogs.  CREATE FUNCTION releases its own at its end, so
 * there is no lock to see of a transaction that is open; but its rows are.  A temporary
 * table is a row of pg_type, too: those of other schemas do not matter.
 *
 * In texts and statements, tables are names, too, which stay because the tables are
 * locked.  But who owns a schema could rename it, and have a statement find another
 * table, whose code would then be called as the owner of this one.  So nobody does.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/calls.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_cast.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "convert/calls.h"
#include "convert/rows.h"
#include "queries/calls.sql.h"
#include "shared/compat.h"

/* Of those that keep others from writing, the weakest that only one session has. */
#define HOLD	ShareRowExclusiveLock

/*
 * When a catalog is locked: if something is looked up again; if a type could hide a
 * function, or another type; or if rows of schemas cannot be locked.
 */
typedef enum Need
{
	IF_CALLED,
	IF_CASTABLE,
	IF_READ_ONLY
} Need;

typedef struct Catalog
{
	Oid			relid;
	Need		need;
} Catalog;

static const Catalog catalogs[] = {
	{ProcedureRelationId, IF_CALLED},
	{OperatorRelationId, IF_CALLED},
	{CastRelationId, IF_CALLED},
	{TypeRelationId, IF_CASTABLE},
	{NamespaceRelationId, IF_READ_ONLY},
};

/* The schemas of what statements name. */
typedef struct Named
{
	List	   *schemas;
	List	   *castable;		/* those in which a type could hide something */
	bool		called;			/* is there anything to look up? */
} Named;

static bool
is_to_lock(const Catalog *catalog, const Named *named)
{
	switch (catalog->need)
	{
		case IF_CALLED:
			return named->called;
		case IF_CASTABLE:
			return named->castable != NIL;
		default:
			return XactReadOnly;
	}
}

/*
 * A transaction that is open, and has written rows of a catalog that matter; or none.
 */
static TransactionId
find_writer(const Catalog *catalog, const Named *named)
{
	Relation	relation = table_open(catalog->relid, NoLock);
	TransactionId writer = InvalidTransactionId;
	SnapshotData dirty;
	SysScanDesc scan;
	HeapTuple	tuple;

	InitDirtySnapshot(dirty);
	scan = systable_beginscan(relation, InvalidOid, false, &dirty, 0, NULL);
	while (!TransactionIdIsValid(writer) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		if (catalog->need != IF_CASTABLE ||
			list_member_oid(named->castable, ((Form_pg_type) GETSTRUCT(tuple))->typnamespace))
			writer = dirty.xmin;
	}
	systable_endscan(scan);
	table_close(relation, NoLock);
	return writer;
}

/*
 * Lock the catalogs until the end of the transaction.  Who waits for others has no lock on
 * them, for which these could wait.
 */
static void
lock_catalogs(const Named *named)
{
	for (;;)
	{
		TransactionId writer = InvalidTransactionId;

		CHECK_FOR_INTERRUPTS();
		for (size_t i = 0; i < lengthof(catalogs); i++)
		{
			if (is_to_lock(&catalogs[i], named))
				LockRelationOid(catalogs[i].relid, HOLD);
		}
		for (size_t i = 0; i < lengthof(catalogs) && !TransactionIdIsValid(writer); i++)
		{
			if (is_to_lock(&catalogs[i], named))
				writer = find_writer(&catalogs[i], named);
		}
		if (!TransactionIdIsValid(writer))
			return;
		for (size_t i = 0; i < lengthof(catalogs); i++)
		{
			if (is_to_lock(&catalogs[i], named))
				UnlockRelationOid(catalogs[i].relid, HOLD);
		}
		XactLockTableWait(writer, NULL, NULL, XLTW_None);
	}
}

static void
hold(const Named *named)
{
	if (RecoveryInProgress())
		return;
	lock_catalogs(named);
	if (!XactReadOnly && named->schemas != NIL)
	{
		SPI_connect();
		(void) snowflake_convert_ask_server(snowflake_convert_oids_parameter(named->schemas),
											sql_lock_schemas);
		SPI_finish();
	}
	AcceptInvalidationMessages();
}

/*
 * Have the names of statements, and the functions, operators, types and casts that are
 * looked up again, found as they are now, until the end of the transaction.
 */
void
snowflake_convert_hold_calls(const SnowflakeConversion *conversion)
{
	Named		named = {0};
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_named_schemas))
	{
		char	  **row = lfirst(cell);
		Oid			schema = snowflake_convert_oid(row, "schema");

		named.schemas = lappend_oid(named.schemas, schema);
		named.called |= snowflake_convert_flag(row, "called");
		if (snowflake_convert_flag(row, "castable"))
			named.castable = lappend_oid(named.castable, schema);
	}
	hold(&named);
}

/*
 * The same for the names of relations alone.
 */
void
snowflake_convert_hold_names(const List *relids)
{
	Named		named = {0};
	ListCell   *cell;

	foreach(cell, relids)
		named.schemas = list_append_unique_oid(named.schemas,
											   get_rel_namespace(lfirst_oid(cell)));
	hold(&named);
}

/*
 * The same for the tables of a conversion.
 */
void
snowflake_convert_hold_tables(const SnowflakeConversion *conversion)
{
	ArrayType  *tables = DatumGetArrayTypeP(conversion->targets[0]);
	List	   *relids = NIL;

	for (int i = 0; i < ArrayGetNItems(ARR_NDIM(tables), ARR_DIMS(tables)); i++)
		relids = list_append_unique_oid(relids, ((Oid *) ARR_DATA_PTR(tables))[i]);
	snowflake_convert_hold_names(relids);
}

static LOCKTAG
lock_of(Oid catalog)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, catalog);
	return tag;
}

/*
 * What is held now is also held after the transaction, until it is released, or a
 * transaction fails.
 */
void
snowflake_convert_hold_calls_longer(void)
{
	for (size_t i = 0; i < lengthof(catalogs); i++)
	{
		LOCKTAG		tag = lock_of(catalogs[i].relid);
		LockRelId	relation = {.relId = catalogs[i].relid,.dbId = MyDatabaseId};

		if (snowflake_lock_held(&tag, HOLD))
			LockRelationIdForSession(&relation, HOLD);
	}
}

/*
 * Release that, if there is any of it.
 */
void
snowflake_convert_release_calls(void)
{
	for (size_t i = 0; i < lengthof(catalogs); i++)
	{
		LOCKTAG		tag = lock_of(catalogs[i].relid);

		if (snowflake_lock_held(&tag, HOLD))
			(void) LockRelease(&tag, HOLD, true);
	}
}
