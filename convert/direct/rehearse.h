/*-------------------------------------------------------------------------
 *
 * rehearse.h
 *	  Trying rows with new keys.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/rehearse.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_REHEARSE_H
#define SNOWFLAKE_CONVERT_REHEARSE_H

#include "convert/catalog/queries.h"

extern void snowflake_convert_refuse_pending_triggers(void);
extern List *snowflake_convert_rehearse(const SnowflakeConversion *conversion);

#endif							/* SNOWFLAKE_CONVERT_REHEARSE_H */
