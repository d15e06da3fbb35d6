/*-------------------------------------------------------------------------
 *
 * report.h
 *	  Which numbers of range sequences a database has.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/report.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_REPORT_H
#define SNOWFLAKE_REPORT_H

#include "ranges/needs.h"
#include "shared/compat.h"

extern PGDLLEXPORT void snowflake_report_sequences(void (*report) (const RangeReport *report,
																   void *arg),
												   void *arg);

#endif							/* SNOWFLAKE_REPORT_H */
