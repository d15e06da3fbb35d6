/*-------------------------------------------------------------------------
 *
 * wal_disk.c
 *	  A disk of pg_wal that is full or slow, for the servers of script/tests/torture.
 *
 * Loaded before libc.  What is wrong with the disk stands in a file of two
 * 8-byte integers, that $SNOWFLAKE_WAL_DISK names: whether it is full, and how
 * many microseconds a flush takes.  All processes of a server map it, so both
 * begin and end for all of them at once.
 *
 * While the disk is full, each write below pg_wal fails with ENOSPC, whether it is
 * to a new file or not, as on file systems that copy on write.
 *
 * Nothing is really flushed, as what the kernel has survives all that is done to
 * the servers: they can have fsync = on without a load on the machine's disk.
 *
 * test/worlds/torture/wal_disk.c
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef struct Disk
{
	int64_t		full;
	int64_t		flush_us;
} Disk;

static const volatile Disk *disk;

static void
__attribute__((constructor))
begin(void)
{
	const char *path = getenv("SNOWFLAKE_WAL_DISK");
	int			file;
	void	   *map;

	if (path == NULL || (file = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return;
	map = mmap(NULL, sizeof(Disk), PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (map != MAP_FAILED)
		disk = map;
}

static bool
is_wal(int file)
{
	char		name[64];
	char		path[4096];
	int			errno_before = errno;
	ssize_t		n;

	(void) snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
	n = readlink(name, path, sizeof(path) - 1);
	errno = errno_before;
	if (n < 0)
		return false;
	path[n] = '\0';
	return strstr(path, "/pg_wal/") != NULL;
}

static bool
no_space(int file)
{
	if (disk == NULL || !disk->full || !is_wal(file))
		return false;
	errno = ENOSPC;
	return true;
}

#define REAL(function) \
	static __typeof__(&(function)) real; \
	if (real == NULL) \
		real = (__typeof__(&(function))) dlsym(RTLD_NEXT, #function)

ssize_t
write(int file, const void *data, size_t n)
{
	REAL(write);
	return no_space(file) ? -1 : real(file, data, n);
}

ssize_t
pwrite(int file, const void *data, size_t n, off_t offset)
{
	REAL(pwrite);
	return no_space(file) ? -1 : real(file, data, n, offset);
}

ssize_t
pwrite64(int file, const void *data, size_t n, off64_t offset)
{
	REAL(pwrite64);
	return no_space(file) ? -1 : real(file, data, n, offset);
}

ssize_t
pwritev(int file, const struct iovec *data, int n, off_t offset)
{
	REAL(pwritev);
	return no_space(file) ? -1 : real(file, data, n, offset);
}

ssize_t
pwritev64(int file, const struct iovec *data, int n, off64_t offset)
{
	REAL(pwritev64);
	return no_space(file) ? -1 : real(file, data, n, offset);
}

int
posix_fallocate(int file, off_t offset, off_t n)
{
	REAL(posix_fallocate);
	return no_space(file) ? ENOSPC : real(file, offset, n);
}

int
posix_fallocate64(int file, off64_t offset, off64_t n)
{
	REAL(posix_fallocate64);
	return no_space(file) ? ENOSPC : real(file, offset, n);
}

/*
 * A signal does not make a flush quicker, but one that is under way ends when the
 * disk is told to be quick.
 */
static int
flush(int file)
{
	int64_t		slept = 0;

	if (disk == NULL || disk->flush_us == 0 || !is_wal(file))
		return 0;
	while (slept < disk->flush_us)
	{
		int64_t		us = disk->flush_us - slept < 10000 ? disk->flush_us - slept : 10000;
		struct timespec left = {us / 1000000, us % 1000000 * 1000};

		while (nanosleep(&left, &left) != 0 && errno == EINTR)
			;
		slept += us;
	}
	return 0;
}

int
fsync(int file)
{
	return flush(file);
}

int
fdatasync(int file)
{
	return flush(file);
}
