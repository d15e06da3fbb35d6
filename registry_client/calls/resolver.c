/*-------------------------------------------------------------------------
 *
 * resolver.c
 *	  The addresses of a host name, found by a process that can be given up.
 *
 * getaddrinfo() cannot be interrupted, and if a name server is silent, it takes
 * longer than a shutdown should.  What the C library has instead uses threads,
 * which a server process must not have.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/resolver.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netdb.h>
#include <sys/socket.h>

#include "registry_client/calls/child.h"
#include "registry_client/calls/resolver.h"

/* How many addresses of a host are tried. */
#define MAX_ADDRESSES	16

/* What the child writes. */
typedef struct Addresses
{
	int			count;
	char		addresses[MAX_ADDRESSES][SNOWFLAKE_ADDRESS_SIZE];
	char		error[128];		/* if there is none */
} Addresses;

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

/*
 * Main function of the child.
 */
static void
look_up(int socket, const void *arg)
{
	struct addrinfo hints = {0};
	struct addrinfo *list = NULL;
	Addresses	found = {0};
	int			rc;

	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	rc = getaddrinfo(arg, NULL, &hints, &list);
	strlcpy(found.error, rc != 0 ? gai_strerror(rc) : "it has none",
			sizeof(found.error));
	for (; list != NULL && found.count < MAX_ADDRESSES; list = list->ai_next)
	{
		if (getnameinfo(list->ai_addr, list->ai_addrlen,
						found.addresses[found.count], SNOWFLAKE_ADDRESS_SIZE,
						NULL, 0, NI_NUMERICHOST) == 0)
			found.count++;
	}
	snowflake_write_to_parent(socket, &found, sizeof(found));
}

/*
 * The addresses of a host name, as a list of strings.  If there are none, or
 * the limit is reached, the list is empty, and the error says why.
 */
List *
snowflake_resolve(const char *host, const WaitLimit *limit, StringInfo error)
{
	List	   *addresses = NIL;
	Addresses	found = {0};
	StringInfoData reason;
	Child	   *child;

	initStringInfo(&reason);
	child = snowflake_start_child(look_up, host, &reason);
	if (child != NULL)
	{
		if (snowflake_read_from_child(child, &found, sizeof(found), limit,
									  SNOWFLAKE_EVENT_RESOLVER, &reason))
			appendStringInfoString(&reason, found.error);
		else
			found.count = 0;
		snowflake_end_child(child);
	}
	for (int i = 0; i < Min(found.count, MAX_ADDRESSES); i++)
		addresses = lappend(addresses, pstrdup(found.addresses[i]));
	if (addresses == NIL)
		appendStringInfo(error, "could not translate host name \"%s\" to address: %s",
						 host, reason.data);
	return addresses;
}
