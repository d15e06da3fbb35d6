/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Differences between PostgreSQL's major versions.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * shared/compat.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_COMPAT_H
#define SNOWFLAKE_COMPAT_H

#include "fmgr.h"
#include "nodes/nodes.h"
#include "storage/lock.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "snowflake needs PostgreSQL 15 or later"
#endif

/*
 * What is declared PGDLLEXPORT is visible outside of its library, and nothing else,
 * because of -fvisibility=hidden.  Since 16, the server's headers take care of that,
 * also for functions that SQL calls.
 */
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT	__attribute__((visibility("default")))

#undef PG_FUNCTION_INFO_V1
#define PG_FUNCTION_INFO_V1(name) \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	extern PGDLLEXPORT const Pg_finfo_record *pg_finfo_##name(void); \
	const Pg_finfo_record * \
	pg_finfo_##name(void) \
	{ \
		static const Pg_finfo_record info = {1}; \
		return &info; \
	} \
	extern int	no_such_variable
#endif

/*
 * Since 18, a module has a name and a version, which comes from the control
 * file; pg_get_loaded_modules() shows them.
 */
#if PG_VERSION_NUM >= 180000
#define SNOWFLAKE_MODULE_MAGIC(library) \
	PG_MODULE_MAGIC_EXT(.name = library, .version = SNOWFLAKE_VERSION)
#else
#define SNOWFLAKE_MODULE_MAGIC(library) PG_MODULE_MAGIC
#endif

/* Location of MAX_BACKENDS. */
#if PG_VERSION_NUM >= 180000
#include "storage/procnumber.h"
#else
#include "postmaster/postmaster.h"
#endif

/* Location of the macros for variable-length values. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* How a check hook allocates and frees the value of a string. */
#if PG_VERSION_NUM >= 160000
#define snowflake_guc_strdup(s)	guc_strdup(LOG, s)
#define snowflake_guc_free(s)	guc_free(s)
#else
#define snowflake_guc_strdup(s)	strdup(s)
#define snowflake_guc_free(s)	free(s)
#endif

/* Before the return type of a function that does not return. */
#if PG_VERSION_NUM >= 180000
#define snowflake_noreturn	pg_noreturn
#else
#define snowflake_noreturn	pg_attribute_noreturn()
#endif

/*
 * Since 17, an extension's wait events have their own names; before, all of
 * them are shown as Extension.
 */
#if PG_VERSION_NUM >= 170000
#define snowflake_new_wait_event(name)	WaitEventExtensionNew(name)
#else
#define snowflake_new_wait_event(name)	((void) (name), PG_WAIT_EXTENSION)
#endif

/*
 * Soft errors, which PostgreSQL has since 16: a function whose context is an
 * ErrorSaveContext notes an error there and returns, instead of raising it.
 * Before 16, only this extension's own functions know of it.
 */
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#else
#define T_ErrorSaveContext	((NodeTag) PG_INT32_MAX)
#define ereturn(context, dummy_value, ...) \
	do { \
		Node	   *context_ = (context); \
		if (context_ != NULL && IsA(context_, ErrorSaveContext)) \
		{ \
			((ErrorSaveContext *) context_)->error_occurred = true; \
			return dummy_value; \
		} \
		ereport(ERROR, __VA_ARGS__); \
	} while (0)

typedef struct ErrorSaveContext
{
	NodeTag		type;
	bool		error_occurred;
} ErrorSaveContext;
#endif

/* The checks of a role's right to call a function, and whether it owns a database. */
#if PG_VERSION_NUM >= 160000
#define snowflake_owns_database(database, role) \
	object_ownercheck(DatabaseRelationId, database, role)
#define snowflake_function_aclcheck(function, role) \
	object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE)
#else
#define snowflake_owns_database(database, role)	pg_database_ownercheck(database, role)
#define snowflake_function_aclcheck(function, role) \
	pg_proc_aclcheck(function, role, ACL_EXECUTE)
#endif

/* Has this transaction a lock like this, or a stronger one? */
#if PG_VERSION_NUM >= 170000
#define snowflake_holds_lock(tag, mode)	LockHeldByMe(tag, mode, true)
#else
static inline bool
snowflake_holds_lock(const LOCKTAG *tag, LOCKMODE mode)
{
	for (; mode <= MaxLockMode; mode++)
	{
		if (LockHeldByMe(tag, mode))
			return true;
	}
	return false;
}
#endif

/* The setting that limits replication origins, and its value. */
#if PG_VERSION_NUM >= 180000
#define SNOWFLAKE_ORIGINS_SETTING	"max_active_replication_origins"
#define snowflake_max_origins		max_active_replication_origins
#else
#define SNOWFLAKE_ORIGINS_SETTING	"max_replication_slots"
#define snowflake_max_origins		max_replication_slots
#endif

/* The type of a replication origin's ID. */
#if PG_VERSION_NUM >= 190000
#define SNOWFLAKE_ORIGIN_ID	ReplOriginId
#else
#define SNOWFLAKE_ORIGIN_ID	RepOriginId
#endif

