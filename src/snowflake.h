/*-------------------------------------------------------------------------
 *
 * snowflake.h
 *	  Settings that several files need, and functions called at the start.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/snowflake.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_H
#define SNOWFLAKE_H

/* Settings. */
extern char *snowflake_scheme;
extern int	snowflake_datacenter_id;
extern int	snowflake_worker_id;	/* -1: never set, IDs are made with 0 */

extern char *snowflake_registry;	/* conninfo, empty: none */
extern char *snowflake_server_name; /* empty: see grant_worker.c */

/* api.c */
extern void snowflake_publish_api(void);

#endif							/* SNOWFLAKE_H */
