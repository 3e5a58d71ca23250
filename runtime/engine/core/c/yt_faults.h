/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_faults.h - fault injection for tests.
 *
 *   spec      = "" | fault *("," fault)
 *   fault     = what *("@" condition)
 *   what      = "alloc:oom"               no memory
 *             | "launch:hang=" duration   the operation takes that much longer,
 *                                         at most 2s, so that nothing hangs forever
 *             | "launch:fault"            sticky, like an illegal address
 *             | "copy:corrupt"            one bit of the copy arrives wrong
 *             | "device:lost"             sticky
 *             | "init:fail"               the device does not open
 *             | "slow:x" factor           takes that many times as long, 1 to 1000
 *   condition = "n=" count                the n-th operation of its kind, from 1
 *             | "bytes>" size             allocations and copies larger than that
 *             | "p=" probability          0 to 1; the same sequence in every run
 *             | "t=" duration             only after that time
 *             | "kernel=" name            operations whose name has this prefix
 *             | "stage=" name             lists of a stream of that name
 *   duration  = number ("ns" | "us" | "ms" | "s")
 *   size      = number ["K" | "M" | "G"]  of 1024
 *
 * Without "n" a fault happens each time its conditions hold.
 */
#ifndef YT_FAULTS_H
#define YT_FAULTS_H

#include "yt_check.h"

#include <stdlib.h>
#include <string.h>

#define YT_MAX_FAULTS 16
#define YT_MAX_HANG_NS 2000000000u

enum {
	YT_FAULT_NONE = 0,
	YT_FAULT_OOM,
	YT_FAULT_HANG,
	YT_FAULT_LAUNCH,
	YT_FAULT_CORRUPT,
	YT_FAULT_LOST,
	YT_FAULT_INIT,
	YT_FAULT_SLOW
};

typedef struct yt_fault {
	uint32_t what;
	uint64_t hang_ns;
	double factor;
	/* Conditions; 0, "" and p < 0 mean no condition. */
	uint64_t n, bytes, after_ns;
	double p;
	char kernel[16], stage[16];
	/* State. */
	uint64_t seen, random;
} yt_fault;

typedef struct yt_faults {
	uint32_t n;
	uint64_t since; /* the time "t=" counts from */
	yt_fault fault[YT_MAX_FAULTS];
} yt_faults;

/* Digits, a point, an exponent; no sign, "inf" or hexadecimal. */
static inline int yt_fault_number(const char **at, double *out)
{
	char *end;

	if (**at < '0' || **at > '9' || (**at == '0' && ((*at)[1] == 'x' || (*at)[1] == 'X')))
		return -1;
	*out = strtod(*at, &end);
	if (!(*out >= 0 && *out <= 1e18))
		return -1;
	*at = end;
	return 0;
}

static inline int yt_fault_word(const char **at, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*at, word, n) != 0)
		return -1;
	*at += n;
	return 0;
}

static inline int yt_fault_duration(const char **at, uint64_t *ns)
{
	double v;

	if (yt_fault_number(at, &v) != 0)
		return -1;
	if (yt_fault_word(at, "ns") == 0)
		v *= 1;
	else if (yt_fault_word(at, "us") == 0)
		v *= 1e3;
	else if (yt_fault_word(at, "ms") == 0)
		v *= 1e6;
	else if (yt_fault_word(at, "s") == 0)
		v *= 1e9;
	else
		return -1;
	if (v > 1e18)
		return -1;
	*ns = (uint64_t)v;
	return 0;
}

static inline int yt_fault_size(const char **at, uint64_t *bytes)
{
	double v;

	if (yt_fault_number(at, &v) != 0)
		return -1;
	if (yt_fault_word(at, "K") == 0)
		v *= 1024;
	else if (yt_fault_word(at, "M") == 0)
		v *= 1024 * 1024;
	else if (yt_fault_word(at, "G") == 0)
		v *= 1024 * 1024 * 1024;
	if (v > 1e18)
		return -1;
	*bytes = (uint64_t)v;
	return 0;
}

static inline int yt_fault_name(const char **at, char out[16])
{
	size_t n = strcspn(*at, "@,");

	if (n == 0 || n > 15)
		return -1;
	memcpy(out, *at, n);
	out[n] = '\0';
	*at += n;
	return 0;
}

