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

extern FuncExpr *snowflake_marked_call(Oid function, Oid sequence);
extern bool snowflake_is_marked(const Node *call);
extern void snowflake_unmark_call(FuncExpr *call);
extern void snowflake_watch_copies(void);
extern void snowflake_renew_identities(Oid relid);
extern SnowflakeCopiedTable *snowflake_begin_identities(const CopyStmt * copy);
extern bool snowflake_end_identity(const FuncExpr *call);
extern void snowflake_end_identities(SnowflakeCopiedTable *table);
extern void snowflake_close_identities(SnowflakeCopiedTable *table);

#endif							/* SNOWFLAKE_COPY_IDENTITY_H */
