package rootfs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"golang.org/x/sys/unix"
)

// The scheduling of kernel threads. The kernel starts them by itself, under names such as
// ksoftirqd/0 and irq/36-nvme0q1:
//
//	/proc/12/kthread/ksoftirqd!0/scheduling    "fifo 50", "other"
//	/proc/12/kthread/ksoftirqd!0/nice
//	/proc/12/kthread/ksoftirqd!0/affinity      a list of processors
//
// The name is part of the path, with "!" for "/" as in sysfs, so that an original value is never
// restored to another thread under the same number.

// kthreadDir follows the number of a thread.
const kthreadDir = "/kthread/"

// kthreadFlag is PF_KTHREAD of include/linux/sched.h.
const kthreadFlag = 0x00200000

// shortName is the length of names on kernels before 5.17, which cut them.
const shortName = 15

// kthreadNode is an attribute of a kernel thread.
type kthreadNode struct {
	tid       int
	name      string // of the thread
	attribute string
}

// parseKThread parses the path of a node of a kernel thread.
func parseKThread(name string) (node kthreadNode, dir string, ok bool) {
	rest, ok := strings.CutPrefix(name, "/proc/")
	if !ok {
		return node, "", false
	}
	pid, rest, _ := strings.Cut(rest, "/")
	words := strings.Split(rest, "/")
	tid, err := strconv.ParseUint(pid, 10, 31)
	if err != nil || tid == 0 || len(words) != 3 || words[0] != path.Base(kthreadDir) || !slices.Contains([]string{"scheduling", "nice", "affinity"}, words[2]) {
		return node, "", false
	}
	return kthreadNode{int(tid), strings.ReplaceAll(words[1], "!", "/"), words[2]}, "/proc/" + pid, true
}

// ThreadOf returns the kernel thread of a node, "" for another node.
func ThreadOf(name string) string {
	n, _, _ := parseKThread(name)
	return n.name
}

// isKThreadNode reports whether name is such a node.
func isKThreadNode(name string) bool {
	_, _, ok := parseKThread(name)
	return ok
}

// isAlive reports whether the thread still runs, and has not been replaced by another of its number.
func (n kthreadNode) isAlive(r *Root) bool {
	name, ok := kernelThread(r, strconv.Itoa(n.tid))
	return ok && name == n.name
}

func (n kthreadNode) read(r *Root) (string, error) {
	if !n.isAlive(r) {
		return "", fs.ErrNotExist
	}
	if n.attribute != "affinity" {
		return taskNode{attribute: n.attribute}.describe(n.tid)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(n.tid, &set); err != nil {
		return "", err
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpulist.Format(cpus), nil
}

func (n kthreadNode) write(r *Root, value string) error {
	if !n.isAlive(r) {
		return fs.ErrNotExist
	}
	if n.attribute != "affinity" {
		set, err := taskNode{attribute: n.attribute}.setter(value)
		if err == nil {
			err = set(n.tid)
		}
		return err
	}
	cpus, err := cpulist.Parse(value)
	if err != nil {
		return unix.EINVAL
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return unix.SchedSetaffinity(n.tid, &set)
}

// kernelThread returns the name of a kernel thread; false for other processes, and for one that
// has ended.
func kernelThread(dev FS, pid string) (string, bool) {
	c, err := dev.Read("/proc/" + pid + "/stat")
	if err != nil {
		return "", false
	}
	// The name, in parentheses, may contain blanks and parentheses.
	first, last := strings.IndexByte(c.Text, '('), strings.LastIndexByte(c.Text, ')')
	if first < 0 || last < first {
		return "", false
	}
	f := strings.Fields(c.Text[last+1:]) // from the state on, which is field 3 of proc(5)
	if len(f) < 7 {
		return "", false
	}
	flags, err := strconv.ParseUint(f[6], 10, 32)
	return c.Text[first+1 : last], err == nil && flags&kthreadFlag != 0
}

// listKThreads lists the kernel threads by number.
func listKThreads(dev FS) ([]Node, error) {
	names, err := dev.List("/proc")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, pid := range names {
		if strings.Trim(pid, "0123456789") != "" {
			continue
		}
		if name, ok := kernelThread(dev, pid); ok {
			nodes = append(nodes, Node{Class: ClassKThread, Name: name, Path: "/proc/" + pid + kthreadDir + strings.ReplaceAll(name, "/", "!")})
		}
	}
	return nodes, nil
}

// matchesThread compares a pattern with the name of a thread. Unlike that of a file, the name has
// "/" in it, and a kernel before 5.17 cuts it.
func matchesThread(pattern, name string) bool {
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "!") }
	if Glob(flat(pattern), flat(name)) {
		return true
	}
	return len(name) == shortName && len(pattern) > shortName && Glob(flat(pattern[:shortName]), flat(name))
}
