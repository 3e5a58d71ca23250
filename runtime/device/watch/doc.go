// Package watch enforces an applied plan.
//
// The kernel reports writes to nodes with the process that made them (fanotify marks on
// /proc/sys and /sys) and devices that are added or removed (uevents). It does not report
// its own changes, which a slow sweep finds. Everything waits in one epoll; an idle
// enforcer does not run.
//
//	     write event, uevent, sweep
//	                |
//	           look at the node
//	 as wanted /    |       \ not as wanted
//	(rounded,       |        policy report, once: event
//	 capped)        |
//	     kept ----------------> repaired      at most 3 a minute and node
//	      ^                        |
//	      |                        | a 4th within the minute
//	found as wanted,               v
//	or no write in 10 min       contested      unmarked, alarm with the writer
//	      +------------------------+
//
// [Guard] implements the limit on the right, [Keeper] the rest, and [Run] feeds a Keeper
// with the kernel's events. The first two have no clock and no file descriptors, so that
// tests can drive them with any events and times.
package watch
