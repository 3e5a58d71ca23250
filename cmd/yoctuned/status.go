package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
)

// deviceStatus is the status of the device. Refused and JournalError hold reasons.
type deviceStatus struct {
	Model        string            `json:"model,omitempty"`
	Plan         string            `json:"plan,omitempty"` // file
	Board        string            `json:"board,omitempty"`
	Target       string            `json:"target,omitempty"`
	Serial       int64             `json:"serial"`
	Digest       string            `json:"digest,omitempty"`
	Refused      string            `json:"refused,omitempty"` // why the plan would not be obeyed
	Signature    string            `json:"signature"`
	Signer       string            `json:"signer,omitempty"`       // id of the installed key that signed the plan
	Confirmed    map[string]int64  `json:"confirmed"`              // serial by layer/target
	Applied      *journal.Plan     `json:"applied"`                // since boot, null when none was
	Journalled   int               `json:"journalled"`             // originals that rollback would restore
	Lost         int               `json:"journal_lost,omitempty"` // records of the journal
	JournalError string            `json:"journal_error,omitempty"`
	Unreadable   string            `json:"unreadable,omitempty"` // state that this user may not read
	Holder       string            `json:"holder,omitempty"`     // process that is changing the device now
	Trial        *planfile.Trial   `json:"trial"`                // null: no trial, or it was confirmed
	Boot         *planfile.Boot    `json:"boot"`                 // null: no plan was applied at boot
	Pipelines    []pipelines.State `json:"pipelines,omitempty"`  // of the plan
	Watch        *watch.State      `json:"watch"`                // drift since boot; null: enforce has not run
	WatchError   string            `json:"watch_error,omitempty"`
}

func newStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status [PLAN]",
		Short: "Show the installed plan, its signature, and what was applied since boot",
		Long: `Show which plan is installed and whether it is accepted, whether unsigned plans are
accepted, what was applied since boot, how many values rollback would restore, which
settings drifted and by which process, contested nodes, leases, which pipelines of the plan
run and start at boot, and which process is changing the device now. status does not compare settings; "yoctuned verify" does.

Exit status: 0 the plan is accepted, 1 failed, 2 wrong usage, 3 there is no plan, or it
is refused.`,
		Example: `  yoctuned status
  yoctuned status plan.json --format json`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
			s := readStatus(dev, planSource(cmd, args))
			p := cli.NewPrinter(cmd)
			if p.JSON {
				p.Line("status", s)
			} else {
				s.text(p)
			}
			return p.End("status", cli.ExitCode(s.Refused == ""), nil)
		}),
	}
}

func readStatus(dev *rootfs.Root, src planfile.Source) deviceStatus {
	id := rootfs.Identify(dev)
	s := deviceStatus{Model: id.Model, Signature: signatureRule(dev)}
	file, err := planfile.Load(dev, src)
	if err == nil {
		p := file.Plan
		s.Signer = file.Signer
		s.Plan, s.Board, s.Target, s.Serial, s.Digest = file.Path, p.Board, p.Target, p.Serial, p.Digest
		s.Pipelines = pipelines.States(dev, liveDirs(dev), p)
		if err = planfile.CheckDevice(p, id); err == nil {
			err = planfile.CheckSerial(dev, p)
		}
	}
	s.refuse(err)
	s.Confirmed, err = planfile.Confirmed(dev)
	s.refuse(err)
	if j, err := journal.Load(dev, id.BootID); err != nil {
		s.JournalError = err.Error()
	} else {
		s.Applied, s.Journalled, s.Lost = j.Plan, len(j.Originals), j.Damaged
	}
	if s.Watch, err = watch.ReadState(dev, id.BootID); err != nil {
		s.WatchError = err.Error()
	}
	s.Trial, err = planfile.ReadTrial(dev)
	s.refuse(err)
	if s.Boot, err = planfile.ReadBoot(dev); err != nil {
		s.Boot = nil // is replaced at the next boot
	}
	if h := dev.Holder(); h != nil {
		s.Holder = fmt.Sprintf("pid %d (%s)", h.PID, h.Command)
	}
	return s
}

// refuse records why the plan would not be obeyed. The first reason counts. State
// that only root may read does not count.
func (s *deviceStatus) refuse(err error) {
	switch {
	case errors.Is(err, fs.ErrPermission):
		s.Unreadable = cmp.Or(s.Unreadable, err.Error())
	case err != nil:
		s.Refused = cmp.Or(s.Refused, err.Error())
	}
}

// signatureRule describes which plans the device accepts.
func signatureRule(dev rootfs.FS) string {
	keys, err := planfile.Keys(dev)
	switch {
	case err != nil:
		return "no plan accepted: " + err.Error()
	case len(keys) == 0:
		return "unsigned accepted: no key installed"
	case len(keys) == 1:
		return "signature required: 1 key installed"
	}
	return fmt.Sprintf("signature required: %d keys installed", len(keys))
}

