package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// The research file holds what was found, as found: one entry per module, each
// fact with its source and a verified flag, many values in words.
type research struct {
	ParamTables map[string][]struct {
		Name string          `json:"name"`
		Type string          `json:"type"`
		Args json.RawMessage `json:"args"`
	} `json:"param_tables"`
	Boards []map[string]json.RawMessage `json:"boards"`
}

type fact struct {
	Value    json.RawMessage `json:"value"`
	Source   string          `json:"source"`
	Verified bool            `json:"verified"`
	Note     string          `json:"note"`
}

// overlayFile gives the values in words a type: it says what they mean, never
// where they come from. Source and verified flag of every fact are the research
// file's.
//
//go:embed overlay.json
var overlayFile []byte

type overlay struct {
	Families map[string]json.RawMessage `json:"families"`
	Boards   map[string]json.RawMessage `json:"boards"`
}

type boardOverlay struct {
	Name     string   `json:"name"`
	Families []string `json:"families"`
	Inherit  string   `json:"inherit"` // board whose facts hold, unverified
	DTB      []string `json:"dtb"`     // parts of device tree file names that name the module
	Default  string   `json:"default"` // default machine, where the order below is not right
	RAM      int64    `json:"ram"`
	Masks    []int64  `json:"masks"`
	PVA      *int     `json:"pva"`
	CPUTable *struct {
		From, Step, To int64
		Then           []int64
	} `json:"cpu_khz"`
	GPUHz      []int64            `json:"gpu_hz"`
	GPUTables  map[string][]int64 `json:"gpu_tables"`
	EMCHz      []int64            `json:"emc_hz"`
	Tables     []tableOverlay     `json:"tables"`
	Unverified map[string]string  `json:"unverified"` // field to why it is not, whatever the research says

	CPU           board.Limits              `json:"cpu"`
	GPU           board.Limits              `json:"gpu"`
	EMC           board.Limits              `json:"emc"`
	Policies      []board.Policy            `json:"policies"`
	Compatible    []string                  `json:"compatible"`
	KitCompatible []string                  `json:"kit_compatible"`
	MaskRule      *board.MaskRule           `json:"mask_rule"`
	Rails         []board.Rail              `json:"rails"`
	Fan           *board.Fan                `json:"fan"`
	GPUDevfreq    map[string][]string       `json:"gpu_devfreq"`
	EMCNodes      map[string]board.EMCNodes `json:"emc_nodes"`
	ThermalZones  map[string][]string       `json:"thermal_zones"`
	Supply        []board.Note              `json:"supply"`
	Quirks        []board.Note              `json:"quirks"`
}

type tableOverlay struct {
	Key           string   `json:"key"`
	ResearchBoard string   `json:"research_board"` // where the modes are, if not in this board
	Research      string   `json:"research"`       // key of its "stock"
	L4T           string   `json:"l4t"`
	Holds         []string `json:"holds"`  // L4T versions the file is known to hold for
	Lines         []string `json:"lines"`  // L4T lines it may be used for; none: all
	Files         []string `json:"files"`  // NVPMODEL values that install it
	Own           string   `json:"own"`    // it is the module's own file, installed by no machine
	Params        string   `json:"params"` // PARAM table that was read
	ByUse         string   `json:"by_use"` // sibling whose types and paths are taken
	// Full: the PARAM sections were read, and are the sibling's for every parameter
	// in use; CPU_ONLINE has the cores in use, or all with AllCores.
	Full       bool              `json:"full"`
	AllCores   bool              `json:"all_cores"`
	Paths      map[string]string `json:"paths"` // argument to file, where no sibling has it
	ExtraTypes string            `json:"extra_types"`
	Types      map[string]string `json:"types"`
	NoPaths    []string          `json:"no_paths"`
	Drop       []string          `json:"drop"` // modes that are no stock modes
	Partial    [][2]any          `json:"partial"`
	Foreign    bool              `json:"foreign"`
	Note       string            `json:"note"`
}

func writeBoards(file, dir string) error {
	if file == "" {
		return fmt.Errorf("boards: -research is missing")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var res research
	if err := json.Unmarshal(raw, &res); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var over overlay
	if err := json.Unmarshal(overlayFile, &over); err != nil {
		return fmt.Errorf("overlay.json: %w", err)
	}
	for _, entry := range res.Boards {
		g := generator{research: res, overlay: over, entry: entry}
		b, err := g.board()
		if err != nil {
			return fmt.Errorf("board %s: %w", g.id, err)
		}
		raw, err := json.Marshal(b)
		if err != nil {
			return err
		}
		text, err := layOut(raw)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, g.id+".json"), text); err != nil {
			return err
		}
	}
	return nil
}

