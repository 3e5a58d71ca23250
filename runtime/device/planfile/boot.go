package planfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// BootFile remembers at which boots the installed plan was put into force before
// it had proven itself.
const BootFile = "/var/lib/yoctune/boot.json"

// Of proving a plan.
const (
	MaxBoots   = 3           // at which a plan is tried that has never lasted
	ProveAfter = time.Minute // in force: a plan that hangs the machine does it sooner
)

// ErrUnproven says that a plan was put into force at several boots, none of which
// lasted: it may be what ends them.
var ErrUnproven = errors.New("plan has never lasted a minute")

// Boot is what is known of the plan that was last put into force by itself.
type Boot struct {
	Digest string   `json:"digest"`
	Serial int64    `json:"serial"`
	Proven bool     `json:"proven"`
	Boots  []string `json:"boots,omitempty"` // ids of those at which it was begun and not proven
}

// ReadBoot returns the record, nil when there is none.
func ReadBoot(st rootfs.State) (*Boot, error) {
	b, err := decoded[Boot](st, BootFile)
	if err != nil {
		return nil, fmt.Errorf("read boots: %w", err)
	}
	return b, nil
}

// decoded is what a state file holds, nil without one.
func decoded[T any](st rootfs.State, file string) (*T, error) {
	data, err := st.ReadState(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return v, nil
}

// BeginBoot is called before a plan's first write and returns when the boot is
// counted on the disk, so that a machine which the plan hangs counts too. The
// error is ErrUnproven when the plan has had its boots. A record that cannot be
// read says nothing against the plan, and is replaced.
func BeginBoot(st rootfs.State, boot string, p *plan.Plan) error {
	b, err := ReadBoot(st)
	if err != nil || b == nil || b.Digest != p.Digest {
		b = &Boot{Digest: p.Digest, Serial: p.Serial}
	}
	switch {
	case b.Proven, slices.Contains(b.Boots, boot):
		return nil
	case len(b.Boots) >= MaxBoots:
		return fmt.Errorf("%w: serial %d was put into force at %d boots, and each ended before that; if it is good, `yoctuned apply` it, and if not, install another", ErrUnproven, p.Serial, len(b.Boots))
	}
	b.Boots = append(b.Boots, boot)
	return b.write(st)
}

// ProveBoot records that a plan lasted, or that somebody applied it by hand and
// was there to see. Its serial is then the oldest that is obeyed.
func ProveBoot(st rootfs.State, p *plan.Plan) error {
	if b, err := ReadBoot(st); err != nil || b == nil || b.Digest != p.Digest || !b.Proven {
		if err := (&Boot{Digest: p.Digest, Serial: p.Serial, Proven: true}).write(st); err != nil {
			return err
		}
	}
	return Confirm(st, p)
}

// EndBoot takes a boot back that was ended in order, before the plan could prove
// itself: it says nothing against it.
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
	data, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("record boot: %w", err)
	}
	if err := st.WriteState(BootFile, append(data, '\n')); err != nil {
		return fmt.Errorf("record boot: %w", err)
	}
	return nil
}
