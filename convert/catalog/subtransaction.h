/*-------------------------------------------------------------------------
 *
 * subtransaction.h
 *	  Work whose errors do not end the transaction.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/subtransaction.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_SUBTRANSACTION_H
#define SNOWFLAKE_CONVERT_SUBTRANSACTION_H

#include "utils/elog.h"

/* What to do.  If it returns true, what it has changed is kept, otherwise it is undone. */
typedef bool (*SnowflakeWork) (void *argument);

extern bool snowflake_convert_do(SnowflakeWork work, void *argument, ErrorData **error);
extern bool snowflake_convert_attempt(SnowflakeWork work, void *argument, ErrorData **error);
extern char *snowflake_convert_try(SnowflakeWork work, void *argument);
extern bool snowflake_convert_raised_in(const ErrorData *error, int sqlerrcode,
										const char *function);
extern bool snowflake_convert_is_of_others(const ErrorData *error);
extern void snowflake_convert_give_way(const char *why);

#endif							/* SNOWFLAKE_CONVERT_SUBTRANSACTION_H */
