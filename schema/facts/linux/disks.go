package linux

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/facts/nametable"
)

//go:embed disks.bin
var diskData []byte

var diskTable = sync.OnceValue(func() *nametable.Table { return nametable.Open(diskData) })

// QueueLimitsLine is the name of the line with the limits of request queues.
const QueueLimitsLine = "!limits"

// Disk is a kind of disks of one kernel.
type Disk struct {
	Names string // a pattern, as in [Thread]: nvme#n#
	// Depth is the largest number of requests that the hardware queue takes, and 0 where it depends on
	// the device. The module parameter Param, if there is one, sets Depth+Less.
	Depth  int
	Param  string
	Less   int
	Direct bool   // the driver has no queue of requests: the kernel refuses nr_requests
	Source string // of the kernel
}

// Matches reports whether a glob can select such a disk.
func (d Disk) Matches(glob string) bool { return matches(d.Names, glob) }

// Disks returns the kinds of disks of a kernel by name. The caller must not change them.
func Disks(line string) []Disk { return diskKinds(line) }

var diskKinds = perLine(func(n int) []Disk {
	var found []Disk
	for name, rest := range diskTable().All() {
		for variant := range strings.SplitSeq(rest, "\t") {
			f := strings.Split(variant, ";")
			if len(f) != 6 || !holds(f[0], n) {
				continue
			}
			d := Disk{Names: name, Param: f[2], Direct: f[4] == "d", Source: f[5]}
			var err1, err2 error
			d.Depth, err1 = strconv.Atoi(f[1])
			d.Less, err2 = strconv.Atoi(f[3])
			if err1 == nil && err2 == nil {
				found = append(found, d)
			}
		}
	}
	return found
})

// MaxScheduled is the longest queue of requests that a kernel gives a disk with a scheduler; 0 where
// it is not known.
func MaxScheduled(line string) int {
	n := lineIndex(line)
	rest, _ := diskTable().Find(QueueLimitsLine)
	for variant := range strings.SplitSeq(rest, "\t") {
		if f := strings.Split(variant, ";"); len(f) == 3 && holds(f[0], n) {
			if most, err := strconv.Atoi(f[2]); err == nil {
				return most
			}
		}
	}
	return 0
}
