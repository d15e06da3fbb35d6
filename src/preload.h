/*-------------------------------------------------------------------------
 *
 * preload.h
 *	  What to say where the library was not loaded at the server's start.
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
