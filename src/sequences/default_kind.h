/*-------------------------------------------------------------------------
 *
 * default_kind.h
 *	  The kind that sequences of new tables get.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/default_kind.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_DEFAULT_KIND_H
#define SNOWFLAKE_DEFAULT_KIND_H

#include "sequences/label.h"

extern SnowflakeSequenceKind snowflake_kind_for(Oid type);
extern SnowflakeSequenceKind snowflake_kind_of(Oid sequence, Oid type);
extern Oid	snowflake_type_with(SnowflakeSequenceKind kind, const char *column,
								Oid type);
extern bool snowflake_fits_kind(SnowflakeSequenceKind kind, Oid type);
extern void snowflake_warn_local(Oid sequence, const char *reason);
extern void snowflake_make_nonlocal(Oid sequence, Oid type, const char *query);

#endif							/* SNOWFLAKE_DEFAULT_KIND_H */
