/*-------------------------------------------------------------------------
 *
 * conninfo.h
 *	  The check of a registry's connection string.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/conninfo.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CHECK_CONNINFO_H
#define SNOWFLAKE_CHECK_CONNINFO_H

extern const char *snowflake_check_conninfo(const char *conninfo);

#endif							/* SNOWFLAKE_CHECK_CONNINFO_H */
