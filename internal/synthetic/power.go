package synthetic

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
	"github.com/yoctune/yoctune/schema/plan"
)

// power writes an nvpmodel.conf from the board's facts, since NVIDIA's own file may not be
// redistributed. It creates the nodes of the file and sets those of the default mode.
func (t *Tree) power(m model) error {
	table, ok := m.facts.Tables[m.table]
	if !ok {
		return nil
	}
	emc := m.facts.EMCNodes[m.line]
	var b strings.Builder
	b.WriteString("# synthetic: the known parts of the board's modes\n")
	for _, p := range table.Params {
		fmt.Fprintf(&b, "< PARAM TYPE=%s NAME=%s >\n", p.Type, p.Name)
		for _, arg := range slices.Sorted(maps.Keys(p.Paths)) {
			name := t.powerNode(m, p, arg, emc.Cap)
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
	t.set(nvpmodel.ConfigFile, b.String())
	return t.enterMode(mode)
}

// powerNode creates the node of a parameter's argument and returns the path that
// nvpmodel.conf declares for it.
func (t *Tree) powerNode(m model, p board.Param, arg, emc string) string {
	base, next := strings.CutSuffix(arg, "_KNEXT")
	_, twin := p.Paths[arg+"_KNEXT"]
	name := p.Paths[arg]
	if dir, attr, ok := strings.Cut(name, " "); ok { // of a hwmon device, whose number varies
		t.set(dir+"/hwmon4/"+attr, "0\n")
		return name
	}
	node := m.nodePath(p, base, name, emc)
	if p.Name == "EMC" && m.line == "R36" && !next && !twin {
		name = node // the facts are those of an older kernel
	}
	switch {
	case strings.HasSuffix(name, "/scaling_available_frequencies"):
		t.set(name, m.CPUSteps+"\n")
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
func (t *Tree) clock(name, node string) {
	if _, ok := t.Resolve(node); !ok {
		t.set(node, "0\n")
	}
	if _, ok := t.Resolve(name); ok || name == node {
		return
	}
	// In a kernel the directory is the link: gpu.0, devfreq_dev.
	for dir, to := path.Dir(name), path.Dir(node); ; dir, to = path.Dir(dir), path.Dir(to) {
		if path.Base(dir) != path.Base(to) || path.Dir(dir) == "/" {
			if _, exists := t.nodes[dir]; !exists {
				t.link(dir, to)
			}
			return
		}
	}
}

// enterMode writes nvpmodel's status and the nodes of a mode.
func (t *Tree) enterMode(id int) error {
	t.set(nvpmodel.StatusFile, fmt.Sprintf("pmode:%04d\n", id))
	config, problems, err := nvpmodel.Parse([]byte(t.Text(nvpmodel.ConfigFile)))
	for _, p := range problems {
		if p.Fatal && err == nil {
			err = fmt.Errorf("line %d: %s", p.Line, p.Message)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", nvpmodel.ConfigFile, err)
	}
	i := slices.IndexFunc(config.Modes, func(m nvpmodel.Mode) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	for _, step := range nvpmodel.Steps(t, config, &config.Modes[i]) {
		if real, ok := t.Resolve(step.Path); ok && step.Stage != nvpmodel.Wake {
			t.set(real, step.Want+"\n")
		}
	}
	return nil
}

// installPower adds the plan's power modes to nvpmodel.conf and enters the default one.
func (t *Tree) installPower(p *plan.Power) error {
	mode := -1
	head, _, _ := strings.Cut(t.Text(nvpmodel.ConfigFile), "< PM_CONFIG")
	var b strings.Builder
	b.WriteString(head)
	for _, m := range p.Modes {
		fmt.Fprintf(&b, "< POWER_MODEL ID=%d NAME=%s >\n", m.ID, m.Name)
		for _, param := range m.Params {
			fmt.Fprintf(&b, "%s %s %s\n", param.Param, param.Arg, param.Value)
		}
		b.WriteByte('\n')
	}
	for line := range strings.Lines(b.String()) {
		var id int
		var name string
		if _, err := fmt.Sscanf(line, "< POWER_MODEL ID=%d NAME=%s >", &id, &name); err == nil && name == p.Default {
			mode = id
		}
	}
	fmt.Fprintf(&b, "< PM_CONFIG DEFAULT=%d >\n", max(mode, 0))
	t.set(nvpmodel.ConfigFile, b.String())
	if mode < 0 {
		return nil
	}
	return t.enterMode(mode)
}