type generator struct {
	research research
	overlay  overlay
	id       string
	entry    map[string]json.RawMessage
	over     boardOverlay
	out      board.Board
}

// text renames what the research file calls its collection to what it is.
func text(s string) string {
	return strings.NewReplacer(
		"corpus/scripts/jetson_clocks_35.3.1.sh", "jetson_clocks of L4T 35.3.1",
		"corpus/scripts/nvpower_35.3.1.sh", "nvpower.sh of L4T 35.3.1",
		"corpus/tegrastats/samples.jsonl", "tegrastats lines from public logs",
		"corpus/nvfancontrol/L4T-35.3.1_seeed-deb", "nvfancontrol files of L4T 35.3.1",
		"engineering knowledge / NVIDIA datasheet, no file in the corpus", "from NVIDIA's data sheets; no public file or log seen",
		"index id", "public code index id",
		"in this corpus", "among the public files", "in the corpus", "among the public files",
	).Replace(s)
}

func (g *generator) read(field string) (fact, bool) { return readFact(g.entry, field) }

func readFact(entry map[string]json.RawMessage, field string) (fact, bool) {
	raw, ok := entry[field]
	if !ok || string(raw) == "null" {
		return fact{}, false
	}
	var f fact
	if err := json.Unmarshal(raw, &f); err != nil {
		return fact{}, false
	}
	if f.Value != nil {
		return f, true
	}
	// Some facts are kept per L4T line; they are verified if all lines are.
	var byLine map[string]fact
	if err := json.Unmarshal(raw, &byLine); err != nil || len(byLine) == 0 {
		return fact{}, false
	}
	f.Verified = true
	var sources, notes []string
	for _, line := range slices.Sorted(mapsKeys(byLine)) {
		one := byLine[line]
		f.Verified = f.Verified && one.Verified
		if !slices.Contains(sources, one.Source) {
			sources = append(sources, one.Source)
		}
		if one.Note != "" && !slices.Contains(notes, one.Note) {
			notes = append(notes, one.Note)
		}
	}
	f.Source, f.Note = strings.Join(sources, "; "), strings.Join(notes, "; ")
	return f, true
}

func mapsKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (g *generator) find(id string) (map[string]json.RawMessage, error) {
	for _, e := range g.research.Boards {
		var name string
		if err := json.Unmarshal(e["id"], &name); err == nil && name == id {
			return e, nil
		}
	}
	return nil, fmt.Errorf("no board %q in the research file", id)
}

