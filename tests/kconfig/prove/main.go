// Command prove compares predictions with the kernel's own Kconfig program.
//
//	go run ./tests/kconfig/prove -src DIR [-src DIR...] [-lines 2000] [-seed 1] [-o RECORD]
//
// Each DIR is an unpacked kernel source, such as Debian's linux-source-6.1 or
// linux-source-6.12. Its scripts/kconfig/conf is built, random fragments are
// merged over the arm64 defconfig, and every line of the resulting .config is
// compared, not only the requested ones. It needs make, gcc, flex, bison and an
// arm64 compiler. The exit code is 3 if a prediction was wrong.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/emitters/layerconf"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/plan"
)

type sources []string

func (s *sources) String() string     { return strings.Join(*s, ",") }
func (s *sources) Set(v string) error { *s = append(*s, v); return nil }

// record is the dated result.
type record struct {
	Test       string   `json:"test"`
	Date       string   `json:"date"`
	Real       []string `json:"real"`
	StandIn    []string `json:"stand_in"`
	Calculated []string `json:"calculated"`
	Seed       uint64   `json:"seed"`
	Go         string   `json:"go"`
	CPUs       int      `json:"cpus"`
	Kernels    []result `json:"kernels"`
}

type result struct {
	Kernel       string   `json:"kernel"`
	Compiler     string   `json:"compiler"`
	Fragments    int      `json:"fragments"`
	Requested    int      `json:"requested"`
	NotKept      int      `json:"requested_not_kept"`
	Mispredicted int      `json:"requested_mispredicted"`
	ConfigLines  int      `json:"config_lines_compared"`
	ConfigWrong  int      `json:"config_lines_wrong"`
	Wrong        []string `json:"wrong,omitempty"`
	// Lines that differ if the toolchain is declared instead of probed: each depends
	// on the compiler, assembler, linker or Rust of this machine.
	DeclaredDiffer    []string `json:"base_differs_with_declared_toolchain"`
	Embedded          string   `json:"embedded_facts"`
	EmbeddedDiffer    []string `json:"embedded_facts_differ"`
	IndexMS           float64  `json:"index_ms"`
	IndexProbedMS     float64  `json:"index_running_probes_ms"`
	EvaluateMS        float64  `json:"evaluate_ms"` // best of seven, mean over the fragments
	RealConfMS        float64  `json:"real_conf_ms"`
	MergeConfigMS     float64  `json:"merge_config_sh_ms"`
	MergeConfigLines  int      `json:"merge_config_sh_lines"`
	MergeMispredicted int      `json:"merge_config_sh_mispredicted"`
	// Fragments of others, as they are: merge_config.sh's text goes to conf.
	Foreign *foreign `json:"fragments_of_others,omitempty"`
	// The check that a build makes after do_configure, on the same fragments and
	// their real .config.
	CheckStops int `json:"build_check_lines"`
	CheckWrong int `json:"build_check_wrong"`
}

// foreign counts what is compared of fragments that others wrote.
type foreign struct {
	Fragments    int      `json:"fragments"`
	Requested    int      `json:"requested"`
	NotKept      int      `json:"requested_not_kept"`
	Mispredicted int      `json:"requested_mispredicted"`
	ConfigLines  int      `json:"config_lines_compared"`
	ConfigWrong  int      `json:"config_lines_wrong"`
	Wrong        []string `json:"wrong,omitempty"`
}

