/*-------------------------------------------------------------------------
 *
 * conninfo.c
 *	  Connection strings of a registry: their options, and whether they lead to
 *	  this server.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/conninfo.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "libpq-fe.h"
#include "postmaster/postmaster.h"
#include "utils/varlena.h"

#include "registry_client/calls/answer.h"
#include "registry_client/calls/conninfo.h"

/*
 * The value of an option, or NULL.
 */
static const char *
find_option(const PQconninfoOption *options, const char *keyword)
{
	for (; options != NULL && options->keyword != NULL; options++)
	{
		if (strcmp(options->keyword, keyword) == 0)
			return options->val != NULL && options->val[0] != '\0' ?
				options->val : NULL;
	}
	return NULL;
}

const char *
snowflake_get_option(const RegistryOptions *options, const char *keyword)
{
	const char *value = find_option(options->given, keyword);

	return value != NULL ? value : find_option(options->defaults, keyword);
}

/*
 * Read the options of a connection string.  libpq reads its service only when
 * it connects, but reads that of the environment on request.
 */
bool
snowflake_read_options(RegistryOptions *options, const char *conninfo, StringInfo error)
{
	char	   *message = NULL;
	const char *service;

	options->defaults = NULL;
	options->given = PQconninfoParse(conninfo, &message);
	if (options->given == NULL)
	{
		snowflake_append_message(error, message != NULL ? message : "out of memory");
		PQfreemem(message);
		return false;
	}

	service = find_option(options->given, "service");
	if (service == NULL)
		options->defaults = PQconndefaults();
	else
	{
		const char *value = getenv("PGSERVICE");
		char	   *before = value != NULL ? pstrdup(value) : NULL;

		setenv("PGSERVICE", service, 1);
		options->defaults = PQconndefaults();
		if (before != NULL)
			setenv("PGSERVICE", before, 1);
		else
			unsetenv("PGSERVICE");
	}
	return true;
}

void
snowflake_free_options(RegistryOptions *options)
{
	PQconninfoFree(options->given);
	PQconninfoFree(options->defaults);
}

/*
 * The nth item of a comma-separated list, or NULL if it is empty.  A list of
 * one item has the same for all n.
 */
char *
snowflake_list_item(const char *list, int n)
{
	const char *end;
	size_t		length;

	if (list == NULL)
		return NULL;
	if (strchr(list, ',') != NULL)
	{
		while (n-- > 0 && (end = strchr(list, ',')) != NULL)
			list = end + 1;
	}
	length = strcspn(list, ",");
	return length > 0 ? pnstrdup(list, length) : NULL;
}

int
snowflake_count_items(const char *list)
{
	int			count = 1;

	for (; list != NULL && *list != '\0'; list++)
		count += *list == ',';
	return count;
}

/*
 * Do two paths lead to the same directory?
 */
static bool
is_same_directory(const char *one, const char *other)
{
	struct stat one_stat;
	struct stat other_stat;

	/* In the abstract namespace, there are no directories. */
	if (one[0] == '@' || other[0] == '@')
		return strcmp(one, other) == 0;
	return stat(one, &one_stat) == 0 && stat(other, &other_stat) == 0 &&
		one_stat.st_dev == other_stat.st_dev &&
		one_stat.st_ino == other_stat.st_ino;
}

/*
 * Is this one of the server's own Unix-domain socket directories?
 */
static bool
is_own_socket_directory(const char *directory)
{
	char	   *list = pstrdup(Unix_socket_directories);
	List	   *directories;
	ListCell   *cell;

	if (!SplitDirectoriesString(list, ',', &directories))
		return false;
	foreach(cell, directories)
	{
		if (is_same_directory(directory, lfirst(cell)))
			return true;
	}
	return false;
}

/*
 * Does a connection string lead to this server, through a socket of its own?
 * If so, set the names of database and user.
 */
bool
snowflake_local_registry(const char *conninfo, char **dbname, char **user)
{
	RegistryOptions options;
	StringInfoData error;
	const char *host;
	const char *port;
	const char *name;
	bool		local = false;

	initStringInfo(&error);
	if (!snowflake_read_options(&options, conninfo, &error))
		return false;
	host = snowflake_get_option(&options, "host");
	port = snowflake_get_option(&options, "port");
	name = snowflake_get_option(&options, "user");
	if (host == NULL)
		host = DEFAULT_PGSOCKET_DIR;
	if (snowflake_get_option(&options, "hostaddr") == NULL && name != NULL &&
		strchr(host, ',') == NULL && (host[0] == '/' || host[0] == '@') &&
		(port != NULL ? strtol(port, NULL, 10) : DEF_PGPORT) == PostPortNumber &&
		is_own_socket_directory(host))
	{
		const char *database = snowflake_get_option(&options, "dbname");

		*user = pstrdup(name);
		*dbname = pstrdup(database != NULL ? database : name);
		local = true;
	}
	snowflake_free_options(&options);
	return local;
}