func (g *generator) board() (*board.Board, error) {
	if err := json.Unmarshal(g.entry["id"], &g.id); err != nil {
		return nil, fmt.Errorf("id: %w", err)
	}
	raw, ok := g.overlay.Boards[g.id]
	if !ok {
		return nil, fmt.Errorf("overlay.json has no entry")
	}
	if err := g.applyOverlay(raw); err != nil {
		return nil, fmt.Errorf("overlay.json: %w", err)
	}
	b := &g.out
	b.ID, b.Name = g.id, g.over.Name
	b.Evidence = map[string]board.Evidence{}
	for field, into := range map[string]any{"modules": &b.Modules, "soc": &b.SoC} {
		if err := json.Unmarshal(g.entry[field], into); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	for _, step := range []func() error{g.processor, g.clocks, g.memory, g.engines, g.typed, g.tables, g.releases} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// applyOverlay merges the board's families, then its parent, then itself: lists
// of notes add up, everything else is replaced.
func (g *generator) applyOverlay(raw json.RawMessage) error {
	if err := json.Unmarshal(raw, &g.over); err != nil {
		return err
	}
	own := g.over
	g.over = boardOverlay{}
	var supply, quirks []board.Note
	layers := []json.RawMessage{}
	for _, f := range own.Families {
		layers = append(layers, g.overlay.Families[f])
	}
	if own.Inherit != "" {
		layers = append(layers, g.overlay.Boards[own.Inherit])
	}
	for _, layer := range append(layers, raw) {
		g.over.Supply, g.over.Quirks = nil, nil
		if err := json.Unmarshal(layer, &g.over); err != nil {
			return err
		}
		supply, quirks = append(supply, g.over.Supply...), append(quirks, g.over.Quirks...)
	}
	g.over.Supply, g.over.Quirks = g.notes(supply), g.notes(quirks)
	return nil
}

// notes resolves "research:FIELD" sources to the source of that field.
func (g *generator) notes(all []board.Note) []board.Note {
	for i := range all {
		field, ok := strings.CutPrefix(all[i].Source, "research:")
		if !ok {
			all[i].Source = text(all[i].Source)
			continue
		}
		all[i].Source = "notes on the stock files"
		if f, ok := g.read(field); ok {
			all[i].Source = text(f.Source)
		}
	}
	return all
}

// evidence records where field comes from: the research fact named, the
// parent's, or nothing, in which case the field must stay empty.
func (g *generator) evidence(field, researchField string) (fact, bool) {
	f, ok := g.read(researchField)
	if !ok && g.over.Inherit != "" {
		if parent, err := g.find(g.over.Inherit); err == nil {
			if f, ok = readFact(parent, researchField); ok {
				f.Verified, f.Note = false, "as "+g.over.Inherit+", the sibling module"
			}
		}
	}
	if !ok {
		return fact{}, false
	}
	if why, no := g.over.Unverified[field]; no {
		f.Verified, f.Note = false, why
	}
	g.out.Evidence[field] = board.Evidence{Source: text(f.Source), Verified: f.Verified, Note: text(f.Note)}
	return f, true
}

func (g *generator) processor() error {
	f, ok := g.evidence("sm", "cc")
	if !ok {
		return fmt.Errorf("cc is missing")
	}
	arch := regexp.MustCompile(`sm_(\d+)`).FindStringSubmatch(string(f.Value))
	if arch == nil {
		return fmt.Errorf("cc: no sm_NN in %s", f.Value)
	}
	g.out.SM, _ = strconv.Atoi(arch[1])
	if f, ok = g.evidence("cores", "cores"); !ok {
		return fmt.Errorf("cores are missing")
	}
	var cores struct {
		Count int `json:"count"`
	}
	if err := json.Unmarshal(f.Value, &cores); err != nil || cores.Count == 0 {
		return fmt.Errorf("cores: no count in %s", f.Value)
	}
	g.out.Cores = cores.Count
	if len(g.over.Policies) > 0 {
		g.evidence("policies", "cores")
		g.out.Policies = g.over.Policies
	}
	return nil
}

func (g *generator) clocks() error {
	for _, c := range []struct {
		research, limits, table string
		known                   board.Limits
		into                    *board.Limits
		overlay                 []int64
		list                    *[]int64
	}{
		{"cpu_khz", "cpu", "cpu_khz", g.over.CPU, &g.out.CPU, nil, &g.out.CPUkHz},
		{"gpu_hz", "gpu", "gpu_hz", g.over.GPU, &g.out.GPU, g.over.GPUHz, &g.out.GPUHz},
		{"emc_hz", "emc", "emc_hz", g.over.EMC, &g.out.EMC, g.over.EMCHz, &g.out.EMCHz},
	} {
		if c.known != (board.Limits{}) {
			if _, ok := g.evidence(c.limits, c.research); !ok {
				return fmt.Errorf("%s: overlay.json has limits, the research file has no %s", c.limits, c.research)
			}
			*c.into = c.known
		}
		list := c.overlay
		if c.table == "cpu_khz" && g.over.CPUTable != nil {
			t := g.over.CPUTable
			for v := t.From; v <= t.To; v += t.Step {
				list = append(list, v)
			}
			list = append(list, t.Then...)
		}
		if list == nil {
			if f, ok := g.read(c.research); ok && strings.HasPrefix(string(f.Value), "[") {
				if err := json.Unmarshal(f.Value, &list); err != nil {
					return fmt.Errorf("%s: %w", c.research, err)
				}
			}
		}
		if len(list) > 0 {
			g.evidence(c.table, c.research)
			*c.list = list
		}
	}
	if len(g.over.GPUTables) > 0 {
		g.evidence("gpu_tables", "gpu_hz")
		g.out.GPUTables = g.over.GPUTables
	}
	return nil
}

func (g *generator) memory() error {
	f, ok := g.evidence("ram_bytes", "ram_gb")
	if !ok {
		return fmt.Errorf("ram_gb is missing")
	}
	var gib []int64
	if err := json.Unmarshal(f.Value, &gib); err != nil || len(gib) == 0 {
		return fmt.Errorf("ram_gb: want a list of sizes, got %s", f.Value)
	}
	for _, n := range gib {
		g.out.RAMVariants = append(g.out.RAMVariants, n<<30)
	}
	g.out.RAMBytes = g.out.RAMVariants[0]
	if g.over.RAM != 0 {
		g.out.RAMBytes = g.over.RAM
	}
	if len(gib) == 1 {
		g.out.RAMVariants = nil
	} else {
		g.evidence("ram_variants", "ram_gb")
	}
	return nil
}

func (g *generator) engines() error {
	if f, ok := g.evidence("dla", "dla"); ok {
		var counted struct {
			Count *int `json:"count"`
		}
		if json.Unmarshal(f.Value, &counted) == nil && counted.Count != nil {
			g.out.DLA = *counted.Count
		} else if err := json.Unmarshal(f.Value, &g.out.DLA); err != nil {
			return fmt.Errorf("dla: %w", err)
		}
	}
	if f, ok := g.evidence("tensor_cores", "tensor_cores"); ok {
		if err := json.Unmarshal(f.Value, &g.out.TensorCores); err != nil {
			return fmt.Errorf("tensor_cores: %w", err)
		}
	}
	if g.over.PVA != nil {
		g.evidence("pva", "dla")
		g.out.PVA = g.over.PVA
	}
	return nil
}

// typed are the facts that overlay.json has in full.
func (g *generator) typed() error {
	take := func(field, from string, set bool, assign func()) {
		if !set {
			return
		}
		if _, ok := g.evidence(field, from); ok {
			assign()
		}
	}
	o, b := g.over, &g.out
	take("mask_rule", "tpc_masks", o.MaskRule != nil, func() { b.MaskRule = o.MaskRule })
	take("rails", "rails", o.Rails != nil, func() { b.Rails = o.Rails })
	take("fan", "fan", o.Fan != nil, func() { b.Fan = o.Fan })
	take("gpu_devfreq", "gpu_devfreq", o.GPUDevfreq != nil, func() { b.GPUDevfreq = o.GPUDevfreq })
	take("emc_nodes", "emc_interface", o.EMCNodes != nil, func() { b.EMCNodes = o.EMCNodes })
	take("thermal_zones", "thermal_zones", o.ThermalZones != nil, func() { b.ThermalZones = o.ThermalZones })
	b.Supply, b.Quirks = o.Supply, o.Quirks
	if o.Compatible != nil {
		e := board.Evidence{Source: "device trees of L4T and the kernel", Verified: true}
		if why, no := o.Unverified["compatible"]; no {
			e.Verified, e.Note = false, why
		}
		b.Compatible, b.Evidence["compatible"] = o.Compatible, e
	}
	if o.KitCompatible != nil {
		b.KitCompatible = o.KitCompatible
		b.Evidence["kit_compatible"] = board.Evidence{Source: "NVIDIA Jetson.GPIO gpio_pin_data; kernel device tree bindings", Verified: true}
	}
	return nil
}

var pvaEngine = regexp.MustCompile(`^PVA(\d)_`)

func (g *generator) tables() error {
	b := &g.out
	b.GPUMasks = g.over.Masks
	engines := map[string]bool{}
	var files, notes []string
	for _, o := range g.over.Tables {
		t, file, err := g.table(o)
		if err != nil {
			return fmt.Errorf("table %s: %w", o.Key, err)
		}
		if b.Tables == nil {
			b.Tables = map[string]board.Table{}
		}
		b.Tables[o.Key] = t
		if file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
		if t.Partial {
			notes = append(notes, t.Note)
		}
		if t.Foreign {
			continue
		}
		for _, m := range t.Modes {
			for _, s := range m.Settings {
				if s[1] == "TPC_PG_MASK" {
					v, err := strconv.ParseInt(s[2], 10, 64)
					if err != nil {
						return fmt.Errorf("table %s: %w", o.Key, err)
					}
					if !slices.Contains(b.GPUMasks, v) {
						b.GPUMasks = append(b.GPUMasks, v)
					}
				}
				if m := pvaEngine.FindStringSubmatch(s[0]); m != nil {
					engines[m[1]] = true
				}
			}
		}
	}
	slices.Sort(b.GPUMasks)
	source := text(strings.Join(files, "; "))
	if len(files) > 0 {
		b.Evidence["tables"] = board.Evidence{Source: source, Verified: len(notes) == 0, Note: strings.Join(notes, "; ")}
		if len(b.GPUMasks) > 0 {
			b.Evidence["gpu_masks"] = board.Evidence{Source: source, Verified: true}
		}
		if b.PVA == nil && (len(engines) > 0 || b.SoC == "tegra234") {
			n := len(engines)
			b.PVA = &n
			b.Evidence["pva"] = board.Evidence{Source: source, Verified: true, Note: "counted from the PVA parameters of the stock files"}
		}
	} else {
		if f, ok := g.read("stock_partial"); ok && b.Tables != nil {
			b.Evidence["tables"] = board.Evidence{Source: text(f.Source), Note: text(f.Note)}
		}
		if len(b.GPUMasks) > 0 {
			g.evidence("gpu_masks", "tpc_masks")
		}
	}
	return nil
}

func (g *generator) table(o tableOverlay) (board.Table, string, error) {
	t := board.Table{L4T: o.L4T, Note: o.Note, Foreign: o.Foreign}
	if o.Partial != nil {
		t.Partial = true
		for i, m := range o.Partial {
			name, ok1 := m[0].(string)
			isDefault, ok2 := m[1].(bool)
			if !ok1 || !ok2 {
				return t, "", fmt.Errorf("partial: want [name, default], got %v", m)
			}
			t.Modes = append(t.Modes, board.Mode{ID: i, Name: name, Default: isDefault})
		}
		return t, "", nil
	}
	entry := g.entry
	if o.ResearchBoard != "" {
		var err error
		if entry, err = g.find(o.ResearchBoard); err != nil {
			return t, "", err
		}
	}
	var stock map[string]struct {
		File      string `json:"file"`
		DefaultID int    `json:"default_id"`
		Modes     []struct {
			ID       int             `json:"id"`
			Name     string          `json:"name"`
			Default  bool            `json:"default"`
			Settings json.RawMessage `json:"settings"`
		} `json:"modes"`
	}
	if err := json.Unmarshal(entry["stock"], &stock); err != nil {
		return t, "", fmt.Errorf("stock: %w", err)
	}
	found, ok := stock[o.Research]
	if !ok {
		return t, "", fmt.Errorf("no stock table %q in the research file", o.Research)
	}
	t.Source = text(found.File)
	for _, m := range found.Modes {
		if slices.Contains(o.Drop, m.Name) {
			continue
		}
		mode := board.Mode{ID: len(t.Modes), Name: m.Name, Default: m.Default}
		params, err := members(m.Settings)
		if err != nil {
			return t, "", fmt.Errorf("mode %s: %w", m.Name, err)
		}
		for _, p := range params {
			args, err := members(p.value)
			if err != nil {
				return t, "", fmt.Errorf("mode %s: %w", m.Name, err)
			}
			for _, a := range args {
				var value string
				if err := json.Unmarshal(a.value, &value); err != nil {
					return t, "", fmt.Errorf("mode %s: %s %s: %w", m.Name, p.key, a.key, err)
				}
				mode.Settings = append(mode.Settings, [3]string{p.key, a.key, value})
			}
		}
		t.Modes = append(t.Modes, mode)
	}
	var err error
	t.Params, err = g.params(o, t.Modes)
	t.ParamsByUse = o.ByUse != "" && !o.Full
	return t, found.File, err
}

// params returns the PARAM sections that were read, or what the modes use with
// the types and paths of a sibling file.
func (g *generator) params(o tableOverlay, modes []board.Mode) ([]board.Param, error) {
	used := map[string][]string{}
	var order []string
	for _, m := range modes {
		for _, s := range m.Settings {
			if used[s[0]] == nil {
				order = append(order, s[0])
			}
			if !slices.Contains(used[s[0]], s[1]) {
				used[s[0]] = append(used[s[0]], s[1])
			}
		}
	}
	var out []board.Param
	done := map[string]bool{}
	from := o.Params
	if o.ByUse != "" {
		from = o.ByUse
	}
	for _, p := range g.research.ParamTables[from] {
		if o.ByUse != "" && used[p.Name] == nil {
			continue
		}
		done[p.Name] = true
		param := board.Param{Name: p.Name, Type: p.Type, Paths: map[string]string{}}
		if forced, ok := o.Types[p.Name]; ok {
			param.Type = forced
		}
		args, err := members(p.Args)
		if err != nil {
			return nil, err
		}
		for _, a := range args {
			name, twin := strings.CutSuffix(a.key, "_KNEXT")
			whole := o.Full && (p.Name != "CPU_ONLINE" || o.AllCores)
			if o.ByUse != "" && !whole && !slices.Contains(used[p.Name], name) {
				continue
			}
			if !twin {
				param.Args = append(param.Args, a.key)
			}
			file, err := paramPath(a.value)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", p.Name, a.key, err)
			}
			if slices.Contains(o.NoPaths, p.Name) {
				continue
			}
			if twin {
				param.KNext = true
			}
			if !twin || param.Paths[name] != file {
				param.Paths[a.key] = file
			}
		}
		for _, a := range used[p.Name] {
			if !slices.Contains(param.Args, a) {
				if o.ByUse == "" {
					return nil, fmt.Errorf("%s %s is used and not declared", p.Name, a)
				}
				param.Args = append(param.Args, a)
			}
		}
		out = append(out, param)
	}
	for _, name := range order {
		if done[name] {
			continue
		}
		if o.ByUse == "" {
			return nil, fmt.Errorf("%s is used and not declared", name)
		}
		kind := "CLOCK"
		for _, p := range g.research.ParamTables[o.ExtraTypes] {
			if p.Name == name {
				kind = p.Type
			}
		}
		param := board.Param{Name: name, Type: kind, Args: used[name]}
		for _, a := range param.Args {
			if file, ok := o.Paths[a]; ok {
				if param.Paths == nil {
					param.Paths = map[string]string{}
				}
				param.Paths[a] = file
			}
		}
		out = append(out, param)
	}
	return out, nil
}

// paramPath is the file of an argument; HWMON has a folder and an attribute,
// which the file format separates with a blank.
func paramPath(raw json.RawMessage) (string, error) {
	var parts []string
	if raw[0] != '[' {
		raw = slices.Concat([]byte{'['}, raw, []byte{']'})
	}
	err := json.Unmarshal(raw, &parts)
	return strings.Join(parts, " "), err
}

// releases joins the board with the machines of each branch.
func (g *generator) releases() error {
	g.out.Releases = map[string]board.Release{}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		var mine []release.Machine
		for _, m := range r.Machines() {
			if g.fits(m) {
				mine = append(mine, m)
			}
		}
		if len(mine) == 0 {
			continue
		}
		sort.SliceStable(mine, func(i, j int) bool { return g.rank(mine[i]) < g.rank(mine[j]) })
		var out board.Release
		for _, m := range mine {
			out.Machines = append(out.Machines, m.Name)
		}
		out.NVPModel = mine[0].NVPModel
		out.Table, out.Verified, out.Basis = g.tableFor(out.NVPModel, r)
		for _, m := range mine[1:] {
			if m.NVPModel != out.NVPModel {
				table, _, _ := g.tableFor(m.NVPModel, r)
				out.Others = append(out.Others, board.Other{Machine: m.Name, NVPModel: m.NVPModel, Table: table})
			}
		}
		for _, o := range g.over.Tables {
			if o.Own != "" {
				out.OwnModel, out.OwnTable = o.Own, o.Key
			}
		}
		g.out.Releases[name] = out
	}
	g.out.Evidence["releases"] = board.Evidence{Source: "OE4T/meta-tegra conf/machine of each branch", Verified: true}
	return nil
}

