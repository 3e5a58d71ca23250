package devicetest

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
	"github.com/yoctune/yoctune/schema/plan"
)

// power writes an nvpmodel.conf from the board's facts, since NVIDIA's own file may not be
// redistributed. It creates the nodes of the file and sets those of the default mode.
func (t *tree) power(m model, id string) {
	facts, ok := board.Lookup(id)
	if !ok {
		t.err = fmt.Errorf("no facts about %s", id)
		return
	}
	table := facts.Tables[m.table]
	emc := facts.EMCNodes[m.line]
	var b strings.Builder
	b.WriteString("# synthetic: the known parts of the board's modes\n")
	for _, p := range table.Params {
		fmt.Fprintf(&b, "< PARAM TYPE=%s NAME=%s >\n", p.Type, p.Name)
		for _, arg := range slices.Sorted(maps.Keys(p.Paths)) {
			name := t.powerNode(m, p, arg, emc.Cap, facts.CPUkHz)
			fmt.Fprintf(&b, "%s %s\n", arg, name)
		}
	}
	mode := 0
	for _, md := range table.Modes {
		fmt.Fprintf(&b, "\n< POWER_MODEL ID=%d NAME=%s >\n", md.ID, md.Name)
		for _, s := range md.Settings {
			if s[0] == "EMC" && s[2] == "0" {
				s[2] = emc.NoCap
			}
			fmt.Fprintf(&b, "%s %s %s\n", s[0], s[1], s[2])
		}
		if md.Default {
			mode = md.ID
		}
	}
	fmt.Fprintf(&b, "\n< PM_CONFIG DEFAULT=%d >\n", mode)
	t.file(power.ConfigFile, b.String())
	t.enterMode(mode)
}

// powerNode creates the node of a parameter's argument and returns the path that
// nvpmodel.conf declares for it.
func (t *tree) powerNode(m model, p board.Param, arg, emc string, khz []int64) string {
	base, next := strings.CutSuffix(arg, "_KNEXT")
	_, twin := p.Paths[arg+"_KNEXT"]
	name := p.Paths[arg]
	node := m.nodePath(p, base, name, emc)
	if p.Name == "EMC" && m.line != "R35" && !next && !twin {
		name = node // the facts are those of an older kernel
	}
	switch {
	case strings.HasSuffix(name, "/scaling_available_frequencies"):
		if len(khz) > 0 {
			t.file(name, strings.Trim(fmt.Sprint(khz), "[]")+"\n")
		}
	case next || !twin: // each kernel has one of the two
		t.clock(name, node)
	}
	return name
}

// nodePath returns the path of a parameter's node in this tree.
func (m model) nodePath(p board.Param, arg, name, emc string) string {
	switch {
	case p.Name == "EMC":
		return emc
	case p.Name == "GPU":
		return m.GPUDir + "/devfreq/" + m.GPUName() + "/" + path.Base(name)
	case strings.HasSuffix(arg, "_PG_MASK"), strings.HasPrefix(p.Name, "GPU_POWER_CONTROL"):
		_, rest, _ := strings.Cut(name, "gpu.0")
		return m.GPUDir + rest
	}
	return name
}

// clock creates the node of a parameter, and a link if the parameter has another path.
func (t *tree) clock(name, node string) {
	if _, err := os.Stat(filepath.Join(t.dir, node)); err != nil {
		t.file(node, "0\n")
	}
	if _, err := os.Stat(filepath.Join(t.dir, name)); err == nil || name == node || t.err != nil {
		return
	}
	// In a kernel the directory is the link: gpu.0, devfreq_dev.
	for dir, to := path.Dir(name), path.Dir(node); ; dir, to = path.Dir(dir), path.Dir(to) {
		if path.Base(dir) != path.Base(to) || path.Dir(dir) == "/" {
			if _, err := os.Lstat(filepath.Join(t.dir, dir)); err != nil {
				t.link(dir, to)
			}
			return
		}
	}
}

// enterMode writes nvpmodel's status and the nodes of a mode.
func (t *tree) enterMode(id int) {
	t.file(power.StatusFile, fmt.Sprintf("pmode:%04d\n", id))
	if t.err != nil {
		return
	}
	dev, err := rootfs.Open(t.dir)
	if err != nil {
		t.err = err
		return
	}
	config, err := power.Read(dev)
	if err != nil {
		t.err = err
		return
	}
	i := slices.IndexFunc(config.Modes, func(m nvpmodel.Mode) bool { return m.ID == id })
	if i < 0 {
		return
	}
	for _, step := range power.Steps(dev, config, &config.Modes[i]) {
		if real, err := dev.Resolve(step.Path); err == nil && step.Stage != power.Wake {
			t.file(real, step.Want+"\n")
		}
	}
}

// installPower adds the plan's power modes to nvpmodel.conf and enters the default one.
func (t *tree) installPower(p *plan.Power) {
	mode := -1
	t.edit(power.ConfigFile, func(old string) string {
		head, _, _ := strings.Cut(old, "< PM_CONFIG")
		var b strings.Builder
		b.WriteString(head)
		for _, m := range p.Modes {
			fmt.Fprintf(&b, "< POWER_MODEL ID=%d NAME=%s >\n", m.ID, m.Name)
			for _, param := range m.Params {
				fmt.Fprintf(&b, "%s %s %s\n", param.Param, param.Arg, param.Value)
			}
			b.WriteByte('\n')
		}
		text := b.String()
		for line := range strings.Lines(text) {
			var id int
			var name string
			if _, err := fmt.Sscanf(line, "< POWER_MODEL ID=%d NAME=%s >", &id, &name); err == nil && name == p.Default {
				mode = id
			}
		}
		return text + fmt.Sprintf("< PM_CONFIG DEFAULT=%d >\n", max(mode, 0))
	})
	if mode >= 0 {
		t.enterMode(mode)
	}
}
