package check

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/knob"
)

// The rules of this file are about the scheduling of kernel threads, whose names are facts.
func threadRules() []Rule {
	return []Rule{
		{
			ID: "thread-name", Severity: diag.Error, tables: true,
			Title: "kernel thread that the kernel does not start",
			Cause: "The kernel has no thread of that name: it is misspelt, another version has it, or an option that starts it is off.",
			Fix:   "write the name as `ps -e -o comm` on the device shows it, or switch the option on",
			Wrong: `threads: "ksoftirq/*": {policy: "fifo", priority: 1}`, Right: `threads: "ksoftirqd/*": {policy: "fifo", priority: 1}`,
			See: "kthread_create and smp_hotplug_thread in the kernel's sources",
			run: checkThreadName,
		},
		{
			ID: "thread-unknown", Severity: diag.Warning, tables: true,
			Title: "unknown kernel thread",
			Cause: "No source of the kernel is known to start a thread of that name. Threads that a driver names after a device, and those of work queues, are not in the facts.",
			Fix:   "check the name on the device, or set external: true if a module of yours starts it",
			Wrong: `threads: "acme_dsp": nice: -5`, Right: `threads: "acme_dsp": {nice: -5, external: true}`,
			See: "kthread_create in the kernel's sources",
			run: checkThreadUnknown,
		},
		{
			ID: "thread-irq", Severity: diag.Warning,
			Title: "few interrupts have a thread",
			Cause: "Without threadirqs or a real-time kernel, only interrupts whose driver asks for it are handled in a thread, irq/N-NAME.",
			Fix:   `add kernel: args: threadirqs: true, or use kernel: preempt: "rt"`,
			Wrong: `threads: "irq/*-eth0": {policy: "fifo", priority: 60}`, Right: `{kernel: args: threadirqs: true, threads: "irq/*-eth0": {policy: "fifo", priority: 60}}`,
			See: "kernel/irq/manage.c: irq_setup_forced_threading",
			run: checkThreadIRQ,
		},
		{
			ID: "thread-affinity", Severity: diag.Error,
			Title: "affinity that a kernel thread does not take",
			Cause: "Threads with one instance per core are bound to it (PF_NO_SETAFFINITY), and sched_setaffinity fails. The thread of an interrupt follows the affinity of its interrupt.",
			Fix:   "leave affinity out; set irq.affinity for an interrupt",
			Wrong: `threads: "ksoftirqd/*": affinity: [0]`, Right: `threads: "kswapd0": affinity: [0]`,
			See: "kernel/kthread.c: kthread_bind; kernel/irq/manage.c",
			run: checkThreadAffinity,
		},
		{
			ID: "thread-scheduling", Severity: diag.Error,
			Title: "policy and priority of a kernel thread do not fit",
			Cause: "fifo and rr need a priority from 1 to 99, and other has none. A nice level has an effect with other only. The kernel refuses any change of the migration threads.",
			Fix:   "give fifo and rr a priority, and others a nice level",
			Wrong: `threads: "kswapd0": {policy: "fifo"}`, Right: `threads: "kswapd0": {policy: "other", nice: 5}`,
			See: "sched(7); kernel/sched/core.c: rq->stop",
			run: checkThreadScheduling,
		},
		{
			ID: "thread-worker", Severity: diag.Warning,
			Title: "workers of work queues come and go",
			Cause: "The kernel starts and ends threads kworker/* as work arrives. A new one has the attributes of its queue until yoctuned finds it, at most some seconds later.",
			Fix:   "leave them; cpu.isolate keeps unbound work off chosen cores",
			Wrong: `threads: "kworker/*": nice: -5`, Right: `cpu: isolate: [4, 5]`,
			See: "kernel/workqueue.c: create_worker",
			run: checkThreadWorker,
		},
	}
}

// flat writes a thread's name so that a pattern's * matches "/", too.
func flat(name string) string { return strings.ReplaceAll(name, "/", "!") }

// facts of one entry of threads.
type threadFacts struct {
	*config.Thread
	kinds  []linux.Thread // that the pattern selects on this kernel
	absent string         // option without which there are none; "" where some exist
	lacks  startedBy      // the same, an argument
}

// startedBy is the argument by which a kernel without PREEMPT_RT starts some threads. The sources
// test it when they run (kernel/softirq.c: force_irqthreads; kernel/rcu/tree.c: use_softirq).
type startedBy struct{ arg, value string }

var byArgument = map[string]startedBy{"ktimers/#": {"threadirqs", ""}, "rcuc/#": {"rcutree.use_softirq", "0"}}