func (g *generator) fits(m release.Machine) bool {
	for _, part := range g.over.DTB {
		if len(m.DeviceTrees) > 0 && strings.Contains(m.DeviceTrees[0], part) {
			return true
		}
	}
	return false
}

// rank puts the chosen default first, then developer kits, then the rest.
func (g *generator) rank(m release.Machine) int {
	switch {
	case m.Name == g.over.Default:
		return 0
	case strings.HasPrefix(m.Name, "jetson-"):
		return 1
	}
	return 2
}

// tableFor picks the facts about a stock file that are nearest to the release's
// L4T, and says how near that is.
func (g *generator) tableFor(file string, r release.Release) (key string, verified bool, basis string) {
	best := -1
	for _, o := range g.over.Tables {
		if !slices.Contains(o.Files, file) || o.Lines != nil && !slices.Contains(o.Lines, r.Line()) {
			continue
		}
		near := 0
		if "R"+strings.SplitN(o.L4T, ".", 2)[0] == r.Line() {
			near = 1
		}
		holds := slices.ContainsFunc(o.Holds, func(v string) bool { return strings.HasPrefix(r.L4T+".", v+".") })
		if holds {
			near = 2
		}
		if near > best {
			best, key, verified, basis = near, o.Key, holds, o.L4T
		}
	}
	if verified {
		basis = ""
	}
	return key, verified, basis
}
