/*-------------------------------------------------------------------------
 *
 * api.h
 *	  Publishing the C interface for other extensions.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/server/api.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_API_PUBLISH_H
#define SNOWFLAKE_API_PUBLISH_H

extern void snowflake_publish_api(void);

#endif							/* SNOWFLAKE_API_PUBLISH_H */