func main() {
	var srcs, fragments sources
	flag.Var(&fragments, "fragments", "folder with fragments of others; may be repeated")
	most := flag.Int("most", 100, "fragments of others per kernel")
	flag.Var(&srcs, "src", "unpacked kernel source; may be repeated")
	lines := flag.Int("lines", 2000, "random requests per kernel")
	per := flag.Int("per", 250, "requests per fragment")
	seed := flag.Uint64("seed", 1, "seed of the random fragments")
	out := flag.String("o", "", "record to write")
	flag.Parse()
	if len(srcs) == 0 {
		fmt.Fprintln(os.Stderr, "prove: no -src given; unpack linux-source-6.1 or linux-source-6.12 and name the folder")
		os.Exit(2)
	}
	rec := record{
		Test: "kconfig", Date: time.Now().UTC().Format(time.DateOnly), Seed: *seed, Go: runtime.Version(), CPUs: runtime.NumCPU(),
		Real:    []string{"scripts/kconfig/conf and merge_config.sh of each tree", "the tree's Kconfig files and arm64 defconfig", "the compiler's probes"},
		StandIn: []string{}, Calculated: []string{},
	}
	bad := false
	for _, src := range srcs {
		r, err := prove(src, *lines, *per, *seed)
		if err != nil {
			fmt.Fprintf(os.Stderr, "prove: %s: %v\n", src, err)
			os.Exit(1)
		}
		if len(fragments) > 0 {
			if r.Foreign, err = proveForeign(src, fragments, *most); err != nil {
				fmt.Fprintf(os.Stderr, "prove: %s: %v\n", src, err)
				os.Exit(1)
			}
			f := r.Foreign
			bad = bad || f.Mispredicted+f.ConfigWrong > 0
			fmt.Printf("%s: %d fragments of others, %d requests, %d not kept, %d mispredicted; %d lines of .config, %d wrong\n",
				r.Kernel, f.Fragments, f.Requested, f.NotKept, f.Mispredicted, f.ConfigLines, f.ConfigWrong)
		}
		bad = bad || r.Mispredicted+r.ConfigWrong+r.MergeMispredicted+r.CheckWrong > 0
		rec.Kernels = append(rec.Kernels, *r)
		fmt.Printf("%s: %d requests, %d not kept, %d mispredicted; %d lines of .config, %d wrong; evaluate %.1f ms, conf %.0f ms, merge_config.sh %.0f ms\n",
			r.Kernel, r.Requested, r.NotKept, r.Mispredicted, r.ConfigLines, r.ConfigWrong, r.EvaluateMS, r.RealConfMS, r.MergeConfigMS)
	}
	if *out != "" {
		data, err := json.MarshalIndent(rec, "", "  ")
		if err == nil {
			err = os.WriteFile(*out+".tmp", append(data, '\n'), 0o644)
		}
		if err == nil {
			err = os.Rename(*out+".tmp", *out)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "prove:", err)
			os.Exit(1)
		}
	}
	if bad {
		os.Exit(3)
	}
}

type rig struct {
	src, out string
}

func (g rig) make(env []string, args ...string) error {
	cmd := exec.Command("make", append([]string{"-s", "ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-", "O=" + g.out}, args...)...)
	cmd.Dir = g.src
	cmd.Env = append(os.Environ(), env...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make %s: %w\n%s", strings.Join(args, " "), err, msg)
	}
	return nil
}