func (s deviceStatus) text(p cli.Printer) {
	row := func(key, value string) { p.Printf("%-11s %s\n", key, cmp.Or(value, "–")) }
	row("machine", s.Model)
	row("plan", s.Plan)
	if s.Plan != "" {
		row("for", fmt.Sprintf("%s on %s, serial %d", s.Target, s.Board, s.Serial))
	}
	if s.Refused != "" {
		row("refused", s.Refused)
	}
	if s.Unreadable != "" {
		row("", "not known to this user, run it as root: "+s.Unreadable)
	}
	rule := s.Signature
	if s.Signer != "" {
		rule += "; the plan is signed by " + s.Signer
	}
	row("signatures", rule)
	switch {
	case s.JournalError != "":
		row("since boot", s.JournalError)
	case s.Applied == nil && s.Lost > 0:
		row("since boot", fmt.Sprintf("the journal has lost all %d records; rollback would restore nothing", s.Lost))
	case s.Applied == nil:
		row("since boot", "nothing applied")
	case s.Lost > 0:
		row("since boot", fmt.Sprintf("applied %s serial %d; rollback would restore %d nodes; the journal has lost records: %d", s.Applied.Target, s.Applied.Serial, s.Journalled, s.Lost))
	default:
		row("since boot", fmt.Sprintf("applied %s serial %d; rollback would restore %d nodes", s.Applied.Target, s.Applied.Serial, s.Journalled))
	}
	if s.Trial != nil {
		state := "running until confirmed or reverted"
		if s.Trial.Reverted {
			state = "not confirmed: not used at boot"
		}
		row("trial", fmt.Sprintf("%s serial %d, %s", s.Trial.Target, s.Trial.Serial, state))
	}
	if b := s.Boot; b != nil && !b.Proven && len(b.Boots) > 0 {
		row("boots", fmt.Sprintf("serial %d was applied at %d of %d boots, and has not been in force for %s", b.Serial, len(b.Boots), planfile.MaxBoots, planfile.ProveAfter))
	}
	if len(s.Pipelines) > 0 {
		row("pipelines", pipelines.Summary(s.Pipelines))
		firstRows(row, "", len(s.Pipelines), func(n int) string { return s.Pipelines[n].String() })
	}
	s.addWatch(row)
	row("changed by", cmp.Or(s.Holder, "no process"))
}

// recent is how many events and contests the text shows; JSON has them all.
const recent = 5

// addWatch adds the state of the enforcer.
func (s deviceStatus) addWatch(row func(key, value string)) {
	if s.WatchError != "" {
		row("watched", s.WatchError)
	}
	w := s.Watch
	if w == nil {
		return
	}
	text := fmt.Sprintf("%s; %d drifts, %d repairs", w.Watcher(time.Now()), w.Drifts, w.Repairs)
	if w.PID != 0 {
		text += fmt.Sprintf("; all nodes checked every %d s", w.Sweep)
	}
	row("watched", text)
	if w.PID != 0 {
		s.addCurrent(row)
	} else if n := len(w.Contested); n > 0 {
		row("", fmt.Sprintf("when it ended, other programs kept changing %d settings", n))
	}
	for _, e := range w.History[max(len(w.History)-recent, 0):] {
		text := changeText(e)
		switch e.Type {
		case watch.Returned, watch.Overdue:
			text = e.Message
		case watch.Switched:
			text = fmt.Sprintf("power mode %s, was %s: %s", e.Wanted, e.Found, e.Message)
		}
		row(e.Type, e.Time.Format("15:04:05")+" "+text)
	}
}

// addCurrent adds what holds only while the enforcer runs.
func (s deviceStatus) addCurrent(row func(key, value string)) {
	w := s.Watch
	for _, src := range w.Events {
		if !src.Delivered {
			row("", fmt.Sprintf("no events from %s: %s", src.Name, src.Why))
		}
	}
	firstRows(row, "contested", len(w.Contested), func(n int) string {
		c := w.Contested[n]
		return fmt.Sprintf("%s is %s, wanted %s, by %s since %s", outcome.Name(c.Path), c.Found, c.Wanted, processName(c.By), c.Since.Format(time.RFC3339))
	})
	firstRows(row, "waits", len(w.Waiting), func(n int) string { return w.Waiting[n].Text(time.Now()) })
	for _, l := range w.Leases {
		row("lease", fmt.Sprintf("%d, %s, user %d, until %s", l.ID, l.Holder, l.UID, l.Expires.Format(time.RFC3339)))
	}
}

// firstRows adds the first of count rows, and how many more there are.
func firstRows(row func(key, value string), key string, count int, text func(n int) string) {
	for n := range min(count, recent) {
		row(key, text(n))
	}
	if count > recent {
		row(key, fmt.Sprintf("and %d more", count-recent))
	}
}
