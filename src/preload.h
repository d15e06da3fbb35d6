/*-------------------------------------------------------------------------
 *
 * preload.h
 *	  What to say where the library was not loaded at the server's start.
 *
 * src/preload.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_PRELOAD_H
#define SNOWFLAKE_PRELOAD_H

extern int	snowflake_errhint_preload(void);

#endif							/* SNOWFLAKE_PRELOAD_H */
