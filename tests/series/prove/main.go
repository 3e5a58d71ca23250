// Command prove runs the real bitbake of each release over a layer for each SoC
// and writes down what passed.
//
//	go run ./tests/series/prove -src DIR [-only NAME]... [-o RECORD] [-doc FILE]
//
// DIR holds a folder for each release that is to be checked, named as the
// meta-tegra branch (scarthgap, kirkstone-l4t-r32.7.x, ...), and in it checkouts
// named bitbake, openembedded-core and meta-tegra; links will do. A release
// without a folder is listed as not checked. Everything else that the check
// needs is in docs/check-layer.md. The exit code is 3 if a check failed.
//
// With -o the result joins what an earlier run wrote there, so that releases can
// be checked one at a time; -doc puts the table into a document.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
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
	"github.com/yoctune/yoctune/compiler/checklayer"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/tree"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

type words []string

func (w *words) String() string     { return strings.Join(*w, ",") }
func (w *words) Set(v string) error { *w = append(*w, v); return nil }

type options struct {
	config, src, out, doc, user string
	only                        words
	threads                     int
}

func main() {
	var o options
	flag.StringVar(&o.config, "config", "tests/series/config", "folder of the configuration")
	flag.StringVar(&o.src, "src", "", "folder with a folder of checkouts for each release")
	flag.StringVar(&o.out, "o", "", "record to write, or to add to")
	flag.StringVar(&o.doc, "doc", "", "document whose table to rewrite")
	flag.StringVar(&o.user, "user", "", "account to run bitbake as when root (default: nobody)")
	flag.Var(&o.only, "only", "release or target to check; may be repeated")
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

// prove returns the exit code.
func prove(ctx context.Context, o options) (int, error) {
	if o.src == "" && o.doc == "" {
		return 2, errors.New("no -src given; name the folder that holds a folder of checkouts for each release")
	}
	rec, err := earlier(o.out)
	if err != nil {
		return 1, err
	}
	if o.src != "" {
		if err := check(ctx, o, rec); err != nil {
			return 1, err
		}
	}
	if o.doc != "" {
		if err := writeTable(o.doc, rec); err != nil {
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

// check runs everything that is chosen and keeps the record up to date.
func check(ctx context.Context, o options, rec *record) error {
	p, err := compiler.Open(o.config)
	if err != nil {
		return err
	}
	layers := p.Layers(compiler.Selection{All: true})
	if p.Report.Failed() {
		var b bytes.Buffer
		err := diag.WriteText(&b, p.Report, p.Config.Sources, false)
		return errors.Join(fmt.Errorf("%s does not build:\n%s", o.config, b.String()), err)
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
	for _, l := range layers {
		src := filepath.Join(o.src, l.Release)
		for _, t := range l.Targets {
			if len(o.only) > 0 && !slices.Contains(o.only, l.Release) && !slices.Contains(o.only, t.Name) {
				continue
			}
			found++
			r := result{Release: l.Release, Target: t.Name, Board: t.Board, Machine: t.Machine, SoC: soc(t), Date: time.Now().UTC().Format(time.DateOnly)}
			if _, err := os.Stat(src); errors.Is(err, fs.ErrNotExist) {
				r.Reason = "no checkouts at hand"
				rec.put(r)
				fmt.Printf("%-22s %-28s not checked: %s\n", r.Release, r.Machine, r.Reason)
				continue
			}
			dir := filepath.Join(work, l.Folder)
			if err := writeLayer(dir, l); err != nil {
				return err
			}
			r.Commits = commits(src)
			if err := run(ctx, o, src, dir, &r); err != nil {
				return err
			}
			rec.put(r)
			if err := rec.write(o.out); err != nil {
				return err
			}
			fmt.Printf("%-22s %-28s %d passed, %d failed, %d skipped, %.0f s\n", r.Release, r.Machine, r.count(checklayer.Pass), r.count(checklayer.Fail), r.count(checklayer.Skipped), r.Seconds)
		}
	}
	if found == 0 {
		return fmt.Errorf("no release or target is called %s", &o.only)
	}
	return rec.write(o.out)
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
	return c.Write(false)
}

// commits are the revisions of the checkouts, as far as git knows them.
func commits(src string) map[string]string {
	found := map[string]string{}
	for _, name := range checkouts() {
		out, err := exec.Command("git", "-c", "safe.directory=*", "-C", filepath.Join(src, name), "rev-parse", "--short=10", "HEAD").Output()
		if err != nil {
			continue // an unpacked archive will do as well
		}
		found[name] = strings.TrimSpace(string(out))
	}
	return found
}

func checkouts() []string { return []string{"bitbake", "openembedded-core", "meta-tegra"} }

// run checks one machine. A check that could not be run is a result as well.
func run(ctx context.Context, o options, src, dir string, r *result) error {
	began := time.Now()
	s, err := checklayer.Run(ctx, checklayer.Options{
		Layer: dir, Release: r.Release, Machine: r.Machine, User: o.user, Threads: o.threads,
		BitBake: filepath.Join(src, "bitbake"), OECore: filepath.Join(src, "openembedded-core"), MetaTegra: filepath.Join(src, "meta-tegra"),
	}, checklayer.Observer{Finished: func(s checklayer.Step) {
		s.Log = "" // a path of this machine
		if s.Status == checklayer.Fail {
			fmt.Printf("%s: %s %s: %s\n", r.Target, s.Name, s.Subject, strings.Join(s.Errors, "\n    "))
		}
		r.Steps = append(r.Steps, s)
	}})
	r.BitBake, r.Seconds = s.BitBake, time.Since(began).Round(time.Second).Seconds()
	if errors.Is(err, checklayer.ErrSetup) {
		r.Reason, err = err.Error(), nil
	}
	if s.WorkDir != "" {
		fmt.Printf("%s: logs are in %s\n", r.Target, s.WorkDir)
	}
	return err
}

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
	BitBake string            `json:"bitbake,omitempty"`
	Commits map[string]string `json:"commits,omitempty"`
	Seconds float64           `json:"seconds,omitempty"`
	Reason  string            `json:"reason,omitempty"` // why not checked
	Steps   []checklayer.Step `json:"steps,omitempty"`
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

// failed tells whether a check failed, or was asked for and could not be run.
func (r result) failed() bool {
	return r.count(checklayer.Fail) > 0 || r.Reason != "" && r.Commits != nil
}

// earlier reads the record to add to; a new one when there is none.
func earlier(file string) (*record, error) {
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
	rec.Real = []string{"bitbake, openembedded-core and meta-tegra at the commits given", "yocto-check-layer", "tasks of the layer's own recipes up to package_qa"}
	rec.StandIn = []string{"empty recipes for everything that the layer does not append to"}
	rec.Calculated = []string{}
	return rec, nil
}

func (rec *record) put(r result) {
	rec.Results = slices.DeleteFunc(rec.Results, func(old result) bool { return old.Target == r.Target })
	rec.Results = append(rec.Results, r)
	slices.SortFunc(rec.Results, func(a, b result) int {
		return cmp.Or(cmp.Compare(order(a.Release), order(b.Release)), cmp.Compare(a.Target, b.Target))
	})
	rec.Date = max(rec.Date, r.Date)
}

// order is a release's place: by series, then by L4T.
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
