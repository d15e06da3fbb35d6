/*-------------------------------------------------------------------------
 *
 * subtransaction.c
 *	  Work in a subtransaction, whose errors do not end the transaction.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/subtransaction.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "convert/catalog/subtransaction.h"

/*
 * Was an error raised in a function of the server?
 *
 * That, and not its code, is what an error may be known by: functions of users, which
 * indexes, constraints and triggers call, raise errors with any code.
 */
bool
snowflake_convert_raised_in(const ErrorData *error, int sqlerrcode, const char *function)
{
	return error->sqlerrcode == sqlerrcode && error->funcname != NULL &&
		strcmp(error->funcname, function) == 0;
}

/*
 * Fail because of what somebody else has done meanwhile, so that all is undone and begins
 * again.
 */
void
snowflake_convert_give_way(const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg_internal("%s", why)));
}

/*
 * Is an error none of what was done, but that somebody else was first, so that it can be
 * tried again?  The server has no other sign of that a row of a catalog was updated at the
 * same time.
 */
bool
snowflake_convert_is_of_others(const ErrorData *error)
{
	return snowflake_convert_raised_in(error, ERRCODE_OBJECT_IN_USE, "snowflake_convert_give_way") ||
		snowflake_convert_raised_in(error, ERRCODE_LOCK_NOT_AVAILABLE, "ProcessInterrupts") ||
		snowflake_convert_raised_in(error, ERRCODE_T_R_DEADLOCK_DETECTED, "DeadLockReport") ||
		snowflake_convert_raised_in(error, ERRCODE_INTERNAL_ERROR, "simple_heap_update") ||
		snowflake_convert_raised_in(error, ERRCODE_INTERNAL_ERROR, "simple_heap_delete");
}

/*
 * Is an error one of what is tried, rather than of the circumstances?
 */
static bool
is_of_work(const ErrorData *error)
{
	switch (ERRCODE_TO_CATEGORY(error->sqlerrcode))
	{
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OPERATOR_INTERVENTION:
			return false;
		default:
			return !snowflake_convert_is_of_others(error);
	}
}

/*
 * Do something in a subtransaction, in the same memory context.  Returns what it
 * returns.  If there is an error, it is undone as well, the result is false, and the
 * error is raised, or set if there is a place for it.
 */
bool
snowflake_convert_do(SnowflakeWork work, void *argument, ErrorData **error)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile caught = NULL;
	volatile bool result = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		result = work(argument);
		if (result)
			ReleaseCurrentSubTransaction();
		else
			RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		caught = CopyErrorData();
		/* That of a parallel worker would not be kept. */
		if (caught->funcname != NULL)
			caught->funcname = pstrdup(caught->funcname);
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		result = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error != NULL)
		*error = caught;
	else if (caught != NULL)
		ReThrowError(caught);
	return result;
}

/*
 * The same, for what may fail: an error of the circumstances, such as a
 * cancelled statement, is raised.
 */
bool
snowflake_convert_attempt(SnowflakeWork work, void *argument, ErrorData **error)
{
	bool		result = snowflake_convert_do(work, argument, error);

	if (*error != NULL && !is_of_work(*error))
		ReThrowError(*error);
	return result;
}

/*
 * Try whether something succeeds.  Returns the message of the error if it does
 * not, otherwise NULL.
 */
char *
snowflake_convert_try(SnowflakeWork work, void *argument)
{
	ErrorData  *error;

	(void) snowflake_convert_attempt(work, argument, &error);
	return error == NULL ? NULL : error->message;
}
