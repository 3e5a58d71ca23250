package planfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// TrialFile survives a boot on purpose: a plan under which the machine hung and
// was reset must not be the one it boots with.
const TrialFile = "/var/lib/yoctune/trial.json"

// Errors of trials; test with errors.Is.
var (
	ErrUnconfirmed = errors.New("plan was tried and never confirmed")
	ErrTrying      = errors.New("a plan is being tried")
	ErrNoTrial     = errors.New("no plan is being tried")
)

// Trial is a plan that was applied for a time, and goes unless it is confirmed.
type Trial struct {
	Boot     string `json:"boot"`
	Layer    string `json:"layer"`
	Target   string `json:"target"`
	Serial   int64  `json:"serial"`
	Digest   string `json:"digest"`
	Deadline int64  `json:"deadline_ns"` // CLOCK_BOOTTIME of that boot
	Reverted bool   `json:"reverted"`    // it is over, and was not confirmed
}

// ReadTrial returns the last trial, nil when none was begun since the last
// confirmed plan.
func ReadTrial(st rootfs.State) (*Trial, error) {
	t, err := decoded[Trial](st, TrialFile)
	if err != nil {
		return nil, fmt.Errorf("read trial: %w; remove the file to forget which plan was tried", err)
	}
	return t, nil
}

// Write records a trial, and returns when it is on the disk.
func (t Trial) Write(st rootfs.State) error {
	b, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("record trial: %w", err)
	}
	if err := st.WriteState(TrialFile, append(b, '\n')); err != nil {
		return fmt.Errorf("record trial: %w", err)
	}
	return nil
}

// ForgetTrial removes the record: the plan was confirmed, or another was applied
// for good.
func ForgetTrial(st rootfs.State) error {
	if err := st.RemoveState(TrialFile); err != nil {
		return fmt.Errorf("forget trial: %w", err)
	}
	return nil
}

// Running reports whether the trial's settings are still in force on this boot.
func (t *Trial) Running(boot string) bool { return t != nil && !t.Reverted && t.Boot == boot }

// Over reports whether a running trial's time is up.
func (t *Trial) Over(boottime time.Duration) bool { return int64(boottime) >= t.Deadline }

// CheckTrial refuses to put a plan into force by itself, as at boot, when it was
// tried and never confirmed.
func CheckTrial(t *Trial, p *plan.Plan) error {
	if t == nil || t.Digest != p.Digest {
		return nil
	}
	return fmt.Errorf("%w: serial %d; if it is good, `yoctuned apply` it without --try, or try it again and `yoctuned confirm` it", ErrUnconfirmed, p.Serial)
}
