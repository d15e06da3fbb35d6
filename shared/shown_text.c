/*-------------------------------------------------------------------------
 *
 * shown_text.c
 *	  Texts of arguments in messages.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * shared/shown_text.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "shared/compat.h"
#include "shared/shown_text.h"

/* How much of a text a message shows, in bytes. */
#define SHOWN_LENGTH	40

/*
 * The start of a text.  It is from outside, and may be as long as a gigabyte,
 * which would be sent to the client and written to the log.
 */
char *
snowflake_shown_text(const text *string)
{
	const char *data = VARDATA_ANY(string);
	int			length = (int) VARSIZE_ANY_EXHDR(string);
	int			shown = pg_mbcliplen(data, length, SHOWN_LENGTH);

	return psprintf("%.*s%s", shown, data, shown < length ? "..." : "");
}