// lacksArgument returns the argument without which the kernel starts no such threads.
func (s *subject) lacksArgument(kind linux.Thread) startedBy {
	by := byArgument[kind.Name]
	given := s.Config.Kernel.Args.Get(by.arg)
	if _, known := s.findArg(by.arg); !known || s.isRealtime() || given.IsSet() && given.Text == by.value {
		return startedBy{}
	}
	return by
}

// ofKernelItself are threads whose names the sources compute.
var ofKernelItself = []string{"irq!*", "kworker!*", "kthreadd", "migration!*"}

func (s *subject) threads() []threadFacts {
	var out []threadFacts
	for _, entry := range s.Config.Threads.Entries {
		t := threadFacts{Thread: entry}
		if !entry.External.On {
			exists := false
			for kind := range s.kernelThreads() {
				if !kind.Matches(entry.Key()) {
					continue
				}
				t.kinds = append(t.kinds, kind)
				symbol, _ := s.missingOption(linux.Arg{Needs: kind.Needs})
				if s.isRealtime() && (symbol == "PREEMPT_RT" || symbol == "PREEMPT_RCU") {
					symbol = ""
				}
				by := s.lacksArgument(kind)
				exists = exists || symbol == "" && by.arg == ""
				t.absent, t.lacks = symbol, by
			}
			if exists {
				t.absent, t.lacks = "", startedBy{}
			}
		}
		out = append(out, t)
	}
	return out
}

// kernelThreads yields the threads that the kernel starts.
func (s *subject) kernelThreads() iter.Seq[linux.Thread] {
	return func(yield func(linux.Thread) bool) {
		for _, line := range s.lines {
			for _, kind := range linux.Threads(line) {
				if !yield(kind) {
					return
				}
			}
		}
	}
}

// isKnown reports whether the pattern selects a thread that some source starts.
func (t threadFacts) isKnown() bool {
	return len(t.kinds) > 0 || slices.ContainsFunc(ofKernelItself, func(p string) bool { return knob.Overlap(flat(t.Key()), p) })
}

// guessThread returns an error and the help for a name that the target's kernel lacks, "" where
// nothing is known about it.
func (s *subject) guessThread(name string) (message, help, near string) {
	var others []string
	for _, line := range linux.Kernels() {
		for _, kind := range linux.Threads(line) {
			if !slices.Contains(s.lines, line) && kind.Matches(name) && !slices.Contains(others, line) {
				others = append(others, line)
			}
		}
	}
	if len(others) > 0 {
		have := "kernels " + strings.Join(others, ", ") + " do"
		if len(others) == 1 {
			have = "kernel " + others[0] + " does"
		}
		return fmt.Sprintf("kernel %s starts no thread %s: %s", s.Release.Kernel, name, have), "remove it", ""
	}
	var names []string
	for kind := range s.kernelThreads() {
		names = append(names, strings.ReplaceAll(kind.Name, "#", "*"))
	}
	if near = diag.Nearest(name, names); near != "" {
		return fmt.Sprintf("kernel %s starts no thread %s", s.Release.Kernel, name), fmt.Sprintf("did you mean %q?", near), near
	}
	return "", "", ""
}

func checkThreadName(s *subject) {
	for _, t := range s.threads() {
		switch {
		case t.External.On:
		case t.absent != "":
			s.reportKey(t.Thread, "switch "+t.absent+" on in kernel.config, or remove the entry", "the kernel starts no thread %s: %s is off", t.Key(), t.absent)
		case t.lacks.arg != "":
			arg := formatArg(t.lacks.arg, t.lacks.value)
			s.reportKey(t.Thread, fmt.Sprintf("use kernel: preempt: \"rt\", or give the kernel %s", arg), "the kernel starts no thread %s: it has neither PREEMPT_RT nor %s", t.Key(), arg)
		case t.isKnown():
			s.checkThreadCore(t)
		default:
			if message, help, near := s.guessThread(t.Key()); message != "" && !(s.isRealtime() && s.Release.RTProvider != "") {
				s.reportKey(t.Thread, help, "%s", message).propose(t.Thread, t.Key(), near)
			}
		}
	}
}

// checkThreadCore reports the thread of a core that the board lacks.
func (s *subject) checkThreadCore(t threadFacts) {
	_, number, _ := strings.Cut(t.Key(), "/")
	core, err := strconv.Atoi(number)
	if err != nil || core < s.Board.Cores || len(t.kinds) == 0 || slices.ContainsFunc(t.kinds, func(k linux.Thread) bool { return !k.Bound }) {
		return
	}
	f := s.refuse(s.coreCount(), t, "", fmt.Sprintf("the cores are 0 to %d", s.Board.Cores-1), "core %d of thread %s does not exist", core, t.Key())
	f.Pos = t.KeyPos()
}

