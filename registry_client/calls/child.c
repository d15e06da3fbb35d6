/*-------------------------------------------------------------------------
 *
 * child.c
 *	  Child processes of a background worker, which can be given up.
 *
 * Libraries that talk to other machines can take longer than a shutdown should,
 * and take as much memory as those machines like.  getaddrinfo() waits for name
 * servers, and cannot be interrupted; libpq computes a password's hash with as
 * many iterations as it is told, and reads as long a message as it is sent.  So
 * the worker calls neither: a child of it does, which answers through a
 * socket, and is killed if that takes too long.  Whatever happens to it, even a
 * crash, the postmaster does not notice, and no other process suffers.
 *
 * The child must not act as a process of the server.  Before anything else, it
 * detaches from shared memory and resets the signal handlers that would use
 * that; it holds no lock, as its parent does not, runs no exit callback, raises
 * no error, and allocates nothing from memory contexts.  So it may be killed at
 * any moment.
 *
 * Signals that stop the server, or cancel a query, also reach it, because it is
 * in the worker's process group; it leaves it to its parent what they mean.  If
 * that ends first, it ends, too: the kernel sends a signal, where it can do
 * that, or it notices at its next alarm.  In a container, the postmaster can be
 * the first process, and so the next parent, and takes a child that a signal
 * has killed for a crashed session.  So the child exits by itself.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/child.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#ifdef HAVE_SYS_PRCTL_H
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pg_shmem.h"

#include "registry_client/calls/child.h"

/* How often a child looks for its parent. */
#define CHILD_ALARM_S	60

/* How long a child that is dismissed has to end. */
#define DISMISS_MS		100

/* How much memory a child may take beside what it has from its parent. */
#define CHILD_MEMORY	((rlim_t) 64 * 1024 * 1024)

/* In the child: its parent. */
static pid_t parent_pid;

static void
exit_child(int signal_number)
{
	_exit(1);
}

static void
exit_orphan(int signal_number)
{
	if (getppid() != parent_pid)
		_exit(1);
	(void) alarm(CHILD_ALARM_S);
}

/*
 * Set a signal handler, but not by pqsignal(), whose handlers look for the
 * process in shared memory.  Calls that it interrupts continue.
 */
static void
set_signal(int signal_number, void (*handler) (int))
{
	struct sigaction action = {0};

	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	sigemptyset(&action.sa_mask);
	(void) sigaction(signal_number, &action, NULL);
}

/*
 * The pages of data of this process, or 0.  Only Linux says how many there are: the
 * sixth number of this file.
 */
static rlim_t
data_pages(void)
{
	FILE	   *file = fopen("/proc/self/statm", "r");
	char		line[128];
	char	   *rest = line;
	rlim_t		pages = 0;

	if (file == NULL)
		return 0;
	if (fgets(line, sizeof(line), file) != NULL)
	{
		for (int i = 0; i < 6; i++)
			pages = strtoul(rest, &rest, 10);
	}
	(void) fclose(file);
	return pages;
}

/*
 * Limit the memory of this process, which has that of its parent already.
 */
static void
limit_memory(void)
{
	rlim_t		pages = data_pages();
	struct rlimit limit;

	if (pages > 0 && getrlimit(RLIMIT_DATA, &limit) == 0)
	{
		rlim_t		bytes = pages * (rlim_t) sysconf(_SC_PAGESIZE) + CHILD_MEMORY;

		if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > bytes)
		{
			limit.rlim_cur = bytes;
			(void) setrlimit(RLIMIT_DATA, &limit);
		}
	}
}

/*
 * Become a process of its own.  Signals are blocked.
 */
static void
become_child(pid_t parent)
{
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2,
	SIGPIPE, SIGURG};
	sigset_t	none;

	/* A library might call exit(). */
	on_exit_reset();
	PGSharedMemoryDetach();
	parent_pid = parent;
	set_signal(SIGQUIT, exit_child);
	set_signal(SIGFPE, exit_child);
	set_signal(SIGALRM, exit_orphan);
	for (size_t i = 0; i < lengthof(ignored); i++)
		set_signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
#if defined(HAVE_SYS_PRCTL_H) && defined(PR_SET_PDEATHSIG)
	(void) prctl(PR_SET_PDEATHSIG, SIGQUIT);
