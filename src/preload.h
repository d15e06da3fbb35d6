/*-------------------------------------------------------------------------
 *
 * preload.h
 *	  The hint for servers that did not preload the library.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/preload.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_PRELOAD_H
#define SNOWFLAKE_PRELOAD_H

extern int	snowflake_errhint_preload(void);

#endif							/* SNOWFLAKE_PRELOAD_H */
