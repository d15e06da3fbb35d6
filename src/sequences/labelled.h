/*-------------------------------------------------------------------------
 *
 * labelled.h
 *	  Which sequences have a label, and which one.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/labelled.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_LABELLED_H
#define SNOWFLAKE_LABELLED_H

#define SNOWFLAKE_LABEL_PROVIDER	"snowflake"

/* As no label, but in the view. */
#define SNOWFLAKE_LABEL_LOCAL		"local"

extern char *snowflake_get_label(Oid relid);
extern PGDLLEXPORT Oid snowflake_find_labelled(bool (*matches) (Oid relid, void *arg),
													void *arg);
extern Oid	snowflake_find_nonlocal_sequence(void);

#endif							/* SNOWFLAKE_LABELLED_H */
