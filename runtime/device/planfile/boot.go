package planfile

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// BootFile records the boots at which the installed plan was applied before it was proven.
const BootFile = "/var/lib/yoctune/boot.json"

// Limits of an unproven plan.
const (
	MaxBoots   = 3           // at which an unproven plan is applied
	ProveAfter = time.Minute // in force; a plan that hangs the machine does so sooner
)

// ErrUnproven reports that a plan was applied at several boots that all ended early, perhaps
// because of the plan.
var ErrUnproven = errors.New("plan has never been in force for a minute")

// Boot is the record of the plan that was last applied automatically.
type Boot struct {
	Digest string   `json:"digest"`
	Serial int64    `json:"serial"`
	Proven bool     `json:"proven"`
	Boots  []string `json:"boots,omitempty"` // ids of boots at which it was applied and not proven
}

// ReadBoot returns the record, nil if there is none.
func ReadBoot(st rootfs.State) (*Boot, error) {
	b, err := rootfs.ReadJSON[Boot](st, BootFile)
	if err != nil {
		return nil, fmt.Errorf("read boots: %w", err)
	}
	return b, nil
}

// BeginBoot counts a boot before the first write of a plan. It returns once the count is on
// the disk, so that a boot in which the plan hangs the machine counts too. The error is
// ErrUnproven if the plan has used up its boots. An unreadable record is replaced, and
// returned as an error.
func BeginBoot(st rootfs.State, boot string, p *plan.Plan) error {
	b, unreadable := ReadBoot(st)
	if unreadable != nil {
		unreadable = fmt.Errorf("%w; the boots are counted anew", unreadable)
	}
	if unreadable != nil || b == nil || b.Digest != p.Digest {
		b = &Boot{Digest: p.Digest, Serial: p.Serial}
	}
	switch {
	case b.Proven, slices.Contains(b.Boots, boot):
		return nil
	case len(b.Boots) >= MaxBoots:
		return fmt.Errorf("%w: serial %d was applied at %d boots, and each ended before that; `yoctuned apply` it if it is good, else install another plan", ErrUnproven, p.Serial, len(b.Boots))
	}
	b.Boots = append(b.Boots, boot)
	return errors.Join(unreadable, b.write(st))
}

// ProveBoot records that a plan is proven, by time in force or because a user has applied it.
// Plans with lower serials are refused from then on.
func ProveBoot(st rootfs.State, p *plan.Plan) error {
	if !isProven(st, p) {
		if err := (&Boot{Digest: p.Digest, Serial: p.Serial, Proven: true}).write(st); err != nil {
			return err
		}
	}
	return Confirm(st, p)
}

func isProven(st rootfs.State, p *plan.Plan) bool {
	b, err := ReadBoot(st)
	return err == nil && b != nil && b.Digest == p.Digest && b.Proven
}

// IsProven reports whether [ProveBoot] has nothing to record.
func IsProven(st rootfs.State, p *plan.Plan) bool {
	serials, err := Confirmed(st)
	last, confirmed := serials[serialKey(p)]
	return err == nil && confirmed && last >= p.Serial && isProven(st, p)
}

// EndBoot removes a boot that ended orderly before the plan was proven.
func EndBoot(st rootfs.State, boot string, p *plan.Plan) error {
	b, err := ReadBoot(st)
	if err != nil || b == nil || b.Proven || b.Digest != p.Digest {
		return err
	}
	i := slices.Index(b.Boots, boot)
	if i < 0 {
		return nil
	}
	b.Boots = slices.Delete(b.Boots, i, i+1)
	return b.write(st)
}

func (b *Boot) write(st rootfs.State) error {
	if err := rootfs.WriteJSON(st, BootFile, b); err != nil {
		return fmt.Errorf("record boot: %w", err)
	}
	return nil
}
