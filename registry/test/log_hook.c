/*
 * log_hook.c
 *	  A module that hooks into the log, as those of others do: it writes what is
 *	  FATAL to a file in the data directory.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static emit_log_hook_type previous_hook = NULL;

static void
write_fatal(ErrorData *edata)
{
	FILE	   *file;

	if (previous_hook != NULL)
		previous_hook(edata);
	if (edata->elevel != FATAL || (file = fopen("log_hook", "a")) == NULL)
		return;
	(void) fprintf(file, "%s\n", edata->message);
	(void) fclose(file);
}

void
_PG_init(void)
{
	previous_hook = emit_log_hook;
	emit_log_hook = write_fatal;
}
