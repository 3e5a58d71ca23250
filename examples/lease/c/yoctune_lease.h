/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * yoctune_lease.h: the highest CPU performance for as long as a program needs it.
 *
 *     #include "yoctune_lease.h"
 *
 *     struct yt_lease lease;
 *     if (yt_lease_acquire(&lease, NULL, 60 * 1000) != 0)
 *             fprintf(stderr, "no lease, running at normal speed: %s\n", lease.error);
 *     work();
 *     yt_lease_release(&lease);
 *
 * A lease is a connection to yoctuned. It ends when it is released, when this
 * process ends or crashes, or when its time to live has passed since the last
 * renewal. A long job therefore calls yt_lease_renew() at a third of that time.
 * A program may always continue without a lease; it only runs slower.
 *
 * Root and members of the group yoctune may acquire leases. The functions are
 * static and need only a POSIX system. Different threads may use different leases
 * at the same time. The connection is close-on-exec.
 */
#ifndef YOCTUNE_LEASE_H
#define YOCTUNE_LEASE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SOCK_CLOEXEC
#error "yoctune_lease.h: compile with -D_GNU_SOURCE or -D_DEFAULT_SOURCE"
#endif

#define YT_LEASE_SOCKET "/run/yoctune/socket"
#define YT_LEASE_WAIT_S 30 /* timeout of an answer: a device node may block */

struct yt_lease {
	int fd;          /* of the connection; -1 without a lease */
	char error[256]; /* why the last call failed, or "" */
};

static inline int yt_lease__fail(struct yt_lease *l, const char *what, const char *why)
{
	snprintf(l->error, sizeof l->error, "%s: %s", what, why);
	return -1;
}

/* yt_lease__ask sends one request and checks the type of the answer, its first field. */
static inline int yt_lease__ask(struct yt_lease *l, const char *request, const char *wanted)
{
	char answer[65536];
	size_t size = strlen(request), done = 0;
	ssize_t n;

	while (done < size) {
		n = send(l->fd, request + done, size - done, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return yt_lease__fail(l, "ask yoctuned", strerror(errno));
		done += (size_t)n;
	}
	/* Read one line; the part that does not fit into the buffer is discarded. */
	for (done = 0;;) {
		n = recv(l->fd, answer + done, sizeof answer - 1 - done, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return yt_lease__fail(l, "yoctuned does not answer", n == 0 ? "it ended the connection" : strerror(errno));
		done += (size_t)n;
		answer[done] = 0;
		if (answer[done - 1] == '\n')
			break;
		if (done == sizeof answer - 1)
			done = sizeof answer / 2;
	}
	size = strlen("{\"type\":\"");
	if (strncmp(answer, "{\"type\":\"", size) == 0 && strncmp(answer + size, wanted, strlen(wanted)) == 0) {
		l->error[0] = 0;
		return 0;
	}
	{
		char *message = strstr(answer, "\"message\":\"");
		char *end = message ? strchr(message += strlen("\"message\":\""), '"') : NULL;

		if (end)
			*end = 0;
		return yt_lease__fail(l, "yoctuned refuses", end ? message : "it does not say why");
	}
}

/*
 * yt_lease_release ends the lease. It may be called more than once. yoctuned then
 * restores the settings, unless another client still holds a lease.
 */
static inline void yt_lease_release(struct yt_lease *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

/*
 * yt_lease_acquire requests the highest CPU frequencies that the plan, the power
 * mode and the temperature allow. socket_path: NULL for the default. ttl_ms: 1000
 * to 86400000, or 0 for ten minutes. Returns 0, or -1 with the reason in error.
 * yt_lease_release may be called in both cases.
 */
static inline int yt_lease_acquire(struct yt_lease *l, const char *socket_path, long ttl_ms)
{
	struct sockaddr_un to;
	struct timeval wait = { YT_LEASE_WAIT_S, 0 };
	char request[128];

	if (!socket_path)
		socket_path = YT_LEASE_SOCKET;
	l->error[0] = 0;
	l->fd = -1;
	memset(&to, 0, sizeof to);
	to.sun_family = AF_UNIX;
	if (strlen(socket_path) >= sizeof to.sun_path)
		return yt_lease__fail(l, socket_path, "is longer than a socket's path can be");
	memcpy(to.sun_path, socket_path, strlen(socket_path));
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return yt_lease__fail(l, "connect to yoctuned", strerror(errno));
	setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
	if (connect(l->fd, (struct sockaddr *)&to, sizeof to) != 0) {
		yt_lease__fail(l, "connect to yoctuned", strerror(errno));
		yt_lease_release(l);
		return -1;
	}
	snprintf(request, sizeof request, "{\"type\":\"acquire\",\"profile\":\"high-performance\",\"ttl_ms\":%ld}\n", ttl_ms);
	if (yt_lease__ask(l, request, "granted\"") != 0) {
		yt_lease_release(l);
		return -1;
	}
	return 0;
}

/* yt_lease_renew restarts the time to live. Returns 0, or -1: the lease has ended. */
static inline int yt_lease_renew(struct yt_lease *l)
{
	if (l->fd < 0)
		return yt_lease__fail(l, "renew", "there is no lease");
	if (yt_lease__ask(l, "{\"type\":\"renew\"}\n", "renewed\"") != 0) {
		yt_lease_release(l);
		return -1;
	}
	return 0;
}

#endif
