/*-------------------------------------------------------------------------
 *
 * preload_hint.h
 *	  The hint for servers that did not preload the library.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/preload_hint.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_PRELOAD_HINT_H
#define SNOWFLAKE_PRELOAD_HINT_H

extern int	snowflake_errhint_preload(void);

#endif							/* SNOWFLAKE_PRELOAD_HINT_H */
