/*
 * A client of script/tests/torture --ranges: takes numbers of a sequence until it is
 * ended or loses its connection, and writes down each that it receives, for
 * test/worlds/torture/check_history.
 *
 *	numbers CONNINFO KIND TABLE SERVER SESSION FILE
 *
 * The table has a column id with the sequence TABLE_id_seq in its default.  A "greedy"
 * client takes many numbers at once; a "usual" one few, also in rows that are committed,
 * and in rows that are not; a "counting" one owns numbers from each value up, as many as
 * INCREMENT says, which is 10.  The file gets a line for each run of numbers of a call that
 * follow each other:
 *
 *	call SERVER SESSION BEGAN RECEIVED FIRST LAST .
 *
 * The times are microseconds of the machine's steady clock: before the call was sent, and
 * after its answer was read.  Answers are those of COPY in binary format, so that numbers
 * count as received that came before an error or the end of the connection.  Standard
 * error gets the errors, as psql writes them.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

/* What comes before the first row of COPY in binary format. */
#define COPY_HEADER_BYTES	19

/*
 * How long a client rests after three of four calls, so that servers, and other runs, share
 * few processors.
 */
#define GREEDY_REST_US		600000
#define USUAL_REST_US		60000
#define ERROR_REST_US		50000

typedef struct Run
{
	int64_t		first;
	int64_t		last;
} Run;

static volatile sig_atomic_t ended = 0;
static Run *runs = NULL;
static int	nruns = 0;
static int	runs_size = 0;

static void
end(int signal)
{
	(void) signal;
	ended = 1;
}

static int64_t
steady_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void
note_number(int64_t number)
{
	if (nruns > 0 && number == runs[nruns - 1].last + 1)
	{
		runs[nruns - 1].last = number;
		return;
	}
	if (nruns == runs_size)
	{
		runs_size = runs_size * 2 + 1024;
		runs = realloc(runs, runs_size * sizeof(Run));
		if (runs == NULL)
			abort();
	}
	runs[nruns].first = runs[nruns].last = number;
	nruns++;
}

static uint32_t
read_uint32(const char *data)
{
	uint32_t	value;

	memcpy(&value, data, sizeof(value));
	return ntohl(value);
}

/*
 * A row has the number of its columns, and the length and bytes of its only one.
 */
static void
note_row(const char *row, int length)
{
	if (length == 10)
		note_number((int32_t) read_uint32(row + 6));
	else if (length == 14)
		note_number((int64_t) ((uint64_t) read_uint32(row + 6) << 32 | read_uint32(row + 10)));
	else if (length != 2)
	{
		(void) fprintf(stderr, "numbers: ERROR:  a row of %d bytes\n", length);
		exit(1);
	}
}

/*
 * Note the numbers of a COPY.
 */
static void
read_rows(PGconn *connection)
{
	char	   *data;
	int			length;
	int			skipped = COPY_HEADER_BYTES;

	while ((length = PQgetCopyData(connection, &data, 0)) > 0)
	{
		if (length > skipped)
			note_row(data + skipped, length - skipped);
		skipped = 0;
		PQfreemem(data);
	}
}

static void
write_error(const PGresult *result)
{
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);

	if (message != NULL)
		(void) fprintf(stderr, "numbers: %s:  %s%s%s\n", severity, message,
					   detail ? " DETAIL: " : "", detail ? detail : "");
}

/*
 * Make a call of several statements.  Returns whether none failed.
 */
static int
call(PGconn *connection, const char *query)
{
	PGresult   *result;
	int			good = 1;

	nruns = 0;
	if (!PQsendQuery(connection, query))
		return 0;
	while ((result = PQgetResult(connection)) != NULL)
	{
		ExecStatusType status = PQresultStatus(result);

		if (status == PGRES_COPY_OUT)
			read_rows(connection);
		else if (status == PGRES_FATAL_ERROR)
		{
			write_error(result);
			good = 0;
		}
		PQclear(result);
		if (PQstatus(connection) != CONNECTION_OK)
			return 0;
	}
	return good;
}

/*
 * The query of the n-th call.
 */
static const char *
query_of(const char *what, const char *table, int n)
{
	static char query[1000];
	int			kind = n % 5;

	if (strcmp(what, "counting") == 0)
		(void) snprintf(query, sizeof(query),
						"COPY (SELECT g FROM (SELECT nextval('%s_id_seq') AS v FROM generate_series(1, %d) OFFSET 0) x, "
						"generate_series(x.v, x.v + 9) g) TO STDOUT (FORMAT binary)",
						table, kind == 0 ? 300 : 3);
	else if (strcmp(what, "greedy") == 0)
		(void) snprintf(query, sizeof(query),
						"COPY (SELECT nextval('%s_id_seq') FROM generate_series(1, %d)) TO STDOUT (FORMAT binary)",
						table, 500 << (random() % 8));
	else if (kind < 2)
		(void) snprintf(query, sizeof(query),
						"COPY (SELECT nextval('%s_id_seq') FROM generate_series(1, %d)) TO STDOUT (FORMAT binary)",
						table, kind == 0 ? 1 : 20);
	else
		(void) snprintf(query, sizeof(query),
						"%sCOPY (INSERT INTO %s SELECT FROM generate_series(1, %d) RETURNING id) TO STDOUT (FORMAT binary)%s",
						kind == 2 ? "BEGIN; " : "", table, n % 100 == 4 ? 500 : 3,
						kind == 2 ? "; ROLLBACK" : "");
	return query;
}

static void
write_runs(FILE *file, char **names, int64_t began)
{
	int64_t		received = steady_us();

	for (int i = 0; i < nruns; i++)
		(void) fprintf(file, "call %s %s %lld %lld %lld %lld .\n", names[0], names[1],
					   (long long) began, (long long) received,
					   (long long) runs[i].first, (long long) runs[i].last);
	if (fflush(file) != 0)
		exit(1);
}

int
main(int argc, char **argv)
{
	PGconn	   *connection;
	FILE	   *file;
	int			greedy;

	if (argc != 7)
		return 2;
	(void) signal(SIGTERM, end);
	greedy = strcmp(argv[2], "greedy") == 0;
	srandom(getpid());
	connection = PQconnectdb(argv[1]);
	file = fopen(argv[6], "a");
	if (file == NULL || PQstatus(connection) != CONNECTION_OK)
		return 1;
	for (int n = 0; !ended && PQstatus(connection) == CONNECTION_OK; n++)
	{
		int64_t		began = steady_us();
		int			good = call(connection, query_of(argv[2], argv[3], n));

		write_runs(file, argv + 4, began);
		if (!good && PQstatus(connection) == CONNECTION_OK)
		{
			PQclear(PQexec(connection, "ROLLBACK"));
			usleep(ERROR_REST_US);
		}
		if (random() % 4 != 0)
			usleep(greedy ? GREEDY_REST_US : USUAL_REST_US);
	}
	return 0;
}
