/*-------------------------------------------------------------------------
 *
 * ids.h
 *	  Functions on snowflake IDs that other files need.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ids/ids.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_IDS_H
#define SNOWFLAKE_IDS_H

extern void snowflake_forget_currval(void);

#endif							/* SNOWFLAKE_IDS_H */
