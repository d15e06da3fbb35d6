/*-------------------------------------------------------------------------
 *
 * range_report.h
 *	  What this server was granted, for a registry that needs to know.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_report.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_RANGE_REPORT_H
#define SNOWFLAKE_RANGE_REPORT_H

#include "registry_client/workers/range_request.h"

extern void snowflake_want_report(bool wanted);
extern void snowflake_repeat_report(void);
extern bool snowflake_get_report(RangeTask *task, int max);
extern void snowflake_drop_report(void);
extern void snowflake_skip_report(const char *why);
extern void snowflake_note_reported(int n);

#endif							/* SNOWFLAKE_RANGE_REPORT_H */
