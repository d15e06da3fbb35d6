/*-------------------------------------------------------------------------
 *
 * identity.h
 *	  Identity columns: their values come from our nextval().
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/identity.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_IDENTITY_H
#define SNOWFLAKE_IDENTITY_H

#include "sequences/copy_identity.h"

extern void snowflake_watch_identities(void);
extern SnowflakeCopiedTable *snowflake_prepare_copy(const Node *statement);

#endif							/* SNOWFLAKE_IDENTITY_H */
