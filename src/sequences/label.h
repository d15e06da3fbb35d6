/*-------------------------------------------------------------------------
 *
 * label.h
 *	  The labels of sequences: which have one, and its text.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/label.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_LABEL_H
#define SNOWFLAKE_LABEL_H

#include "ranges/slots.h"

#define SNOWFLAKE_LABEL_PROVIDER	"snowflake"

/* As no label, but in the view. */
#define SNOWFLAKE_LABEL_LOCAL		"local"

typedef enum SnowflakeSequenceKind
{
	SNOWFLAKE_KIND_LOCAL,		/* PostgreSQL's own */
	SNOWFLAKE_KIND_SNOWFLAKE,
	SNOWFLAKE_KIND_RANGE
} SnowflakeSequenceKind;

/* A position of a sequence, as it is in its file. */
typedef struct SequencePosition
{
	int64		last_value;
	bool		is_called;
} SequencePosition;

typedef struct SequenceLabel
{
	SnowflakeSequenceKind kind;
	bool		has_position;
	SequencePosition position;
	bool		by_default;		/* because of a setting, for a new table */
	char		database[NAMEDATALEN];	/* where it got the kind, or empty */
	char		name[SNOWFLAKE_RANGE_NAME_SIZE];	/* of a range sequence */
} SequenceLabel;

extern const char *snowflake_kind_name(SnowflakeSequenceKind kind);
extern bool snowflake_find_kind(const char *name, SnowflakeSequenceKind *kind);
extern bool snowflake_read_label(const char *string, SequenceLabel *label);
extern char *snowflake_write_label(const SequenceLabel *label);
extern char *snowflake_range_name(Oid relid);
extern char *snowflake_get_label(Oid relid);
extern PGDLLEXPORT Oid snowflake_find_labelled(bool (*matches) (Oid relid, void *arg),
											   void *arg);
extern Oid	snowflake_find_nonlocal_sequence(void);

#endif							/* SNOWFLAKE_LABEL_H */
