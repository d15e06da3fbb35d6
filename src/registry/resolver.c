/*-------------------------------------------------------------------------
 *
 * resolver.c
 *	  The addresses of a host name, found by a process that can be given up.
 *
 * getaddrinfo() cannot be interrupted, and if a name server is silent, it takes
 * longer than a shutdown should.  What the C library has instead uses threads,
 * which a server process must not have.  So a child of the calling process
 * does it, writes the addresses into a pipe, and ends.  If it takes too long,
 * it is killed.
 *
 * The child must not act as a process of the server.  Before anything else, it
 * detaches from shared memory and resets the signal handlers that would use
 * that; it holds no lock, as its parent does not, runs no exit callback, and
 * allocates nothing from memory contexts.  So it may be killed at any moment,
 * which the postmaster does not notice.  If its parent is killed, it is killed
 * too, where the kernel can do that; elsewhere by its alarm.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/registry/resolver.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>
#ifdef HAVE_SYS_PRCTL_H
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "storage/latch.h"
#include "storage/pg_shmem.h"

#include "registry/resolver.h"
#include "shared/compat.h"

/* After this time, a child without a parent ends. */
#define CHILD_ALARM_S	60

/* What a line of the child's output begins with. */
#define ADDRESS_MARK	'='
#define ERROR_MARK		'!'

/*
 * Must a host be looked up?  Not a socket directory, nor an address.
 */
bool
snowflake_is_host_name(const char *host)
{
	struct addrinfo hints = {0};
	struct addrinfo *list = NULL;

	if (host[0] == '\0' || host[0] == '/' || host[0] == '@')
		return false;
	hints.ai_flags = AI_NUMERICHOST;
	hints.ai_socktype = SOCK_STREAM;
	if (getaddrinfo(host, NULL, &hints, &list) != 0)
		return true;
	freeaddrinfo(list);
	return false;
}

static void
exit_child(int signal_number)
{
	_exit(1);
}

/*
 * Set a signal handler, but not by pqsignal(), whose handlers look for the
 * process in shared memory.
 */
static void
set_signal(int signal_number, void (*handler) (int))
{
	struct sigaction action = {0};

	action.sa_handler = handler;
	sigemptyset(&action.sa_mask);
	(void) sigaction(signal_number, &action, NULL);
}

/*
 * Write a line, or end: nobody reads it.
 */
static void
write_line(int output, char mark, const char *text)
{
	char		line[NI_MAXHOST + 2];
	int			length;

	length = snprintf(line, sizeof(line) - 1, "%c%s", mark, text);
	length = Min(length, (int) sizeof(line) - 2);
	line[length++] = '\n';
	if (write(output, line, length) != length)
		_exit(1);
}

/*
 * Main function of the child.  Signals are blocked.
 */
snowflake_noreturn static void
run_child(const char *host, int output, pid_t parent)
{
	static const int ending[] = {SIGTERM, SIGINT, SIGQUIT, SIGALRM};
	static const int ignored[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGURG};
	struct addrinfo hints = {0};
	struct addrinfo *list = NULL;
	sigset_t	none;
	int			rc;

	PGSharedMemoryDetach();
	for (size_t i = 0; i < lengthof(ending); i++)
		set_signal(ending[i], exit_child);
	for (size_t i = 0; i < lengthof(ignored); i++)
		set_signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
#if defined(HAVE_SYS_PRCTL_H) && defined(PR_SET_PDEATHSIG)
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	(void) alarm(CHILD_ALARM_S);
	if (getppid() != parent)
		_exit(1);

	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	rc = getaddrinfo(host, NULL, &hints, &list);
	if (rc != 0)
		write_line(output, ERROR_MARK, gai_strerror(rc));
	for (; list != NULL; list = list->ai_next)
	{
		char		address[NI_MAXHOST];

		if (getnameinfo(list->ai_addr, list->ai_addrlen, address,
						sizeof(address), NULL, 0, NI_NUMERICHOST) == 0)
			write_line(output, ADDRESS_MARK, address);
	}
	_exit(0);
}

/*
 * Start the child, and return where its output can be read; -1 if that is not
 * possible.
 */
static int
start_child(const char *host, pid_t *child)
{
	pid_t		parent = getpid();
	int			ends[2];
	sigset_t	all;
	sigset_t	before;

	if (pipe(ends) != 0)
		return -1;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	*child = fork();
	if (*child == 0)
	{
		close(ends[0]);
		run_child(host, ends[1], parent);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	if (*child > 0)
		return ends[0];
	close(ends[0]);
	return -1;
}

/*
 * Read all that the child writes.  Returns false if that takes too long.
 */
static bool
read_output(int input, const WaitLimit *limit, StringInfo output,
			StringInfo error)
{
	while (snowflake_limited_wait(limit, input, WL_SOCKET_READABLE,
								  SNOWFLAKE_NO_LIMIT_MS,
								  SNOWFLAKE_EVENT_RESOLVER, error))
	{
		char		buffer[1024];
		ssize_t		n = read(input, buffer, sizeof(buffer));

		if (n == 0)
			return true;
		if (n > 0)
			appendBinaryStringInfo(output, buffer, (int) n);
		else if (errno != EINTR)
		{
			appendStringInfo(error, "%m");
			break;
		}
	}
	return false;
}

/*
 * The addresses in the child's output.  If there is none, the reason is set.
 */
static List *
read_addresses(char *output, const char **reason)
{
	List	   *addresses = NIL;
	char	   *line;

	while ((line = strsep(&output, "\n")) != NULL)
	{
		if (line[0] == ADDRESS_MARK)
			addresses = lappend(addresses, line + 1);
		else if (line[0] == ERROR_MARK)
			*reason = line + 1;
	}
	return addresses;
}

/*
 * The addresses of a host name, as a list of strings.  If there are none, or
 * the limit is reached, the list is empty, and the error says why.
 */
List *
snowflake_resolve(const char *host, const WaitLimit *limit, StringInfo error)
{
	List	   *addresses = NIL;
	const char *reason = "it has none";
	StringInfoData output;
	StringInfoData incomplete;
	pid_t		child;
	int			input;

	initStringInfo(&output);
	initStringInfo(&incomplete);
	input = start_child(host, &child);
	if (input < 0)
		reason = psprintf("%m");
	else
	{
		if (read_output(input, limit, &output, &incomplete))
			addresses = read_addresses(output.data, &reason);
		else
		{
			(void) kill(child, SIGKILL);
			reason = incomplete.data;
		}
		close(input);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (addresses == NIL)
		appendStringInfo(error, "could not translate host name \"%s\" to address: %s",
						 host, reason);
	return addresses;
}
