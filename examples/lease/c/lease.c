/*
 * Holds a lease until its standard input ends.
 *
 *     cc -std=c99 -D_GNU_SOURCE -Wall -o lease lease.c && ./lease
 */
#include "yoctune_lease.h"

int main(int argc, char **argv)
{
	struct yt_lease lease;
	int c;

	if (yt_lease_acquire(&lease, argc > 1 ? argv[1] : NULL, 60 * 1000) != 0) {
		fprintf(stderr, "lease: %s\n", lease.error);
		return 1;
	}
	puts("granted");
	fflush(stdout);
	while ((c = getchar()) != EOF) {
		if (c == 'r' && yt_lease_renew(&lease) != 0) {
			fprintf(stderr, "lease: %s\n", lease.error);
			return 1;
		}
	}
	yt_lease_release(&lease);
	return 0;
}
