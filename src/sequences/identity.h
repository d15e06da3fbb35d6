/*-------------------------------------------------------------------------
 *
 * identity.h
 *	  Identity columns, for lastval().
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/identity.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_IDENTITY_H
#define SNOWFLAKE_IDENTITY_H

extern void snowflake_watch_identities(void);

#endif							/* SNOWFLAKE_IDENTITY_H */