func prove(src string, lines, per int, seed uint64) (*result, error) {
	src, err := filepath.Abs(src)
	if err != nil {
		return nil, err
	}
	out, err := os.MkdirTemp("", "prove-kconfig-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(out) }()
	g := rig{src, out}
	if err := g.make(nil, "defconfig"); err != nil { // builds conf
		return nil, err
	}
	r := &result{}
	start := time.Now()
	assumed, err := kconfig.Index(src, kconfig.Options{})
	if err != nil {
		return nil, err
	}
	r.IndexMS = ms(start)
	start = time.Now()
	probed, err := kconfig.Index(src, kconfig.Options{Shell: kconfig.RunShell})
	if err != nil {
		return nil, err
	}
	r.IndexProbedMS = ms(start)
	k := kconfig.Prepare(probed.Tree)
	r.Kernel = probed.Tree.Release
	if v, ok := k.Evaluate(&kconfig.Config{}).Get("CC_VERSION_TEXT"); ok {
		r.Compiler = strings.Trim(v, `"`)
	}
	data, err := os.ReadFile(filepath.Join(src, "arch/arm64/configs/defconfig"))
	if err != nil {
		return nil, err
	}
	base, _ := kconfig.ReadFragment("defconfig", data)

	// The base alone, with real and with declared compiler facts.
	real, err := g.runConf(base)
	if err != nil {
		return nil, err
	}
	r.compare("base", k, k.Evaluate(base), real)
	d := &result{}
	declared := kconfig.Prepare(assumed.Tree)
	d.compare("base", declared, declared.Evaluate(base), real)
	r.DeclaredDiffer = d.Wrong

	// The embedded facts of the same series, which may be of another patch level.
	v := strings.SplitN(r.Kernel, ".", 3)
	if f, err := kconfig.Open(v[0] + "." + v[1]); err == nil {
		e := &result{}
		e.compare("base", f.Kernel, f.Evaluate(base), real)
		r.Embedded, r.EmbeddedDiffer = f.Set.Name+", "+f.Set.Source, e.Wrong
	}

	rng := rand.New(rand.NewPCG(seed, 0))
	var evaluate, conf time.Duration
	for r.Requested < lines {
		frag := randomFragment(rng, k.Tree, min(per, lines-r.Requested))
		if r.Fragments%5 == 4 { // without modules every m means something else
			frag.Lines = append(frag.Lines, kconfig.Line{Symbol: "MODULES", Value: "n"})
		}
		merged := kconfig.Merge(base, frag)
		got := k.Evaluate(merged)
		best := time.Hour // of several: the machine may be busy
		for range 7 {
			start := time.Now()
			k.Evaluate(merged)
			best = min(best, time.Since(start))
		}
		evaluate += best
		start := time.Now()
		real, err := g.runConf(merged)
		if err != nil {
			return nil, err
		}
		conf += time.Since(start)
		r.Fragments++
		r.compareRequests(frag, got, real)
		if err := r.buildCheck(g, frag, real); err != nil {
			return nil, err
		}
		r.compare(fmt.Sprintf("fragment %d", r.Fragments), k, got, real)
	}
	r.EvaluateMS = float64(evaluate.Microseconds()) / 1000 / float64(r.Fragments)
	r.RealConfMS = float64(conf.Microseconds()) / 1000 / float64(r.Fragments)
	return r, r.mergeConfig(g, k, base, rng)
}

// proveForeign compares fragments of others: the same text for conf and for the prediction.
func proveForeign(src string, folders []string, most int) (*foreign, error) {
	src, err := filepath.Abs(src)
	if err != nil {
		return nil, err
	}
	out, err := os.MkdirTemp("", "prove-kconfig-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(out) }()
	g := rig{src, out}
	if err := g.make(nil, "defconfig"); err != nil {
		return nil, err
	}
	probed, err := kconfig.Index(src, kconfig.Options{Shell: kconfig.RunShell})
	if err != nil {
		return nil, err
	}
	k := kconfig.Prepare(probed.Tree)
	data, err := os.ReadFile(filepath.Join(src, "arch/arm64/configs/defconfig"))
	if err != nil {
		return nil, err
	}
	base, _ := kconfig.ReadFragment("defconfig", data)
	files, err := fragmentFiles(folders, most)
	if err != nil {
		return nil, err
	}
	f := &foreign{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		frag, _ := kconfig.ReadFragment(name, text)
		kept := &kconfig.Config{}
		for _, l := range base.Lines {
			if !slices.ContainsFunc(frag.Lines, func(o kconfig.Line) bool { return o.Symbol == l.Symbol }) {
				kept.Lines = append(kept.Lines, l)
			}
		}
		real, err := g.runText(slices.Concat(render(kept), []byte("\n"), text, []byte("\n")))
		if err != nil {
			return nil, err
		}
		r, got := &result{}, k.Evaluate(kconfig.Merge(base, frag))
		r.compareRequests(frag, got, real)
		r.compare(filepath.Base(name), k, got, real)
		f.Fragments++
		f.Requested, f.NotKept, f.Mispredicted = f.Requested+r.Requested, f.NotKept+r.NotKept, f.Mispredicted+r.Mispredicted
		f.ConfigLines, f.ConfigWrong = f.ConfigLines+r.ConfigLines, f.ConfigWrong+r.ConfigWrong
		f.Wrong = append(f.Wrong, r.Wrong...)
	}
	return f, nil
}

// fragmentFiles lists files with options, each different one once, spread over the folders.
func fragmentFiles(folders []string, most int) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !slices.Contains([]string{".cfg", ".config", ".fragment"}, filepath.Ext(name)) && !strings.HasSuffix(name, "defconfig") {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil || seen[string(text)] || !bytes.Contains(text, []byte("CONFIG_")) {
				return err
			}
			seen[string(text)] = true
			names = append(names, name)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(names) > most {
		var some []string
		for i := range most {
			some = append(some, names[i*len(names)/most])
		}
		names = some
	}
	return names, nil
}

func ms(t time.Time) float64 { return float64(time.Since(t).Microseconds()) / 1000 }

// runConf runs the real program the way kernel-yocto does.
func (g rig) runConf(cfg *kconfig.Config) (map[string]string, error) { return g.runText(render(cfg)) }

func (g rig) runText(text []byte) (map[string]string, error) {
	all := filepath.Join(g.out, "all.config")
	if err := os.WriteFile(all, text, 0o644); err != nil {
		return nil, err
	}
	if err := g.make([]string{"KCONFIG_ALLCONFIG=" + all}, "alldefconfig"); err != nil {
		return nil, err
	}
	return readConfig(filepath.Join(g.out, ".config"))
}

func render(cfg *kconfig.Config) []byte {
	var b bytes.Buffer
	for _, l := range cfg.Lines {
		if l.Value == "n" {
			fmt.Fprintf(&b, "# CONFIG_%s is not set\n", l.Symbol)
		} else {
			fmt.Fprintf(&b, "CONFIG_%s=%s\n", l.Symbol, l.Value)
		}
	}
	return b.Bytes()
}

func readConfig(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	sc := bufio.NewScanner(bytes.NewReader(data))
	for sc.Scan() {
		if rest, ok := strings.CutPrefix(sc.Text(), "CONFIG_"); ok {
			name, v, _ := strings.Cut(rest, "=")
			m[name] = v
		} else if rest, ok := strings.CutPrefix(sc.Text(), "# CONFIG_"); ok {
			if name, ok := strings.CutSuffix(rest, " is not set"); ok {
				m[name] = "n"
			}
		}
	}
	return m, sc.Err()
}

func (r *result) compareRequests(frag *kconfig.Config, got *kconfig.Result, real map[string]string) {
	for _, l := range frag.Lines {
		r.Requested++
		want, ok := real[l.Symbol]
		if !ok || want != l.Value {
			r.NotKept++
		}
		if v, present := got.Get(l.Symbol); present != ok || v != want {
			r.Mispredicted++
		}
	}
}

// buildCheck runs the function that a generated layer runs after do_configure: it
// must name each request that the real .config does not hold, and no other.
func (r *result) buildCheck(g rig, frag *kconfig.Config, real map[string]string) error {
	t := &plan.Target{Name: "t", Machine: "jetson-orin-nano-devkit", Plan: &plan.Plan{}, Kernel: plan.Kernel{Config: []plan.ConfigOption{{Symbol: "PSI", Value: "y"}}}}
	files, err := layerconf.Emit(&plan.Layer{Name: "x", Release: "scarthgap", Targets: []*plan.Target{t}})
	if err != nil {
		return err
	}
	program := ""
	for _, f := range files {
		if strings.HasSuffix(f.Path, ".bbclass") {
			_, program, _ = strings.Cut(string(f.Data), "\ndef ")
			program, _, _ = strings.Cut("def "+program, "\npython do_")
		}
	}
	program += "\nimport sys\nprint('\\n'.join(yoctune_kernel_differences(open(sys.argv[1]).read(), 'f', open(sys.argv[2]).read(), '')))\n"
	path := filepath.Join(g.out, "requests.cfg")
	if err := os.WriteFile(path, render(frag), 0o644); err != nil {
		return err
	}
	out, err := exec.Command("python3", "-I", "-c", program, path, filepath.Join(g.out, ".config")).Output()
	if err != nil {
		return fmt.Errorf("the build's check: %w", err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if _, rest, ok := strings.Cut(line, "CONFIG_"); ok {
			symbol, _, _ := strings.Cut(rest, ":")
			named[symbol] = true
		}
	}
	r.CheckStops += len(named)
	for _, l := range frag.Lines {
		got, ok := real[l.Symbol]
		lost := got != l.Value && (ok || l.Value != "n")
		if lost != named[l.Symbol] {
			r.CheckWrong++
			r.Wrong = append(r.Wrong, fmt.Sprintf("the build's check on %s=%s: real %s", l.Symbol, l.Value, orAbsent(got, ok)))
		}
	}
	return nil
}

// compare checks every line of the .config in both directions.
func (r *result) compare(where string, k *kconfig.Kernel, got *kconfig.Result, real map[string]string) {
	names := map[string]bool{}
	for n := range real {
		names[n] = true
	}
	for _, s := range k.Symbols {
		if _, present := got.Get(s.Name); present {
			names[s.Name] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		r.ConfigLines++
		a, okA := got.Get(n)
		b, okB := real[n]
		if okA != okB || a != b {
			r.ConfigWrong++
			if len(r.Wrong) < 40 {
				r.Wrong = append(r.Wrong, fmt.Sprintf("%s: %s: predicted %s, real %s", where, n, orAbsent(a, okA), orAbsent(b, okB)))
			}
		}
	}
}

func orAbsent(v string, ok bool) string {
	if !ok {
		return "(absent)"
	}
	return v
}

// randomFragment requests random values of random symbols. Most symbols have a prompt,
// some do not, and some values are invalid for the type.
func randomFragment(rng *rand.Rand, t *kernel.Tree, n int) *kconfig.Config {
	c := &kconfig.Config{}
	seen := map[string]bool{}
	for len(c.Lines) < n {
		s := &t.Symbols[rng.IntN(len(t.Symbols))]
		prompt := false
		for _, d := range s.Defs {
			prompt = prompt || d.Prompt
		}
		if seen[s.Name] || s.Name == "MODULES" || !prompt && rng.IntN(10) > 0 {
			continue
		}
		seen[s.Name] = true
		c.Lines = append(c.Lines, kconfig.Line{Symbol: s.Name, Value: randomValue(rng, s.Type)})
	}
	return c
}

func randomValue(rng *rand.Rand, t kernel.Type) string {
	pick := func(vs ...string) string { return vs[rng.IntN(len(vs))] }
	switch t {
	case kernel.Bool:
		return pick("y", "y", "y", "y", "n", "n", "m", "Y")
	case kernel.Tristate:
		return pick("y", "y", "y", "m", "m", "m", "n", "1")
	case kernel.Int:
		return pick("0", "1", "7", "64", "1024", "999999", "-3", "abc", "0x10", "010")
	case kernel.Hex:
		return pick("0x0", "0x10", "20", "0xffffffff", "zz", "0X1F")
	}
	return pick(`"text"`, `""`, "bare", `"with \"quotes\" in it"`, `"open`, `"tail" rest`)
}

// mergeConfig checks [kconfig.Merge] against merge_config.sh itself, with a
// fragment that repeats and contradicts the base.
func (r *result) mergeConfig(g rig, k *kconfig.Kernel, base *kconfig.Config, rng *rand.Rand) error {
	frag := randomFragment(rng, k.Tree, 20)
	for range 20 {
		l := base.Lines[rng.IntN(len(base.Lines))]
		l.Value = []string{"y", "n", "m"}[rng.IntN(3)]
		frag.Lines = append(frag.Lines, l, l)
	}
	path := filepath.Join(g.out, "fragment.cfg")
	if err := os.WriteFile(path, render(frag), 0o644); err != nil {
		return err
	}
	start := time.Now()
	cmd := exec.Command("scripts/kconfig/merge_config.sh", "-O", g.out, "arch/arm64/configs/defconfig", path)
	cmd.Dir = g.src
	cmd.Env = append(os.Environ(), "ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-")
	var ee *exec.ExitError
	if msg, err := cmd.CombinedOutput(); err != nil && !errors.As(err, &ee) {
		return fmt.Errorf("merge_config.sh: %w\n%s", err, msg)
	}
	r.MergeConfigMS = ms(start)
	r.MergeConfigLines = len(frag.Lines)
	real, err := readConfig(filepath.Join(g.out, ".config"))
	if err != nil {
		return err
	}
	m := &result{}
	m.compare("merge_config.sh", k, k.Evaluate(kconfig.Merge(base, frag)), real)
	r.MergeMispredicted = m.ConfigWrong
	r.Wrong = append(r.Wrong, m.Wrong...)
	return nil
}
