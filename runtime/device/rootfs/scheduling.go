package rootfs

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// taskNode is the scheduling of a unit's processes (sched(7)). systemd sets it only when it
// starts a process; taskNode changes running ones.
type taskNode struct{ dir, attribute string }

// resetOnFork is SCHED_RESET_ON_FORK, a flag of the policy.
const resetOnFork = 0x40000000

func (n taskNode) read(r *Root) (string, error) {
	var all []string
	err := n.eachProcess(r, func(pid int) error {
		text, err := n.describe(pid)
		if err == nil && !slices.Contains(all, text) {
			all = append(all, text)
		}
		return err
	})
	if err == nil && len(all) == 0 {
		err = unix.ENOENT // no process to set
	}
	return strings.Join(all, ", "), err
}

// hasProcess reports whether the unit has a process. A unit that starts has a cgroup before
// it has processes.
func (n taskNode) hasProcess(r *Root) bool {
	found := false
	err := n.eachProcess(r, func(int) error { found = true; return nil })
	return err == nil && found
}

// eachProcess calls do with each process of the unit and ignores those that have ended.
func (n taskNode) eachProcess(r *Root, do func(pid int) error) error {
	b, err := r.ReadFile(n.dir+"/cgroup.procs", 1<<20)
	if err != nil {
		return err
	}
	for field := range strings.FieldsSeq(string(b)) {
		pid, err := strconv.ParseUint(field, 10, 31)
		if err != nil || pid == 0 {
			continue // of another PID namespace
		}
		if isStarting(r, int(pid)) {
			continue
		}
		if err := do(int(pid)); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// isStarting reports whether a process is still systemd's own. systemd sets its scheduling,
// among others, before it executes the unit's program, and names it "(program)" until then.
func isStarting(r *Root, pid int) bool {
	name := ReadText(r, "/proc/"+strconv.Itoa(pid)+"/comm")
	return strings.HasPrefix(name, "(") || name == "systemd" || name == "systemd-executo"
}

// describe returns the policy of a task, such as "fifo 50" or "other", or its nice level.
func (n taskNode) describe(tid int) (string, error) {
	if n.attribute == "nice" {
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		return strconv.Itoa(20 - raw), err // the system call returns 20 - nice
	}
	policy, err := getPolicy(tid)
	if err != nil {
		return "", err
	}
	for name, number := range schedulingPolicies() {
		if number != policy&^resetOnFork {
			continue
		}
		priority, err := getPriority(tid)
		if err != nil || priority == 0 {
			return name, err
		}
		return name + " " + strconv.Itoa(priority), nil
	}
	return "policy " + strconv.Itoa(policy), nil
}

func schedulingPolicies() map[string]int {
	return map[string]int{"other": 0, "fifo": 1, "rr": 2, "batch": 3, "idle": 5}
}

func (n taskNode) write(r *Root, text string) error {
	set, err := n.setter(text)
	if err != nil {
		return err
	}
	return n.eachProcess(r, func(pid int) error {
		before, err := n.describe(pid)
		if err != nil {
			return err
		}
		names, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
		if err != nil {
			return unix.ESRCH
		}
		for _, e := range names {
			tid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			// Skip a thread that differs from its process: the program has set it.
			if now, err := n.describe(tid); err != nil || now != before {
				continue
			}
			if err := set(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		return nil
	})
}

func (n taskNode) setter(text string) (func(tid int) error, error) {
	if n.attribute == "nice" {
		level, err := strconv.Atoi(text)
		if err != nil || level < -20 || level > 19 {
			return nil, unix.EINVAL
		}
		return func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, level) }, nil
	}
	name, level, _ := strings.Cut(text, " ")
	policy, ok := schedulingPolicies()[name]
	priority := 0
	if level != "" {
		var err error
		if priority, err = strconv.Atoi(level); err != nil {
			return nil, unix.EINVAL
		}
	}
	if realtime := policy == 1 || policy == 2; !ok || realtime != (priority > 0) {
		return nil, unix.EINVAL
	}
	return func(tid int) error {
		now, err := getPolicy(tid)
		if err != nil {
			return err
		}
		return setPolicy(tid, policy|now&resetOnFork, priority)
	}, nil
}

// These system calls keep a task's nice level, unlike sched_setattr(2).

func getPolicy(tid int) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func getPriority(tid int) (int, error) {
	var priority int32 // struct sched_param
	_, _, errno := unix.Syscall(unix.SYS_SCHED_GETPARAM, uintptr(tid), uintptr(unsafe.Pointer(&priority)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(priority), nil
}

func setPolicy(tid, policy, priority int) error {
	param := int32(priority)
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), uintptr(policy), uintptr(unsafe.Pointer(&param)))
	if errno != 0 {
		return errno
	}
	return nil
}
