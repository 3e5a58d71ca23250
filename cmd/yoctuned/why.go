package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/spelling"
)

// explanation explains the value of a node.
type explanation struct {
	ID        string           `json:"id"`
	Path      string           `json:"path"`
	Policy    string           `json:"policy"`
	Wanted    string           `json:"wanted"`
	Found     *string          `json:"found"` // null: it could not be read
	Outcome   outcome.Outcome  `json:"outcome"`
	Message   string           `json:"message"`  // how the kernel changed the value: rounded, capped, refused
	Origin    *string          `json:"origin"`   // line of the configuration
	Original  *string          `json:"original"` // what it was before the first apply since boot, null: never written
	Lost      string           `json:"lost,omitempty"`
	Lease     bool             `json:"lease"` // a lease holds it at another value than the plan
	Contested *watch.Contested `json:"contested"`
	Events    []watch.Event    `json:"events"` // that changed it since boot, oldest first, bounded
}

func newWhyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why NODE [PLAN]",
		Short: "Explain a node's value",
		Long: `Explain the value of one kernel node: the line of the configuration that set it, the
value from before, how the kernel changed the written value, which processes changed it
since boot, and whether that was repaired.

NODE is a path, the name of a sysctl, kernel argument or module, or the id of a setting. Without PLAN the plan is the one
that is being enforced, else the installed one.

Exit status: 0 the node is as wanted, 1 the plan has no such node, 2 wrong usage, 3 the
node is not as wanted.`,
		Example: `  yoctuned why vm.swappiness
  yoctuned why /sys/block/nvme0n1/queue/scheduler --format json`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
			planName, _ := cmd.Flags().GetString("plan")
			if len(args) == 2 {
				if planName != "" {
					return cli.UsageError(errors.New("give the plan once: as PLAN or with --plan"))
				}
				planName = args[1]
			}
			found, err := explain(dev, planName, args[0])
			if err != nil {
				return err
			}
			p, answer := cli.NewPrinter(cmd), true
			for _, e := range found {
				answer = answer && e.Outcome == outcome.OK
				if p.JSON {
					p.Line("node", e)
				} else {
					e.text(p)
				}
			}
			return p.End("why", cli.ExitCode(answer), nil)
		}),
	}
	cmd.Flags().String("plan", "", "`FILE` of the plan, as PLAN")
	cmd.ValidArgsFunction = completeFrom(0, 1, nodesOf)
	return cmd
}

func explain(dev *rootfs.Root, planName, node string) ([]explanation, error) {
	boot := rootfs.BootID(dev)
	// A state that cannot be read must not hide what the plan has: why serves broken devices.
	state, stateErr := watch.ReadState(dev, boot)
	if state == nil {
		state = &watch.State{}
	}
	if planName == "" && state.Plan != planfile.Installed {
		planName = state.Plan
	}
	file, err := planfile.Load(dev, planfile.Source{Path: planName})
	if err != nil {
		return nil, errors.Join(err, stateErr)
	}
	j, err := journal.Load(dev, boot)
	if err != nil {
		return nil, err
	}
	policy := map[string]string{}
	for _, s := range file.Plan.Settings {
		policy[s.ID] = s.Policy
	}
	var out []explanation
	results := enforce.Verify(dev, file.Plan, enforce.DefaultOptions())
	for _, r := range results {
		if !isNamed(node, r) {
			continue
		}
		e := explanation{
			ID: r.ID, Path: r.Path, Policy: cmp.Or(policy[r.ID], plan.Enforce), Wanted: r.Wanted,
			Outcome: r.Outcome, Message: r.Message, Origin: report{Origins: file.Origins}.origin(r.ID),
		}
		if r.Known {
			e.Found = &r.Found
		}
		real, _ := dev.Resolve(r.Path) // an absent node has no original either
		e.addJournal(j, real, state.PID != 0 && len(state.Leases) > 0)
		e.addHistory(state)
		out = append(out, e)
	}
	if len(out) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: the plan has no such node%s; 'yoctuned verify' lists its nodes", node, nearestID(node, results)), stateErr)
	}
	return out, nil
}

