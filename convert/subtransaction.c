/*-------------------------------------------------------------------------
 *
 * subtransaction.c
 *	  Work in a subtransaction, whose errors do not end the transaction.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/subtransaction.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "convert/subtransaction.h"

/*
 * Is an error one of what is tried, rather than of the circumstances?
 */
static bool
is_of_work(int sqlerrcode)
{
	switch (ERRCODE_TO_CATEGORY(sqlerrcode))
	{
		case ERRCODE_TRANSACTION_ROLLBACK:
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OPERATOR_INTERVENTION:
			return false;
		default:
			return sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE;
	}
}

/*
 * Do something in a subtransaction, in the same memory context, and keep or
 * undo what it changed.  If there is an error, it is undone as well, and the
 * error returned; otherwise the result is NULL.
 */
ErrorData *
snowflake_convert_do(void (*work) (void *argument), void *argument, bool keep)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(argument);
		if (keep)
			ReleaseCurrentSubTransaction();
		else
			RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}

/*
 * The same, for what may fail: an error of the circumstances, such as a
 * cancelled statement, is raised.
 */
ErrorData *
snowflake_convert_attempt(void (*work) (void *argument), void *argument, bool keep)
{
	ErrorData  *error = snowflake_convert_do(work, argument, keep);

	if (error != NULL && !is_of_work(error->sqlerrcode))
		ReThrowError(error);
	return error;
}

/*
 * Try whether something succeeds.  Returns the message of the error if it does
 * not, otherwise NULL.
 */
char *
snowflake_convert_try(void (*work) (void *argument), void *argument)
{
	ErrorData  *error = snowflake_convert_attempt(work, argument, true);

	return error == NULL ? NULL : error->message;
}
