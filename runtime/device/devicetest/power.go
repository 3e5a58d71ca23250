package devicetest

import (
	"fmt"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/plan"
)

// power writes a configuration of the facts that are known about the board's
// modes, on the nodes of this tree, and puts the nodes where the default mode has
// them. NVIDIA's own file may not be handed on.
func (t *tree) power(m model, id string) {
	facts, ok := board.Lookup(id)
	if !ok {
		t.err = fmt.Errorf("no facts about %s", id)
		return
	}
	table := facts.Tables[m.table]
	emc := facts.EMCNodes[m.line]
	var b strings.Builder
	b.WriteString("# synthetic: what is known of the board's modes\n")
	for _, p := range table.Params {
		fmt.Fprintf(&b, "< PARAM TYPE=%s NAME=%s >\n", p.Type, p.Name)
		args := make([]string, 0, len(p.Paths))
		for arg := range p.Paths {
			args = append(args, arg)
		}
		sort.Strings(args)
		for _, arg := range args {
			base, next := strings.CutSuffix(arg, "_KNEXT")
			_, twin := p.Paths[arg+"_KNEXT"]
			node := m.node(p, base, p.Paths[arg], emc.Cap)
			name := p.Paths[arg]
			if p.Name == "EMC" && m.line != "R35" && !next && !twin {
				name = node // the facts are of the kernel before
			}
			fmt.Fprintf(&b, "%s %s\n", arg, name)
			switch {
			case strings.HasSuffix(name, "/scaling_available_frequencies"):
				t.steps(name, facts.CPUkHz)
			case next || !twin: // a kernel has one of the two
				t.clock(name, node)
			}
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
	t.file(power.StatusFile, fmt.Sprintf("pmode:%04d\n", mode))
	t.settle(mode)
}

// node is where a parameter lies in this tree.
func (m model) node(p board.Param, arg, name, emc string) string {
	switch {
	case p.Name == "EMC":
		return emc
	case p.Name == "GPU":
		return m.gpuDir + "/devfreq/" + path.Base(m.gpuDir) + "/" + path.Base(name)
	case strings.HasSuffix(arg, "_PG_MASK"), strings.HasPrefix(p.Name, "GPU_POWER_CONTROL"):
		_, rest, _ := strings.Cut(name, "gpu.0")
		return m.gpuDir + rest
	}
	return name
}

// steps writes a clock's table, where it is known.
func (t *tree) steps(name string, khz []int64) {
	words := make([]string, len(khz))
	for i, n := range khz {
		words[i] = strconv.FormatInt(n, 10)
	}
	if len(words) > 0 {
		t.file(name, strings.Join(words, " ")+"\n")
	}
}

// clock makes the node of a parameter, and a link where its path is another one.
func (t *tree) clock(name, node string) {
	if t.err != nil {
		return
	}
	if _, err := os.Stat(filepath.Join(t.dir, node)); err != nil {
		t.file(node, "0\n")
	}
	if _, err := os.Stat(filepath.Join(t.dir, name)); err == nil || name == node || t.err != nil {
		return
	}
	// The folder is the link, as in a kernel: gpu.0, devfreq_dev.
	for dir, to := path.Dir(name), path.Dir(node); ; dir, to = path.Dir(dir), path.Dir(to) {
		if path.Base(dir) != path.Base(to) || path.Dir(dir) == "/" {
			if _, err := os.Lstat(filepath.Join(t.dir, dir)); err == nil {
				return
			}
			t.link(dir, up(path.Dir(dir))+strings.TrimPrefix(to, "/sys/"))
			return
		}
	}
}

// settle makes the nodes say what they say when the mode is in force.
func (t *tree) settle(id int) {
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

func (t *tree) flashPower(p *plan.Power) {
	const conf = power.ConfigFile
	mode := -1
	t.append(conf, func(old string) string {
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
		t.file(power.StatusFile, fmt.Sprintf("pmode:%04d\n", mode))
		t.settle(mode)
	}
}
