package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func checkScheduler(in *Input) answer {
	nodes, err := rootfs.Nodes(in.Dev, rootfs.ClassBlock)
	if err != nil {
		return answer{Unknown, "", err.Error()}
	}
	var bad []string
	n := 0
	for _, d := range nodes {
		if !strings.HasPrefix(d.Name, "nvme") {
			continue
		}
		n++
		if s := selectedChoice(in.readText(d.Path + "/queue/scheduler")); s != "none" && s != "" {
			bad = append(bad, d.Name+" "+s)
		}
	}
	switch {
	case n == 0:
		return answer{Skipped, "no NVMe disk", ""}
	case len(bad) > 0:
		return answer{Warn, joinSome(bad), "storage: \"nvme*\": scheduler: \"none\" in the configuration"}
	}
	return answer{OK, "none", ""}
}

// wholeDisk reports whether name is a disk and not a partition such as nvme0n1p1 or sda1.
func wholeDisk(dev rootfs.FS, name string) bool {
	_, err := dev.Resolve("/sys/block/" + name)
	return err == nil && !strings.HasPrefix(name, "loop") && !strings.HasPrefix(name, "ram") && !strings.HasPrefix(name, "zram")
}

func checkIOQueue(in *Input) answer {
	ms := in.seconds() * 1000
	if ms <= 0 || len(in.After.Disks) == 0 {
		return answer{Unknown, "", "/proc/diskstats cannot be read"}
	}
	worst := answer{Skipped, "no disk is busy", ""}
	for name, now := range in.After.Disks {
		was, ok := in.Before.Disks[name]
		busy := float64(now.Busy - was.Busy)
		if !ok || !wholeDisk(in.Dev, name) || busy*1000/ms < busyQueue {
			continue
		}
		depth := float64(now.Weighted-was.Weighted) / busy
		a := answer{OK, fmt.Sprintf("%s: %s while busy", name, formatNumber(depth)), ""}
		switch {
		case depth > 32:
			a.verdict, a.advice = Warn, "requests queue up: use fewer writers or a smaller nr_requests"
		case depth < 16:
			a.verdict, a.advice = Warn, "the disk is busy with few requests in flight: use larger or more parallel reads (io_uring, readahead)"
		}
		if worst.verdict == Skipped || a.verdict == Warn {
			worst = a
		}
	}
	return worst
}

func checkDiskWrites(in *Input) answer {
	if in.seconds() <= 0 || len(in.After.Disks) == 0 {
		return answer{Unknown, "", "/proc/diskstats cannot be read"}
	}
	n, mb := 0, 0.0
	for name, now := range in.After.Disks {
		if was, ok := in.Before.Disks[name]; ok && strings.HasPrefix(name, "mmcblk") && wholeDisk(in.Dev, name) {
			n++
			mb += float64(now.Written-was.Written) * 512 / 1e6 / in.seconds() * 86400
		}
	}
	if n == 0 {
		return answer{Skipped, "no eMMC or SD card", ""}
	}
	return judgeMaximum(mb/1000, writesPerDay/1000, 1e12, "GB a day at this rate", "keep logs in memory (journald Storage=volatile), increase vm.dirty_expire_centisecs, or move data to another disk")
}

func checkJournald(in *Input) answer {
	if _, err := in.Dev.Mode("/var/log/journal"); errors.Is(err, fs.ErrNotExist) {
		return answer{OK, "in memory", ""}
	}
	files := []string{"/etc/systemd/journald.conf"}
	for _, dir := range []string{"/usr/lib/systemd/journald.conf.d", "/etc/systemd/journald.conf.d"} {
		names, err := in.Dev.List(dir)
		if err != nil {
			continue
		}
		for _, n := range names {
			files = append(files, dir+"/"+n)
		}
	}
	storage, limit := "", ""
	for _, f := range files {
		b, err := in.Dev.ReadFile(f, 64<<10)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "Storage":
				storage = value
			case "SystemMaxUse":
				limit = value
			}
		}
	}
	switch {
	case storage == "volatile" || storage == "none":
		return answer{OK, "Storage=" + storage, ""}
	case limit == "":
		return answer{Warn, "on disk, up to 10 % of it", "SystemMaxUse=50M, or Storage=volatile, in /etc/systemd/journald.conf.d/"}
	}
	return answer{OK, "SystemMaxUse=" + limit, ""}
}
