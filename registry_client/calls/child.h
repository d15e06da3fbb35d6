/*-------------------------------------------------------------------------
 *
 * child.h
 *	  Child processes of a background worker, which can be given up.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/child.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CHILD_H
#define SNOWFLAKE_CHILD_H

#include "registry_client/calls/limited_wait.h"
#include "shared/compat.h"

typedef struct Child
{
	pid_t		pid;
	int			socket;			/* connected to the child's */
} Child;

/* The main function of a child: a socket to the parent, and an argument. */
typedef void (*ChildMain) (int socket, const void *arg);

/* For the parent. */
extern Child *snowflake_start_child(ChildMain run, const void *arg,
									StringInfo error);
extern bool snowflake_read_from_child(Child *child, void *buffer, size_t size,
									  const WaitLimit *limit,
									  SnowflakeWaitEvent event,
									  StringInfo error);
extern bool snowflake_write_to_child(Child *child, const StringInfoData *data,
									 const WaitLimit *limit,
									 SnowflakeWaitEvent event,
									 StringInfo error);
extern void snowflake_dismiss_child(Child *child);
extern void snowflake_end_child(Child *child);

/* For the child. */
extern void snowflake_write_to_parent(int socket, const void *buffer,
									  size_t size);
extern bool snowflake_read_from_parent(int socket, void *buffer, size_t size);

#endif							/* SNOWFLAKE_CHILD_H */