func checkThreadUnknown(s *subject) {
	for _, t := range s.threads() {
		if t.External.On || t.isKnown() {
			continue
		}
		// A kernel with the real-time patches has threads that the sources of the facts lack.
		if message, _, _ := s.guessThread(t.Key()); message == "" || s.isRealtime() && s.Release.RTProvider != "" {
			s.reportKey(t.Thread, "", "no source of kernel %s is known to start a thread %s", s.Release.Kernel, t.Key())
		}
	}
}

func checkThreadIRQ(s *subject) {
	if s.isRealtime() || s.Config.Kernel.Args.Has("threadirqs") {
		return
	}
	for _, t := range s.Config.Threads.Entries {
		if strings.HasPrefix(t.Key(), "irq/") {
			s.reportKey(t, "", "kernel %s handles most interrupts without a thread", s.Release.Kernel)
		}
	}
}

func checkThreadAffinity(s *subject) {
	for _, t := range s.threads() {
		if !t.Affinity.IsSet() {
			continue
		}
		if i := slices.IndexFunc(config.Cores(t.Affinity), func(c int) bool { return c >= s.Board.Cores }); i >= 0 {
			s.refuse(s.coreCount(), t.Affinity, t.Affinity.Show(), fmt.Sprintf("the cores are 0 to %d", s.Board.Cores-1), "core %d does not exist", config.Cores(t.Affinity)[i])
		}
		switch {
		case len(t.Affinity.Items) == 0:
			s.reportAt(t.Affinity, "[]", "list at least one core", "%s would have no core", t.Key())
		case strings.HasPrefix(t.Key(), "irq/"):
			s.reportAt(t.Affinity, t.Affinity.Show(), "set irq.affinity, which the thread follows", "the thread of an interrupt follows the interrupt")
		case len(t.kinds) > 0 && !slices.ContainsFunc(t.kinds, func(k linux.Thread) bool { return !k.Bound }):
			s.reportAt(t.Affinity, t.Affinity.Show(), "leave affinity out", "the kernel binds each thread %s to its core", t.Key())
		}
	}
}

func checkThreadScheduling(s *subject) {
	for _, t := range s.Config.Threads.Entries {
		realtime := t.Policy.Text == "fifo" || t.Policy.Text == "rr"
		switch {
		case strings.HasPrefix(t.Key(), "migration/"):
			s.reportKey(t, "remove the entry", "the kernel refuses to change the migration threads")
		case knob.Overlap(flat(t.Key()), "migration!0"):
			s.reportKey(t, "write patterns that name the threads you mean", "%s selects the migration threads, too, which the kernel refuses to change", t.Key())
		case t.Nice.IsSet() && s.realtimeOf(t) != nil:
			s.raise(t.Nice, "a nice level has no effect on threads that another entry gives a real-time policy").withValue(t.Nice.Show()).addRelated(s.realtimeOf(t), "the other entry")
		case realtime && !t.Priority.IsSet():
			s.reportAt(t.Policy, t.Policy.Show(), "add priority, such as 50, that of interrupt threads", "policy %q needs a priority", t.Policy.Text)
		case t.Priority.IsSet() && !realtime:
			s.reportAt(t.Priority, t.Priority.Show(), `add policy: "fifo"`, "a priority needs policy \"fifo\" or \"rr\"")
		case realtime && t.Nice.IsSet():
			s.reportAt(t.Nice, t.Nice.Show(), "leave nice out", "a nice level has no effect with policy %q", t.Policy.Text)
		case !t.Policy.IsSet() && !t.Nice.IsSet() && !t.Affinity.IsSet():
			s.reportKey(t, "add policy, nice or affinity", "the entry sets nothing")
		}
	}
}

// realtimeOf returns another entry that gives threads of an entry without a policy a real-time one.
func (s *subject) realtimeOf(t *config.Thread) *config.Thread {
	for _, other := range s.Config.Threads.Entries {
		if realtime := other.Policy.Text == "fifo" || other.Policy.Text == "rr"; realtime && !t.Policy.IsSet() && other != t && knob.Overlap(flat(other.Key()), flat(t.Key())) {
			return other
		}
	}
	return nil
}

func checkThreadWorker(s *subject) {
	for _, t := range s.Config.Threads.Entries {
		if strings.HasPrefix(t.Key(), "kworker") {
			s.reportKey(t, "", "threads %s come and go", t.Key())
		}
	}
}
