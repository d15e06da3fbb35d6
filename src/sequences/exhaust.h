/*-------------------------------------------------------------------------
 *
 * exhaust.h
 *	  Sequences that are not local are exhausted, also after what resets them.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/exhaust.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_EXHAUST_H
#define SNOWFLAKE_EXHAUST_H

#include "sequences/label.h"

extern PGDLLEXPORT SequenceLabel snowflake_sequence_label(Oid relid);
extern void snowflake_exhaust(Oid relid);
extern bool snowflake_exhaust_in_place(Oid relid);
extern void snowflake_watch_resets(void);
extern void snowflake_note_change(Oid relid);
extern void snowflake_begin_resets(void);
extern void snowflake_end_resets(void);
extern void snowflake_exhaust_reset(bool altered);

#endif							/* SNOWFLAKE_EXHAUST_H */
