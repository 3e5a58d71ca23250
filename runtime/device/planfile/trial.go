package planfile

import (
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// TrialFile persists over a reboot, so that a plan that hung the machine is not applied at
// the next boot.
const TrialFile = "/var/lib/yoctune/trial.json"

// Errors of trials.
var (
	ErrUnconfirmed = errors.New("plan was tried and never confirmed")
	ErrTrying      = errors.New("a plan is being tried")
	ErrNoTrial     = errors.New("no plan is being tried")
)

// Trial is a plan that is reverted at a deadline unless it is confirmed.
type Trial struct {
	Boot     string `json:"boot"`
	Layer    string `json:"layer"`
	Target   string `json:"target"`
	Serial   int64  `json:"serial"`
	Digest   string `json:"digest"`
	Deadline int64  `json:"deadline_ns"` // CLOCK_BOOTTIME of that boot
	Reverted bool   `json:"reverted"`    // it ended without confirmation
}

// ReadTrial returns the last trial, nil if there was none since the last confirmed plan.
func ReadTrial(st rootfs.State) (*Trial, error) {
	t, err := rootfs.ReadJSON[Trial](st, TrialFile)
	if err == nil && t != nil && (t.Boot == "" || t.Digest == "") {
		err = fmt.Errorf("%s names no trial", TrialFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read trial: %w; remove the file to discard the record of the trial", err)
	}
	return t, nil
}

// Write records a trial. It returns once the record is on the disk.
func (t Trial) Write(st rootfs.State) error {
	if err := rootfs.WriteJSON(st, TrialFile, t); err != nil {
		return fmt.Errorf("record trial: %w", err)
	}
	return nil
}

// ForgetTrial removes the record after the plan was confirmed or another one applied.
func ForgetTrial(st rootfs.State) error {
	if err := st.RemoveState(TrialFile); err != nil {
		return fmt.Errorf("forget trial: %w", err)
	}
	return nil
}

// Running reports whether the trial's settings are still in force on this boot.
func (t *Trial) Running(boot string) bool { return t != nil && !t.Reverted && t.Boot == boot }

// Expired reports whether the deadline of a running trial has passed.
func (t *Trial) Expired(boottime time.Duration) bool { return int64(boottime) >= t.Deadline }

// CheckTrial refuses to apply a plan automatically, as at boot, if its last trial was not
// confirmed.
func CheckTrial(t *Trial, p *plan.Plan) error {
	if t == nil || t.Digest != p.Digest {
		return nil
	}
	return fmt.Errorf("%w: serial %d; if it is good, `yoctuned apply` it without --try, or try it again and `yoctuned confirm` it", ErrUnconfirmed, p.Serial)
}