/* Since 18, the executor runs a statement only once. */
#if PG_VERSION_NUM >= 180000
#define snowflake_executor_run(desc) \
	ExecutorRun(desc, ForwardScanDirection, 0)
#else
#define snowflake_executor_run(desc) \
	ExecutorRun(desc, ForwardScanDirection, 0, true)
#endif

/*
 * Make an UPDATE compute no stored generated column: as if that had been looked for,
 * with none found.  Since 16, INSERT has its own; since 18, which columns these are
 * has a flag.
 */
#if PG_VERSION_NUM >= 180000
#define snowflake_skip_generated(relation, natts) \
	((relation)->ri_extraUpdatedCols_valid = true, \
	 (relation)->ri_NumGeneratedNeededU = 0, \
	 (relation)->ri_GeneratedExprsU = palloc0_array(ExprState *, natts))
#elif PG_VERSION_NUM >= 160000
#define snowflake_skip_generated(relation, natts) \
	((relation)->ri_NumGeneratedNeededU = 0, \
	 (relation)->ri_GeneratedExprsU = palloc0_array(ExprState *, natts))
#else
#define snowflake_skip_generated(relation, natts) \
	((relation)->ri_NumGeneratedNeeded = 0, \
	 (relation)->ri_GeneratedExprs = palloc0_array(ExprState *, natts))
#endif

/* Does this process hold a lock?  Since 17, a stronger one may count. */
#if PG_VERSION_NUM >= 170000
#define snowflake_lock_held(tag, mode)	LockHeldByMe(tag, mode, false)
#else
#define snowflake_lock_held(tag, mode)	LockHeldByMe(tag, mode)
#endif

/* Since 19, a query may be planned for EXPLAIN. */
#if PG_VERSION_NUM >= 190000
#define snowflake_plan_query(query, text)	pg_plan_query(query, text, 0, NULL, NULL)
#else
#define snowflake_plan_query(query, text)	pg_plan_query(query, text, 0, NULL)
#endif

/* The number of this process, starting with 0. */
#if PG_VERSION_NUM >= 170000
#define snowflake_process_number()	MyProcNumber
#else
#define snowflake_process_number()	(MyProc->pgprocno)
#endif

/* Since 19, the planner knows of EXPLAIN. */
#if PG_VERSION_NUM >= 190000
#define SNOWFLAKE_PLANNER_PARAMETER	, ExplainState *es
#define SNOWFLAKE_PLANNER_ARGUMENT	, es
#else
#define SNOWFLAKE_PLANNER_PARAMETER
#define SNOWFLAKE_PLANNER_ARGUMENT
#endif

/* Since 16, privileges are not in the range table. */
#if PG_VERSION_NUM >= 160000
#define SNOWFLAKE_PERMS_PARAMETER	, List *infos
#define SNOWFLAKE_PERMS_ARGUMENT	, infos
#else
#define SNOWFLAKE_PERMS_PARAMETER
#define SNOWFLAKE_PERMS_ARGUMENT
#endif

/* The number of this process's transaction. */
#if PG_VERSION_NUM >= 170000
#define snowflake_transaction()	(MyProc->vxid.lxid)
#else
#define snowflake_transaction()	(MyProc->lxid)
#endif

/*
 * The checkpointer's copy of synchronous_standby_names: whether it is set.  In
 * the minor versions of 2025, the bool became a byte with two flags, at the
 * same offset.
 */
#ifdef SYNC_STANDBY_DEFINED
#define snowflake_standbys_byte		(WalSndCtl->sync_standbys_status)
#else
#define snowflake_standbys_byte		(WalSndCtl->sync_standbys_defined)
#endif

/*
 * Is no background worker registered, and if there is one, which was the last?
 * It is at the head of a list, which is doubly linked since 18.
 */
#if PG_VERSION_NUM >= 180000
#define snowflake_no_workers()	dlist_is_empty(&BackgroundWorkerList)
#define snowflake_last_worker() \
	dlist_head_element(RegisteredBgWorker, rw_lnode, &BackgroundWorkerList)
#else
#define snowflake_no_workers()	slist_is_empty(&BackgroundWorkerList)
#define snowflake_last_worker() \
	slist_head_element(RegisteredBgWorker, rw_lnode, &BackgroundWorkerList)
#endif

/* The sequence of an identity column. */
#if PG_VERSION_NUM >= 170000
#define snowflake_identity_sequence(relation, attnum) \
	getIdentitySequence(relation, attnum, false)
#else
#define snowflake_identity_sequence(relation, attnum) \
	getIdentitySequence(RelationGetRelid(relation), attnum, false)
#endif

/*
 * Is this the worker of a subscription that copies the positions of sequences?  There
 * is one since 19.  The caller includes replication/worker_internal.h.
 */
#if PG_VERSION_NUM >= 190000
#define snowflake_copies_positions()	am_sequencesync_worker()
#else
#define snowflake_copies_positions()	false
#endif

#endif							/* SNOWFLAKE_COMPAT_H */
