/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  What differs between PostgreSQL's major versions.
 *
 * src/compat.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_COMPAT_H
#define SNOWFLAKE_COMPAT_H

#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "snowflake needs PostgreSQL 15 or later"
#endif

/*
 * Since 17 an extension's wait events have names of their own; before, all of
 * them show as Extension.
 */
#if PG_VERSION_NUM >= 170000
#define snowflake_wait_event(name)	WaitEventExtensionNew(name)
#else
#define snowflake_wait_event(name)	PG_WAIT_EXTENSION
#endif

#endif							/* SNOWFLAKE_COMPAT_H */
