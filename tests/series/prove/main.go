// Command prove runs the real bitbake of each release on a layer for all its
// machines and records the results.
//
//	go run ./tests/series/prove -src DIR [-only NAME]... [-quick] [-o RECORD] [-doc FILE]
//
// DIR holds a folder for each release to check, named as the meta-tegra branch (scarthgap,
// kirkstone-l4t-r32.7.x, ...), with checkouts (or links) named bitbake, openembedded-core and
// meta-tegra. A release without a folder is listed as not checked. docs/check-layer.md lists the
// other requirements. The exit code is 3 if a check failed.
//
// Each machine is parsed and its values are read; then one machine for each SoC
// and release goes through every step of check-layer, which -quick leaves out.
//
// With -o the results are merged into an earlier record. Steps that passed with the same layer and
// checkouts are skipped, so that an interrupted run resumes. -doc writes the table to a document.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/layer/checklayer"
	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/series/machines"
)

type words []string

func (w *words) String() string     { return strings.Join(*w, ",") }
func (w *words) Set(v string) error { *w = append(*w, v); return nil }

type options struct {
	config, src, out, doc, user string
	only                        words
	quick                       bool
	threads                     int
}

func main() {
	var o options
	flag.StringVar(&o.config, "config", "tests/series/config", "folder of the configuration")
	flag.StringVar(&o.src, "src", "", "folder with a folder of checkouts for each release")
	flag.StringVar(&o.out, "o", "", "record to write, or to add to")
	flag.StringVar(&o.doc, "doc", "", "document whose table to rewrite")
	flag.StringVar(&o.user, "user", "", "account to run bitbake as when root (default: nobody)")
	flag.Var(&o.only, "only", "release, machine or target to check; may be repeated")
	flag.BoolVar(&o.quick, "quick", false, "only parse and read values; no tasks, no yocto-check-layer")
	flag.IntVar(&o.threads, "threads", 0, "threads of bitbake (default: one a CPU)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code, err := prove(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
	}
	os.Exit(code)
}

// prove runs the checks, updates record and document, and returns the exit code.
func prove(ctx context.Context, o options) (int, error) {
	if o.src == "" && o.doc == "" {
		return 2, errors.New("no -src given; name the folder that holds a folder of checkouts for each release")
	}
	rec, err := readRecord(o.out)
	if err != nil {
		return 1, err
	}
	if o.src != "" {
		if err := check(ctx, o, rec); err != nil {
			return 1, err
		}
	}
	if o.doc != "" {
		today, err := currentLayers(o.config)
		if err != nil {
			return 1, err
		}
		if err := writeTable(o.doc, rec, today); err != nil {
			return 1, err
		}
	}
	for _, r := range rec.Results {
		if r.failed() {
			return 3, nil
		}
	}
	return 0, nil
}

// check runs the selected checks and updates the record.
func check(ctx context.Context, o options, rec *record) error {
	wide, err := buildEveryMachine(o.config)
	if err != nil {
		return err
	}
	deep, err := compile(o.config)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "prove-series-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.Chmod(work, 0o755); err != nil { // bitbake's account must read the layers
		return err
	}
	found := 0
	do := func(l compiler.Layer, folder string, run func(job, context.Context, []*plan.Target) error) error {
		var chosen []*plan.Target
		for _, t := range l.Targets {
			if len(o.only) == 0 || slices.ContainsFunc(o.only, func(name string) bool { return name == l.Release || name == t.Name || name == t.Machine }) {
				chosen = append(chosen, t)
			}
		}
		if found += len(chosen); len(chosen) == 0 {
			return nil
		}
		dir := filepath.Join(work, folder, l.Folder)
		if err := writeLayer(dir, l); err != nil {
			return err
		}
		return run(job{options: o, rec: rec, release: l.Release, src: filepath.Join(o.src, l.Release), dir: dir, digest: digest(l)}, ctx, chosen)
	}
	for _, l := range wide {
		if err := do(l, "machines", job.checkMachines); err != nil {
			return err
		}
	}
	for _, l := range deep {
		if o.quick {
			break
		}
		if err := do(l, "deep", job.runAllSteps); err != nil {
			return err
		}
	}
	if found == 0 {
		return fmt.Errorf("no release, machine or target is called %s", &o.only)
	}
	return rec.write(o.out)
}

// layer identifies the layer of a result.
type layer struct {
	release string
	deep    bool
}

func (r result) layer() layer { return layer{r.Release, r.Deep} }

type checksums map[layer]string

// currentLayers returns the checksums of the layers that the configuration gives now.
func currentLayers(config string) (checksums, error) {
	wide, err := buildEveryMachine(config)
	if err != nil {
		return nil, err
	}
	deep, err := compile(config)
	if err != nil {
		return nil, err
	}
	now := checksums{}
	for _, l := range wide {
		now[layer{l.Release, false}] = digest(l)
	}
	for _, l := range deep {
		now[layer{l.Release, true}] = digest(l)
	}
	return now, nil
}

