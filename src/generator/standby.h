/*-------------------------------------------------------------------------
 *
 * standby.h
 *	  Do the synchronous standbys have the WAL?
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/standby.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_STANDBY_H
#define SNOWFLAKE_STANDBY_H

#include "access/xlogdefs.h"

#include "shared/compat.h"

extern PGDLLEXPORT bool snowflake_standbys_have(XLogRecPtr lsn);

#endif							/* SNOWFLAKE_STANDBY_H */