// addJournal adds what the journal has about the node: its original value, and whether a
// lease covers it. real is the path of the node without links.
func (e *explanation) addJournal(j *journal.Journal, real string, leased bool) {
	for _, o := range j.Originals {
		if o.Path == real {
			e.Original, e.Lost = &o.Value, o.Lost
		}
	}
	e.Lease = leased && slices.ContainsFunc(j.Covered, func(c journal.Original) bool { return c.Path == real })
}

// addHistory adds what happened to the node since the enforcer started.
func (e *explanation) addHistory(state *watch.State) {
	for i, c := range state.Contested {
		if state.PID != 0 && c.Path == e.Path {
			e.Contested = &state.Contested[i]
		}
	}
	e.Events = []watch.Event{}
	for _, ev := range state.History {
		if ev.Path == e.Path {
			e.Events = append(e.Events, ev)
		}
	}
}

// isNamed reports whether a word of the user names the node of a result.
func isNamed(node string, r enforce.Result) bool {
	for _, prefix := range idPrefixes() {
		if prefix+node == r.ID {
			return true
		}
	}
	return node == r.Path || node == r.Label() ||
		knob.SysctlPath(knob.DottedSysctl(node)) == r.Path
}

// idPrefixes are what a word may leave out of an id: kernel.args.isolcpus is also isolcpus.
func idPrefixes() []string { return []string{"", "sysctl.", "kernel.args.", "modules."} }

// nearestID returns the id that a word probably means, as a question, or "".
func nearestID(node string, results []enforce.Result) string {
	var short []string
	ids := map[string]string{}
	for _, r := range results {
		for _, prefix := range idPrefixes() {
			if name, ok := strings.CutPrefix(r.ID, prefix); ok {
				short, ids[name] = append(short, name), r.ID
			}
		}
	}
	if near := spelling.Nearest(node, short); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", ids[near])
	}
	return ""
}

func (e explanation) text(p cli.Printer) {
	row := func(key, format string, args ...any) { p.Printf("%-10s %s\n", key, fmt.Sprintf(format, args...)) }
	row("node", "%s", e.Path)
	found := "unreadable"
	if e.Found != nil {
		found = *e.Found
	}
	row("is", "%s (%s)", found, e.Outcome)
	if e.Message != "" {
		row("", "%s", e.Message)
	}
	setBy := "by " + e.ID
	if e.Origin != nil {
		setBy = "at " + *e.Origin
	}
	row("wanted", "%s, set %s, policy %s", e.Wanted, setBy, e.Policy)
	switch {
	case e.Lost != "":
		row("was", "unknown: %s", e.Lost)
	case e.Original != nil:
		row("was", "%s, before it was first written", *e.Original)
	default:
		row("was", "never written since boot")
	}
	if e.Lease {
		row("lease", "a lease overrides the plan now")
	}
	if e.Contested != nil {
		row("contested", "since %s, by %s", e.Contested.Since.Format(time.RFC3339), processName(e.Contested.By))
	}
	for _, ev := range e.Events {
		text := fmt.Sprintf("%s to %s by %s", ev.Type, ev.Found, processName(ev.By))
		if ev.Type == watch.Reapplied && ev.By == nil {
			text = fmt.Sprintf("%s, was %s after %s", ev.Type, ev.Found, ev.Message)
		}
		if ev.Type == watch.Switched {
			text = fmt.Sprintf("switched to %s from %s: %s", ev.Wanted, ev.Found, ev.Message)
		}
		if ev.Count > 1 {
			text += fmt.Sprintf(", %d times", ev.Count)
		}
		row(ev.Time.Format("15:04:05"), "%s%s", text, repairText(ev))
	}
	p.Printf("\n")
}

// processName describes the process that made a change.
func processName(p *rootfs.Process) string {
	if p == nil {
		return "kernel or unknown process"
	}
	return p.String()
}
