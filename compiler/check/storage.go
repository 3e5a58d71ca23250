package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/knob"
)

// The rules of this file are about disks, whose names and queues are facts.
func storageRules() []Rule {
	return []Rule{
		{
			ID: "disk-name", Severity: diag.Error,
			Title: "name of a disk that the kernel does not give",
			Cause: "Drivers name their disks: nvme0n1, mmcblk0, sda, vda. A partition, such as nvme0n1p1, has no queue of its own. A setting for another name reaches no device.",
			Fix:   "write the name of the disk as lsblk on the device shows it",
			Wrong: `storage: "nmve*": scheduler: "none"`, Right: `storage: "nvme*": scheduler: "none"`,
			See: "disk_name in the kernel's drivers",
			run: checkDiskName,
		},
		{
			ID: "disk-unknown", Severity: diag.Warning,
			Title: "unknown name of a disk",
			Cause: "No driver of the kernel is known to give a disk such a name. A driver outside of the kernel may.",
			Fix:   "write the name of the disk as lsblk on the device shows it",
			Wrong: `storage: "acmedisk*": scheduler: "none"`, Right: `storage: "mmcblk*": scheduler: "none"`,
			See: "disk_name in the kernel's drivers",
			run: checkDiskUnknown,
		},
		{
			ID: "disk-requests", Severity: diag.Error,
			Title: "the disk does not take so many requests",
			Cause: "Without a scheduler a queue holds as many requests as the driver's hardware queue: 1023 for NVMe, 64 for an eMMC or SD card. With one it holds 2048 at most. The kernel refuses a larger number with EINVAL and keeps the old one. Drivers without a queue, such as zram and device mapper, refuse every number.",
			Fix:   "write a smaller number",
			Wrong: `storage: "nvme*": {scheduler: "none", requests: 2048}`, Right: `storage: "nvme*": {scheduler: "none", requests: 1023}`,
			See: "block/blk-mq.c: blk_mq_update_nr_requests; block/blk-mq-sched.h: MAX_SCHED_RQ",
			run: checkDiskRequests,
		},
		{
			ID: "disk-readahead", Severity: diag.Error,
			Title: "read-ahead is not a number of whole pages",
			Cause: "The kernel counts read-ahead in pages and drops the rest, so that the device holds another value than the plan.",
			Fix:   "write a multiple of the page size",
			Wrong: `storage: "nvme*": readahead: "6KiB"`, Right: `storage: "nvme*": readahead: "8KiB"`,
			See: "block/blk-sysfs.c: queue_ra_store",
			run: checkDiskReadahead,
		},
	}
}

// disksOf returns the kinds of disks that an entry selects on the target's kernel.
func (s *subject) disksOf(e *config.Storage) []linux.Disk {
	var found []linux.Disk
	for _, d := range linux.Disks(s.lines[len(s.lines)-1]) {
		if d.Matches(e.Key()) {
			found = append(found, d)
		}
	}
	return found
}

// unknownDisks yields the entries of storage that select no disk of the kernel, with the name that
// was probably meant.
func (s *subject) unknownDisks(yield func(e *config.Storage, near string)) {
	kinds := map[string]string{} // pattern by the word it begins with
	var words []string
	for _, d := range linux.Disks(s.lines[len(s.lines)-1]) {
		word := leading.FindString(d.Names)
		kinds[word] = strings.NewReplacer("#", "*", "?", "*").Replace(d.Names)
		words = append(words, word)
	}
	if len(words) == 0 || s.File != nil {
		return // board-device compares with the device
	}
	for _, e := range s.Config.Storage.Entries {
		if len(s.disksOf(e)) == 0 && leading.MatchString(e.Key()) {
			yield(e, kinds[diag.Nearest(leading.FindString(e.Key()), words)])
		}
	}
}

var (
	leading   = lazyregexp.New(`^[A-Za-z]+`)
	partition = lazyregexp.New(`^(?:((?:nvme\d+n|mmcblk|nbd|loop|md)\d+)p\d+|((?:sd|vd|xvd)[a-z]+)\d+)$`)
)

// diskOfPartition returns the disk of a partition's name, "" for any other name.
func diskOfPartition(name string) string {
	m := partition.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	return m[1] + m[2]
}

func checkDiskName(s *subject) {
	for _, e := range s.Config.Storage.Entries {
		if disk := diskOfPartition(e.Key()); disk != "" {
			s.reportKey(e, fmt.Sprintf("write %q", disk), "%s is a partition: the queue is that of the disk", e.Key())
		}
	}
	s.unknownDisks(func(e *config.Storage, near string) {
		if near != "" && diskOfPartition(e.Key()) == "" {
			s.reportKey(e, fmt.Sprintf("did you mean %q?", near), "no driver of kernel %s names a disk %s", s.Release.Kernel, e.Key())
		}
	})
}

