/*
 * subreaper.c
 *	  Loaded before libc, this makes each program the parent of processes that lose
 *	  theirs, as the first process of a container is.
 */
#include <sys/prctl.h>

__attribute__((constructor))
static void
become_subreaper(void)
{
	(void) prctl(PR_SET_CHILD_SUBREAPER, 1);
}
