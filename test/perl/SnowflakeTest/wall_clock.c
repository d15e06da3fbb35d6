/*-------------------------------------------------------------------------
 *
 * wall_clock.c
 *	  A wall clock that is off, for the servers of tests (SnowflakeTest::Clock).
 *
 * Loaded before libc.  $SNOWFLAKE_WALL_CLOCK names a file with the offset in
 * microseconds, 8 bytes, and perhaps that of CLOCK_BOOTTIME, which snowflake
 * measures elapsed time by and PostgreSQL does not use; and perhaps a time, in
 * microseconds since 1970, at which both stand still.  All processes of a server
 * map it, so they see a step at the same time.  Other clocks are left alone.
 *
 * (It exists because libfaketime does not fake the time in a process that was
 * forked while its parent waited in select(): PostgreSQL 15 starts background
 * workers like that.)
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/perl/SnowflakeTest/wall_clock.c
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int	(*real_clock_gettime) (clockid_t, struct timespec *);
static volatile const int64_t *off_by;

static void
__attribute__((constructor))
begin(void)
{
	const char *path = getenv("SNOWFLAKE_WALL_CLOCK");
	int			file;
	void	   *map;

	real_clock_gettime = (int (*) (clockid_t, struct timespec *))
		dlsym(RTLD_NEXT, "clock_gettime");
	if (path == NULL || (file = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return;
	map = mmap(NULL, 3 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (map != MAP_FAILED)
		off_by = map;
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int			rc;

	if (real_clock_gettime == NULL)
		begin();
	rc = real_clock_gettime(clock, ts);
	if (rc == 0 && off_by != NULL &&
		(clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME))
	{
		int64_t		stands_at = off_by[2];
		int64_t		us = off_by[clock == CLOCK_BOOTTIME] + ts->tv_nsec / 1000;
		int64_t		seconds = us / 1000000;

		if (stands_at != 0)
		{
			ts->tv_sec = stands_at / 1000000;
			ts->tv_nsec = stands_at % 1000000 * 1000;
			return rc;
		}
		us -= seconds * 1000000;
		if (us < 0)
		{
			us += 1000000;
			seconds--;
		}
		ts->tv_sec += seconds;
		ts->tv_nsec = us * 1000 + ts->tv_nsec % 1000;
	}
	return rc;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void) zone;
	if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
		return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *now)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
		return -1;
	if (now != NULL)
		*now = ts.tv_sec;
	return ts.tv_sec;
}
