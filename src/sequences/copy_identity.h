/*-------------------------------------------------------------------------
 *
 * copy_identity.h
 *	  Identity columns that COPY FROM fills.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/copy_identity.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_COPY_IDENTITY_H
#define SNOWFLAKE_COPY_IDENTITY_H

#include "nodes/parsenodes.h"

typedef struct SnowflakeCopiedTable SnowflakeCopiedTable;

extern void snowflake_watch_copies(void);
extern SnowflakeCopiedTable *snowflake_begin_identities(const CopyStmt * copy);
extern bool snowflake_end_identity(const FuncExpr *call);
extern void snowflake_end_identities(SnowflakeCopiedTable *table);
extern void snowflake_close_identities(SnowflakeCopiedTable *table);

#endif							/* SNOWFLAKE_COPY_IDENTITY_H */