static inline int yt_fault_condition(const char **at, yt_fault *f)
{
	double v;

	if (yt_fault_word(at, "n=") == 0) {
		if (yt_fault_number(at, &v) != 0 || v < 1 || v != (double)(uint64_t)v)
			return -1;
		f->n = (uint64_t)v;
		return 0;
	}
	if (yt_fault_word(at, "bytes>") == 0)
		return f->what == YT_FAULT_OOM || f->what == YT_FAULT_CORRUPT ? yt_fault_size(at, &f->bytes) : -1;
	if (yt_fault_word(at, "p=") == 0)
		return yt_fault_number(at, &f->p) != 0 || f->p > 1 ? -1 : 0;
	if (yt_fault_word(at, "t=") == 0)
		return yt_fault_duration(at, &f->after_ns);
	if (yt_fault_word(at, "kernel=") == 0)
		return yt_fault_name(at, f->kernel);
	if (yt_fault_word(at, "stage=") == 0)
		return yt_fault_name(at, f->stage);
	return -1;
}

/* Writes *out only when the whole specification is right. */
static inline yt_status yt_faults_parse(const char *spec, uint64_t now_ns, yt_faults *out, yt_error *err)
{
	const char *at = spec;
	yt_faults all;

	memset(&all, 0, sizeof all);
	all.since = now_ns;
	while (*at != '\0') {
		yt_fault *f = &all.fault[all.n];
		const char *start = at;
		int bad = 0;

		if (all.n == YT_MAX_FAULTS)
			return yt_fail(err, YT_E_INVALID, "faults: more than %u", YT_MAX_FAULTS);
		all.n++;
		f->p = -1;
		f->random = 0x9e3779b97f4a7c15u + all.n;
		if (yt_fault_word(&at, "alloc:oom") == 0) {
			f->what = YT_FAULT_OOM;
		} else if (yt_fault_word(&at, "launch:hang=") == 0) {
			f->what = YT_FAULT_HANG;
			bad = yt_fault_duration(&at, &f->hang_ns) != 0 || f->hang_ns > YT_MAX_HANG_NS;
		} else if (yt_fault_word(&at, "launch:fault") == 0) {
			f->what = YT_FAULT_LAUNCH;
		} else if (yt_fault_word(&at, "copy:corrupt") == 0) {
			f->what = YT_FAULT_CORRUPT;
		} else if (yt_fault_word(&at, "device:lost") == 0) {
			f->what = YT_FAULT_LOST;
		} else if (yt_fault_word(&at, "init:fail") == 0) {
			f->what = YT_FAULT_INIT;
		} else if (yt_fault_word(&at, "slow:x") == 0) {
			f->what = YT_FAULT_SLOW;
			bad = yt_fault_number(&at, &f->factor) != 0 || f->factor < 1 || f->factor > 1000;
		} else {
			bad = 1;
		}
		while (!bad && *at == '@') {
			at++;
			bad = yt_fault_condition(&at, f) != 0;
		}
		if (!bad && *at == ',' && at[1] != '\0')
			at++;
		else if (!bad && *at != '\0')
			bad = 1;
		if (bad)
			return yt_fail(err, YT_E_INVALID,
				       "faults: \"%.60s\": syntax error at \"%.40s\"; use alloc:oom, launch:hang=DURATION (2s at "
				       "most), launch:fault, copy:corrupt, device:lost, init:fail or slow:xN, then @CONDITION",
				       start, at);
	}
	*out = all;
	return yt_ok(err);
}

static inline double yt_fault_random(yt_fault *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return (double)(f->random >> 11) / 9007199254740992.0;
}

/* The next fault of this kind that is due, or NULL. Counts. */
static inline yt_fault *yt_faults_due(yt_faults *all, uint32_t what, uint64_t bytes, uint64_t now_ns, const char *kernel,
				      const char *stage)
{
	yt_fault *due = NULL;
	uint32_t i;

	for (i = 0; i < all->n; i++) {
		yt_fault *f = &all->fault[i];

		if (f->what != what || (f->kernel[0] != '\0' && strncmp(kernel, f->kernel, strlen(f->kernel)) != 0) ||
		    (f->stage[0] != '\0' && strcmp(stage, f->stage) != 0) || (f->bytes != 0 && bytes <= f->bytes) ||
		    now_ns - all->since < f->after_ns)
			continue;
		f->seen++;
		if ((f->n != 0 && f->seen != f->n) || (f->p >= 0 && yt_fault_random(f) >= f->p))
			continue;
		due = due == NULL ? f : due;
	}
	return due;
}

#endif /* YT_FAULTS_H */
