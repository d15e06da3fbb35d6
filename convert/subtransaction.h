/*-------------------------------------------------------------------------
 *
 * subtransaction.h
 *	  Work whose errors do not end the transaction.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/subtransaction.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_SUBTRANSACTION_H
#define SNOWFLAKE_CONVERT_SUBTRANSACTION_H

#include "utils/elog.h"

extern ErrorData *snowflake_convert_do(void (*work) (void *argument), void *argument,
									   bool keep);
extern ErrorData *snowflake_convert_attempt(void (*work) (void *argument),
											void *argument, bool keep);
extern char *snowflake_convert_try(void (*work) (void *argument), void *argument);

#endif							/* SNOWFLAKE_CONVERT_SUBTRANSACTION_H */
