package doctor

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Counters are cumulative counters of the kernel at one moment.
type Counters struct {
	At         time.Duration
	VM         map[string]int64
	Disks      map[string]Disk
	Links      map[string]Link
	Interrupts []int64 // by CPU
}

// Disk is a line of /proc/diskstats.
type Disk struct {
	Written  int64 // sectors of 512 bytes
	Busy     int64 // ms with requests in flight
	Weighted int64 // ms times requests in flight
}

// Link is a network interface.
type Link struct{ Packets, Errors int64 }

// ReadCounters reads the counters. Missing ones stay empty.
func ReadCounters(dev rootfs.FS, at time.Duration) Counters {
	c := Counters{At: at, VM: map[string]int64{}, Disks: map[string]Disk{}, Links: map[string]Link{}}
	read := func(name string) string {
		b, err := dev.ReadFile(name, 4<<20)
		if err != nil {
			return ""
		}
		return string(b)
	}
	for line := range strings.Lines(read("/proc/vmstat")) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			c.VM[f[0]] = n
		}
	}
	for line := range strings.Lines(read("/proc/diskstats")) {
		f := strings.Fields(line)
		if len(f) < 14 {
			continue
		}
		written, err1 := strconv.ParseInt(f[9], 10, 63)
		busy, err2 := strconv.ParseInt(f[12], 10, 63)
		weighted, err3 := strconv.ParseInt(f[13], 10, 63)
		if errors.Join(err1, err2, err3) == nil {
			c.Disks[f[2]] = Disk{written, busy, weighted}
		}
	}
	nodes, _ := rootfs.Nodes(dev, rootfs.ClassNet)
	for _, n := range nodes {
		get := func(name string) int64 {
			v, err := strconv.ParseInt(rootfs.ReadText(dev, n.Path+"/statistics/"+name), 10, 63)
			if err != nil {
				return 0
			}
			return v
		}
		c.Links[n.Name] = Link{get("rx_packets") + get("tx_packets"), get("rx_errors") + get("tx_errors") + get("rx_dropped")}
	}
	c.Interrupts = sumInterrupts(read("/proc/interrupts"))
	return c
}

// sumInterrupts adds up the columns of /proc/interrupts.
func sumInterrupts(text string) []int64 {
	head, rest, _ := strings.Cut(text, "\n")
	out := make([]int64, len(strings.Fields(head)))
	for line := range strings.Lines(rest) {
		_, counts, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for i, f := range strings.Fields(counts) {
			n, err := strconv.ParseInt(f, 10, 62)
			if i >= len(out) || err != nil {
				break
			}
			out[i] += n
		}
	}
	return out
}
