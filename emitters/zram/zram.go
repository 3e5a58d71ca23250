// Package zram writes the unit and the script that make a compressed swap device
// at boot. zram-generator is not in oe-core, so the tools of util-linux do it;
// the size and the algorithm reach the script as arguments.
package zram

import (
	_ "embed"
	"fmt"
	"strconv"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed yoctune-zram.sh
	script string
	//go:embed yoctune-zram.service.tmpl
	unit string
)

// Unit is the name of the service.
const Unit = "yoctune-zram.service"

// Emit returns the script and the unit for each target that wants the device.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	t := emitters.NewTemplate("zram", unit)
	var files []emitters.File
	for _, target := range l.Targets {
		if target.ZRAM == nil {
			continue
		}
		ref := emitters.Ref{Target: target.Name, ID: "memory.zram"}
		if target.ZRAM.Bytes <= 0 {
			return nil, &emitters.Error{Emitter: "zram", Ref: ref, Err: fmt.Errorf("a size of %d bytes makes no device", target.ZRAM.Bytes)}
		}
		start := []string{"/usr/lib/yoctune/yoctune-zram", "start", strconv.FormatInt(target.ZRAM.Bytes, 10)}
		if a := target.ZRAM.Algorithm; a != "" {
			if _, err := quote.Module(a); err != nil {
				return nil, &emitters.Error{Emitter: "zram", Ref: ref, Err: err}
			}
			start = append(start, a)
		}
		f, err := t.Fill(emitters.NewDeviceFile(l, target, Unit, "${systemd_system_unitdir}/"+Unit), struct {
			Target string
			Start  []string
		}{target.Name, start})
		if err != nil {
			return nil, err
		}
		f.Install.Unit = Unit
		f.Means = []emitters.Meaning{{Kind: emitters.Unit, Name: Unit, Value: "unit", ID: "memory.zram"}}
		f.Needs = []emitters.Need{emitters.KernelModule("zram", target.Machine, ref.ID)}
		for _, p := range []string{"kmod", "util-linux-mkswap", "util-linux-swapoff", "util-linux-swapon", "util-linux-zramctl"} {
			f.Needs = append(f.Needs, emitters.Need{Package: p, Machine: target.Machine, ID: ref.ID})
		}
		s := emitters.NewDeviceFile(l, target, "yoctune-zram.sh", "${nonarch_libdir}/yoctune/yoctune-zram")
		s.Mode, s.Data, s.Origins = 0o755, []byte(script), []emitters.Ref{ref}
		files = append(files, f, s)
	}
	return files, nil
}
