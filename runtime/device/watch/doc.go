// Package watch keeps an applied plan true.
//
// The kernel says who wrote a node (fanotify marks on /proc/sys and /sys), that
// a device came or went (uevents), and says nothing about what it changes by
// itself, which a slow sweep finds. Everything waits in one epoll; while nothing
// happens, nothing runs.
//
//	     write event, uevent, sweep
//	                |
//	           look at the node
//	 as wanted /    |       \ not as wanted
//	(rounded,       |        policy report, once: say so
//	 capped)        |
//	     kept ----------------> repaired      at most 3 a minute and node
//	      ^                        |
//	      |                        | a 4th within the minute
//	found as wanted,               v
//	or quiet for 10 min        contested      unmarked, alarm, writer named
//	      +------------------------+
//
// [Guard] is that diagram, [Keeper] applies it to a device, and [Run] feeds a
// Keeper from the kernel. The first two have no clock and no file descriptors of
// their own, so that tests drive them with events and times they make up.
package watch