// buildEveryMachine returns the layer of each release with a target for every machine.
func buildEveryMachine(dir string) (_ []compiler.Layer, err error) {
	files, missing, err := machines.Config(dir)
	if err != nil {
		return nil, err
	}
	for name, machines := range missing {
		return nil, fmt.Errorf("%s: no board's facts name %s", name, strings.Join(machines, ", "))
	}
	all, err := os.MkdirTemp("", "prove-config-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(all)) }()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(all, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	return compile(all)
}

func compile(dir string) ([]compiler.Layer, error) {
	p, err := compiler.Options{Runtime: "golden/runtime"}.Open(dir)
	if err != nil {
		return nil, err
	}
	layers := p.Layers(compiler.Selection{All: true})
	if p.Report.Failed() {
		var b bytes.Buffer
		err := diag.WriteText(&b, p.Report, p.Config.Sources, false)
		return nil, errors.Join(fmt.Errorf("%s does not build:\n%s", dir, b.String()), err)
	}
	return layers, nil
}

// job is the check of one release's layer.
type job struct {
	options
	rec                       *record
	release, src, dir, digest string
}

// recordMissing reports whether the checkouts are missing, and records that.
func (j job) recordMissing(chosen []*plan.Target) bool {
	if _, err := os.Stat(j.src); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for _, t := range chosen {
		r := j.result(t, false)
		r.Reason = "no checkouts at hand"
		if _, ok := j.rec.find(r); !ok {
			j.rec.replace(r)
		}
	}
	fmt.Printf("%-22s %d machines not checked: no checkouts at hand\n", j.release, len(chosen))
	return true
}

// checkMachines parses the layer and reads its values for each machine.
func (j job) checkMachines(ctx context.Context, chosen []*plan.Target) error {
	if j.recordMissing(chosen) {
		return nil
	}
	todo := map[string]*result{}
	var machines []string
	for _, t := range chosen {
		r := j.result(t, false)
		r.Commits = readCommits(j.src)
		if old, ok := j.rec.find(r); ok && old.covers(r) {
			continue
		}
		machines = append(machines, r.Machine)
		todo[r.Machine] = &r
	}
	began := time.Now()
	s, err := checklayer.Machines(ctx, j.checkOptions(""), machines, func(machine string, s checklayer.Step) {
		r := todo[machine]
		if r.add(s); s.Name != "variables" {
			return
		}
		r.Seconds, began = time.Since(began).Round(time.Second).Seconds(), time.Now()
		j.printResult(*r)
	})
	if s.WorkDir != "" {
		fmt.Printf("%s: logs are in %s\n", j.release, s.WorkDir)
	}
	setup := errors.Is(err, checklayer.ErrSetup)
	for _, r := range todo {
		r.BitBake = s.BitBake
		if setup && len(r.Steps) == 0 {
			r.Reason = err.Error()
		}
		if len(r.Steps) == 3 || r.Reason != "" {
			j.rec.replace(*r)
		}
	}
	if setup {
		err = nil
	}
	return errors.Join(err, j.rec.write(j.out))
}

// runAllSteps runs every step of check-layer.
func (j job) runAllSteps(ctx context.Context, chosen []*plan.Target) error {
	if j.recordMissing(nil) {
		return nil
	}
	for _, t := range chosen {
		r := j.result(t, true)
		r.Commits = readCommits(j.src)
		if old, ok := j.rec.find(r); ok && old.covers(r) {
			continue
		}
		began := time.Now()
		s, err := checklayer.Run(ctx, j.checkOptions(r.Machine), checklayer.Observer{Finished: r.add})
		r.BitBake, r.Seconds = s.BitBake, time.Since(began).Round(time.Second).Seconds()
		if errors.Is(err, checklayer.ErrSetup) {
			r.Reason, err = err.Error(), nil
		}
		if s.WorkDir != "" {
			fmt.Printf("%s: logs are in %s\n", r.Target, s.WorkDir)
		}
		if err != nil {
			return err
		}
		j.rec.replace(r)
		if err := j.rec.write(j.out); err != nil {
			return err
		}
		j.printResult(r)
	}
	return nil
}

func (j job) printResult(r result) {
	fmt.Printf("%-22s %-36s %d passed, %d failed, %d skipped, %.0f s\n", r.Release, r.Machine, r.count(checklayer.Pass), r.count(checklayer.Fail), r.count(checklayer.Skipped), r.Seconds)
}

func (j job) result(t *plan.Target, deep bool) result {
	return result{Deep: deep, Release: j.release, Target: t.Name, Board: t.Board, Machine: t.Machine, SoC: soc(t), Date: time.Now().UTC().Format(time.DateOnly), Layer: j.digest}
}

func (j job) checkOptions(machine string) checklayer.Options {
	return checklayer.Options{
		Layer: j.dir, Release: j.release, Machine: machine, User: j.user, Threads: j.threads,
		BitBake: filepath.Join(j.src, "bitbake"), OECore: filepath.Join(j.src, "openembedded-core"), MetaTegra: filepath.Join(j.src, "meta-tegra"),
	}
}

// digest identifies the files of a layer.
func digest(l compiler.Layer) string {
	h := sha256.New()
	for _, f := range l.Files {
		fmt.Fprintf(h, "%x %o %s\n", sha256.Sum256(f.Data), f.Mode, f.Path)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func soc(t *plan.Target) string {
	b, ok := board.Lookup(t.Board)
	if !ok {
		return ""
	}
	return b.SoC
}

func writeLayer(dir string, l compiler.Layer) error {
	c, err := tree.Compare(dir, l.Files)
	if err != nil {
		return err
	}
	return c.Write(context.Background(), false)
}

// readCommits returns the revisions of the checkouts that git can read.
func readCommits(src string) map[string]string {
	found := map[string]string{}
	for _, name := range checkouts() {
		out, err := exec.Command("git", "-c", "safe.directory=*", "-C", filepath.Join(src, name), "rev-parse", "--short=10", "HEAD").Output()
		if err != nil {
			continue // an unpacked archive has no revision
		}
		found[name] = strings.TrimSpace(string(out))
	}
	return found
}

func checkouts() []string { return []string{"bitbake", "openembedded-core", "meta-tegra"} }

// record is the dated result.
type record struct {
	Test       string   `json:"test"`
	Date       string   `json:"date"` // of the newest result
	Real       []string `json:"real"`
	StandIn    []string `json:"stand_in"`
	Calculated []string `json:"calculated"`
	Go         string   `json:"go"`
	CPUs       int      `json:"cpus"`
	Results    []result `json:"results"`
}

type result struct {
	Release string            `json:"release"`
	Target  string            `json:"target"`
	Board   string            `json:"board"`
	Machine string            `json:"machine"`
	SoC     string            `json:"soc"`
	Date    string            `json:"date"`
	Layer   string            `json:"layer,omitempty"` // checksum of the layer's files
	Deep    bool              `json:"deep,omitempty"`  // every step, of a layer that has no other machine of the SoC
	BitBake string            `json:"bitbake,omitempty"`
	Commits map[string]string `json:"commits,omitempty"`
	Seconds float64           `json:"seconds,omitempty"`
	Reason  string            `json:"reason,omitempty"` // why not checked
	Steps   []checklayer.Step `json:"steps,omitempty"`
}

// add appends the outcome of a step.
func (r *result) add(s checklayer.Step) {
	s.Log = "" // a path of this machine
	if s.Status == checklayer.Fail {
		fmt.Printf("%s: %s %s: %s\n", r.Target, s.Name, s.Subject, strings.Join(s.Errors, "\n    "))
	}
	r.Steps = append(r.Steps, s)
}

// covers reports whether r is a passed check of the same files as other.
func (r result) covers(other result) bool {
	return len(r.Steps) > 0 && !r.failed() && r.Layer == other.Layer && maps.Equal(r.Commits, other.Commits)
}

func (r result) count(status string) int {
	n := 0
	for _, s := range r.Steps {
		if s.Status == status {
			n++
		}
	}
	return n
}

// failed reports whether a check failed or could not run.
func (r result) failed() bool {
	return r.count(checklayer.Fail) > 0 || r.Reason != "" && r.Commits != nil
}

// readRecord reads an existing record, or returns a new one.
func readRecord(file string) (*record, error) {
	rec := &record{}
	if file != "" {
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, rec)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading the record: %w", err)
		}
	}
	rec.Test, rec.Go, rec.CPUs = "layers", runtime.Version(), runtime.NumCPU()
	rec.Real = []string{"bitbake, openembedded-core and meta-tegra at the commits given", "every machine of meta-tegra: parse, appends, bitbake's values", "one machine a SoC (deep): yocto-check-layer, signatures for a machine that is no target, tasks of the layer's own recipes up to package_qa"}
	rec.StandIn = []string{"in deep results, empty recipes for everything that the layer does not append to"}
	rec.Calculated = []string{}
	return rec, nil
}

func (r result) sameMachine(old result) bool {
	return r.Release == old.Release && r.Machine == old.Machine && r.Deep == old.Deep
}

// find returns the earlier result of the same machine.
func (rec *record) find(r result) (result, bool) {
	i := slices.IndexFunc(rec.Results, r.sameMachine)
	if i < 0 {
		return result{}, false
	}
	return rec.Results[i], true
}

func (rec *record) replace(r result) {
	rec.Results = slices.DeleteFunc(rec.Results, r.sameMachine)
	rec.Results = append(rec.Results, r)
	slices.SortFunc(rec.Results, func(a, b result) int {
		return cmp.Or(cmp.Compare(order(a.Release), order(b.Release)), cmp.Compare(a.Machine, b.Machine), strings.Compare(fmt.Sprint(a.Deep), fmt.Sprint(b.Deep)))
	})
	rec.Date = max(rec.Date, r.Date)
}

// order returns a release's position: by series, then by L4T.
func order(name string) int {
	r, ok := release.Lookup(name)
	if !ok {
		return -1
	}
	place := 10 * slices.Index(release.Series(), r.Series)
	if strings.Contains(name, "-l4t-") {
		place-- // the series' older L4T
	}
	return place
}

func (rec *record) write(file string) error {
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	return replace(file, append(data, '\n'))
}

func replace(file string, data []byte) error {
	if err := os.WriteFile(file+".tmp", data, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".tmp", file)
}
