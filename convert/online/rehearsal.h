/*-------------------------------------------------------------------------
 *
 * rehearsal.h
 *	  Whether what a swap creates again accepts bigint.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/rehearsal.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_REHEARSAL_H
#define SNOWFLAKE_ONLINE_REHEARSAL_H

#include "convert/catalog/queries.h"

extern bool snowflake_online_rehearse_swaps(const SnowflakeConversion *conversion,
											const List *steps,
											List **obstacles);

#endif							/* SNOWFLAKE_ONLINE_REHEARSAL_H */
