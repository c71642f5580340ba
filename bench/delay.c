/* Makes a server slower by a known amount: loaded by LD_PRELOAD, it spends DELAY_NS of CPU time after each message that a
   session receives. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static long long now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

ssize_t recv(int socket, void *buffer, size_t length, int flags)
{
	static ssize_t (*original)(int, void *, size_t, int);
	static long long delay = -1;
	if (!original) {
		original = (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
		delay = getenv("DELAY_NS") ? atoll(getenv("DELAY_NS")) : 0;
	}
	ssize_t got = original(socket, buffer, length, flags);
	if (got > 0 && delay > 0)
		for (long long until = now() + delay; now() < until;)
			;
	return got;
}