#endif
	exit_orphan(SIGALRM);
	limit_memory();
}

/*
 * Start a child that runs this function.  Returns NULL if that is not possible,
 * with the reason.
 */
Child *
snowflake_start_child(ChildMain run, const void *arg, StringInfo error)
{
	Child	   *child;
	pid_t		parent = getpid();
	pid_t		pid;
	int			ends[2];
	sigset_t	all;
	sigset_t	before;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
	{
		appendStringInfo(error, "could not create a socket: %m");
		return NULL;
	}
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
	{
		close(ends[0]);
		become_child(parent);
		run(ends[1], arg);
		_exit(0);
	}
	if (pid < 0)
		appendStringInfo(error, "could not start a process: %m");
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	if (pid < 0)
	{
		close(ends[0]);
		return NULL;
	}
	child = palloc(sizeof(Child));
	child->pid = pid;
	child->socket = ends[0];
	return child;
}

/*
 * Count what recv() or send() returned.  Returns false if the child has ended.
 */
static bool
count_bytes(ssize_t n, size_t *done, StringInfo error)
{
	if (n > 0)
		*done += n;
	else if (n == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
	{
		appendStringInfoString(error, "process that connects ended unexpectedly");
		return false;
	}
	return true;
}

/*
 * Read so many bytes from the child.  Returns false if it does not write them in
 * time, with the reason.
 */
bool
snowflake_read_from_child(Child *child, void *buffer, size_t size,
						  const WaitLimit *limit, SnowflakeWaitEvent event,
						  StringInfo error)
{
	size_t		done = 0;

	while (done < size)
	{
		if (!snowflake_limited_wait(limit, child->socket, WL_SOCKET_READABLE,
									SNOWFLAKE_NO_LIMIT_MS, event, error))
			return false;
		if (!count_bytes(recv(child->socket, (char *) buffer + done, size - done, 0),
						 &done, error))
			return false;
	}
	return true;
}

/*
 * Write to the child, which waits for that, unless it stands still.  Returns false
 * if it does not read in time, with the reason.
 */
bool
snowflake_write_to_child(Child *child, const StringInfoData *data,
						 const WaitLimit *limit, SnowflakeWaitEvent event,
						 StringInfo error)
{
	size_t		size = data->len;
	size_t		done = 0;

	while (done < size)
	{
		if (!snowflake_limited_wait(limit, child->socket, WL_SOCKET_WRITEABLE,
									SNOWFLAKE_NO_LIMIT_MS, event, error))
			return false;
		if (!count_bytes(send(child->socket, data->data + done, size - done,
							  MSG_NOSIGNAL | MSG_DONTWAIT),
						 &done, error))
			return false;
	}
	return true;
}

/*
 * Let a child that waits for its parent end by itself, but not for long.
 */
void
snowflake_dismiss_child(Child *child)
{
	WaitLimit	limit = snowflake_limit_wait(DISMISS_MS, false);
	StringInfoData ignored;
	char		nothing;

	initStringInfo(&ignored);
	(void) shutdown(child->socket, SHUT_WR);
	(void) snowflake_read_from_child(child, &nothing, 1, &limit,
									 SNOWFLAKE_EVENT_REGISTRY, &ignored);
	snowflake_end_child(child);
}

/*
 * End the child, whatever it does.
 */
void
snowflake_end_child(Child *child)
{
	(void) kill(child->pid, SIGKILL);
	close(child->socket);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		;
	pfree(child);
}

/*
 * In the child: write to the parent, or end if that is gone.
 */
void
snowflake_write_to_parent(int socket, const void *buffer, size_t size)
{
	const char *next = buffer;

	while (size > 0)
	{
		ssize_t		n = send(socket, next, size, MSG_NOSIGNAL);

		if (n > 0)
		{
			next += n;
			size -= n;
		}
		else if (n == 0 || errno != EINTR)
			_exit(1);
	}
}

/*
 * In the child: read from the parent.  Returns false if that is gone, or has
 * dismissed the child.
 */
bool
snowflake_read_from_parent(int socket, void *buffer, size_t size)
{
	char	   *next = buffer;

	while (size > 0)
	{
		ssize_t		n = recv(socket, next, size, 0);

		if (n > 0)
		{
			next += n;
			size -= n;
		}
		else if (n == 0 || errno != EINTR)
			return false;
	}
	return true;
}
