/*-------------------------------------------------------------------------
 *
 * range_task.h
 *	  The call for ranges, and how its answer is used.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_task.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_RANGE_TASK_H
#define SNOWFLAKE_RANGE_TASK_H

#include "registry_client/workers/range_request.h"

extern const RangeTaskKind snowflake_ranges_task;

#endif							/* SNOWFLAKE_RANGE_TASK_H */