func checkDiskUnknown(s *subject) {
	s.unknownDisks(func(e *config.Storage, near string) {
		if near == "" {
			s.reportKey(e, "", "no driver of kernel %s is known to name a disk %s", s.Release.Kernel, e.Key())
		}
	})
}

// schedulerOf returns the scheduler that a disk of an entry gets; "" where the configuration sets
// none, or more than one.
func (s *subject) schedulerOf(e *config.Storage) string {
	if e.Scheduler.IsSet() {
		return e.Scheduler.Text
	}
	found := ""
	for _, other := range s.Config.Storage.Entries {
		if other.Scheduler.IsSet() && knob.Overlap(e.Key(), other.Key()) {
			if found != "" && found != other.Scheduler.Text {
				return ""
			}
			found = other.Scheduler.Text
		}
	}
	return found
}

// queueDepth returns the longest hardware queue of some kinds of disks, and the kind that has it;
// 0 where one is not known.
func (s *subject) queueDepth(disks []linux.Disk) (most int, of linux.Disk) {
	for _, d := range disks {
		if d.Direct {
			continue
		}
		depth := d.Depth
		if arg := s.Config.Kernel.Args.Get(moduleOf(d) + "." + d.Param); d.Param != "" && arg.IsSet() {
			n, err := strconv.Atoi(arg.Text)
			if err != nil {
				return 0, d
			}
			depth = n - d.Less
		}
		if depth == 0 {
			return 0, d
		}
		if depth > most {
			most, of = depth, d
		}
	}
	return most, of
}

// moduleOf is the module whose parameter sets the depth of a queue.
func moduleOf(d linux.Disk) string { return leading.FindString(d.Names) }

func checkDiskRequests(s *subject) {
	for _, e := range s.Config.Storage.Entries {
		disks := s.disksOf(e)
		if !e.Requests.IsSet() || len(disks) == 0 {
			continue
		}
		if !slices.ContainsFunc(disks, func(d linux.Disk) bool { return !d.Direct }) {
			s.reportAt(e.Requests, e.Requests.Show(), "remove requests", "%s has no queue of requests (%s)", e.Key(), disks[0].Source)
			continue
		}
		s.checkQueueLength(e, disks)
	}
}

// checkQueueLength compares the number of requests of an entry with what the queues of its disks hold.
func (s *subject) checkQueueLength(e *config.Storage, disks []linux.Disk) {
	n, scheduler := e.Requests.Value, s.schedulerOf(e)
	scheduled := linux.MaxScheduled(s.lines[len(s.lines)-1])
	depth, of := s.queueDepth(disks)
	longest := scheduled // of the queue with a scheduler that is not known
	if scheduler == "" {
		longest = max(scheduled, depth)
	}
	switch {
	case scheduler == "none" && depth > 0 && n > depth:
		s.reportAt(e.Requests, e.Requests.Show(), fmt.Sprintf("write %d or less, or choose a scheduler", depth),
			"without a scheduler the queue of %s holds %d requests at most (%s of kernel %s)", e.Key(), depth, of.Source, s.Release.Kernel)
	case scheduler != "none" && scheduled > 0 && n > longest:
		s.reportAt(e.Requests, e.Requests.Show(), fmt.Sprintf("write %d or less", longest),
			"a queue with a scheduler holds %d requests at most (MAX_SCHED_RQ of kernel %s)", scheduled, s.Release.Kernel)
	case scheduler == "" && depth > 0 && n > depth:
		f := s.raise(e.Requests, "without a scheduler the queue of %s holds %d requests at most (%s of kernel %s), and the configuration sets none", e.Key(), depth, of.Source, s.Release.Kernel)
		f.Severity, f.Got, f.Help = diag.Warning, e.Requests.Show(), fmt.Sprintf("set the scheduler, or write %d or less", depth)
	}
}

// pageSize is the size of a page of the target's kernel, in bytes.
func (s *subject) pageSize() int64 {
	switch {
	case s.isEnabled("ARM64_64K_PAGES"):
		return 64 << 10
	case s.isEnabled("ARM64_16K_PAGES"):
		return 16 << 10
	}
	return 4 << 10
}

func checkDiskReadahead(s *subject) {
	page := s.pageSize()
	for _, e := range s.Config.Storage.Entries {
		if !e.Readahead.IsSet() {
			continue
		}
		size, err := resolve.Size(e.Readahead.Node())
		if err == nil && size%1024 == 0 && size%page != 0 { // resolve reports the others
			s.reportAt(e.Readahead, e.Readahead.Show(), fmt.Sprintf("write %dKiB", max(size/page, 1)*page>>10), "the kernel reads ahead by whole pages of %d KiB", page>>10)
		}
	}
}
