/*-------------------------------------------------------------------------
 *
 * subscriptions.h
 *	  Sequences whose position a subscription resets.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/subscriptions.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SUBSCRIPTIONS_H
#define SNOWFLAKE_SUBSCRIPTIONS_H

extern void snowflake_watch_subscriptions(void);

#endif							/* SNOWFLAKE_SUBSCRIPTIONS_H */
