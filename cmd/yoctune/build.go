package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/compiler/layer/sign"
	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/yoctuned"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/signature"
)

// buildOptions are the flags of build.
type buildOptions struct {
	compiler.Selection
	out   string
	check bool
	force bool
}

// addSelectionFlags adds the flags that choose what to build.
func addSelectionFlags(cmd *cobra.Command, o *compiler.Selection) {
	f := cmd.Flags()
	f.StringVar(&o.Target, "target", "", "`TARGET` to build (default: all)")
	f.StringVar(&o.Release, "release", "", "`RELEASE` whose targets to build (default: the only one)")
	f.BoolVar(&o.All, "all", false, "build every release, each in OUT/<layer>-<release>")
	addVariableFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("release", "all")
	cmd.MarkFlagsMutuallyExclusive("target", "all")
}

func newBuildCommand() *cobra.Command {
	var o buildOptions
	cmd := &cobra.Command{
		Use:   "build [DIR] -o OUT",
		Short: "Write the layer of a configuration",
		Long: `Write the layer of the configuration in DIR (default: the current folder) to the
folder OUT.

If the configuration has an error, nothing is written. OUT is new, empty, or a layer that
a build wrote; any other folder with files that are not hidden stops the build. Files in OUT
that yoctune did not write are neither deleted nor overwritten. Generated files that are no
longer part of the layer are deleted. A generated file that was edited by hand stops the
build. --force overwrites edited files, and adds the layer to another folder.

With --check nothing is written: the command explains what would change on the devices,
shows the differences of the files, and exits with 3 when there are any. This is meant
for CI. A program that the layer contains is compared by its version, and a released one
by its digest too.`,
		Example: `  yoctune build examples/video-analytics -o build/meta-vision
  yoctune build . -o meta-tuning --check
  yoctune build . -o layers --all`,
		RunE: runInFolder(func(cmd *cobra.Command, dir string) error { return build(cmd, dir, o) }),
	}
	addSelectionFlags(cmd, &o.Selection)
	addRuntimeFlag(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.out, "output", "o", "", "`OUT` folder of the layer")
	f.BoolVar(&o.check, "check", false, "write nothing; exit with 3 when OUT is not up to date")
	f.BoolVar(&o.force, "force", false, "overwrite generated files that were edited by hand, and write to a folder with other files")
	return cmd
}

func build(cmd *cobra.Command, dir string, o buildOptions) error {
	started := time.Now()
	switch {
	case o.out == "":
		return cli.UsageError(errors.New("--output OUT is required: the folder of the layer"))
	case filepath.Clean(o.out) == "/":
		return cli.UsageError(fmt.Errorf("--output %s: a layer needs a folder of its own; choose one below the root directory", o.out))
	}
	p, err := openProject(cmd, dir)
	if err != nil {
		return err
	}
	layers := p.LastLayers(o.Selection, func(folder string) (emitters.Hold, func()) {
		return tree.Hold(filepath.Join(o.out, folder))
	})
	if err := showProject(cmd, dir, p); err != nil {
		return err
	}
	changed := false
	for _, l := range layers {
		out := filepath.Join(o.out, l.Folder)
		if o.check {
			var kept []tree.Kept
			if l.Files, kept, err = tree.KeepUnreleased(out, l.Files); err != nil {
				return err
			}
			for _, k := range kept {
				cli.Warn(cmd, "%s belongs to a version under development, so its bytes are not compared: SHA-256 %.12s in the layer, %.12s here", k.Path, k.Was, k.Now)
			}
		}
		c, err := tree.Compare(out, l.Files)
		if err != nil {
			return err
		}
		changed = changed || !c.Clean()
		if o.check {
			err = checkFolder(cmd, dir, l, c, o.force)
		} else {
			err = writeFolder(cmd, c, o.force)
		}
		if err != nil {
			return err
		}
		summary := summarise(l, c, p, time.Since(started))
		if !o.check {
			if err := summary.findUnsigned(out); err != nil {
				return err
			}
		}
		if w := cli.NewPrinter(cmd); w.JSON {
			w.Summary("build", summary)
		} else if !o.check {
			fmt.Fprintln(w, summary.text(out))
		}
	}
	return cli.Answer(!o.check || !changed)
}

// checkFolder shows what a build would change in the folder of a layer: its effect
// on the devices, the files, and the conflicts. A conflict stops a build, and may be the only
// difference.
func checkFolder(cmd *cobra.Command, dir string, l compiler.Layer, c *tree.Comparison, force bool) error {
	if err := explainDifferences(cmd, dir, l, c); err != nil {
		return err
	}
	showDifferences(cli.NewPrinter(cmd), c)
	if report := reportConflicts(c, force); report.Failed() {
		return showReport(cmd, "", report, nil)
	}
	return nil
}

// openLayers reads a configuration, prints its diagnostics, and makes the layers of a
// selection.
func openLayers(cmd *cobra.Command, dir string, sel compiler.Selection) (*compiler.Project, []compiler.Layer, error) {
	p, err := openProject(cmd, dir)
	if err != nil {
		return nil, nil, err
	}
	layers := p.Layers(sel)
	if err := showProject(cmd, dir, p); err != nil {
		return nil, nil, err
	}
	return p, layers, nil
}

// reportConflicts reports the files that stop a build.
func reportConflicts(c *tree.Comparison, force bool) *diag.Report {
	report := &diag.Report{}
	for _, k := range c.Conflicts {
		d := diag.Diagnostic{ID: "YT0301", Severity: diag.Error, Message: k.Error() + " in " + c.Out,
			Help: "move it away, or build into another folder"}
		if force && (errors.Is(k, tree.ErrEdited) || errors.Is(k, tree.ErrOccupied)) {
			continue
		}
		switch {
		case errors.Is(k, tree.ErrOccupied):
			d.Message = fmt.Sprintf("%s: %v: it has %s", c.Out, tree.ErrOccupied, k.Path)
			d.Help = "build into another folder; --force adds the layer to this one"
		case errors.Is(k, tree.ErrEdited):
			d.ID, d.Help = "YT0302", "bring the change into the configuration; --force overwrites the file"
			if errors.Is(k, tree.ErrDamaged) {
				d.Help = "restore the file, for example from version control; --force writes it again"
			}
		}
		report.Add(d)
	}
	return report
}

// writeFolder writes a layer to its folder, unless there are conflicts.
func writeFolder(cmd *cobra.Command, c *tree.Comparison, force bool) error {
	report := reportConflicts(c, force)
	if report.Failed() {
		if err := showReport(cmd, "", report, nil); err != nil {
			return err
		}
		return cli.AlreadyReported()
	}
	// An interrupt while files are written completes or undoes the write; at any other
	// time it ends the program.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.Write(ctx, force); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: nothing was written to %s", c.Out)
		}
		return err
	}
	return nil
}

// explainDifferences prints what the differences mean for the devices. A folder that
// cannot be read as a layer, for example because its plan was edited, still has a diff.
func explainDifferences(cmd *cobra.Command, dir string, l compiler.Layer, c *tree.Comparison) error {
	if c.Clean() {
		return nil
	}
	r, err := review.Compare(earlierSide(c), sideOf(l, "the configuration"), false)
	if err != nil {
		cli.Warn(cmd, "the layer cannot be reviewed: %v; only the differences of its files are shown", err)
		return nil
	}
	if r.Clean() {
		return nil // modes or the manifest differ
	}
	r.Folder = pathFromCurrentDir(dir)
	w := cli.NewPrinter(cmd)
	if w.JSON {
		return r.WriteChangesJSON(w)
	}
	err = r.WriteText(w, cli.Colour(w))
	fmt.Fprintln(w)
	return err
}

func showDifferences(p cli.Printer, c *tree.Comparison) {
	before := findReplaced(c.Actions)
	for _, a := range c.Actions {
		if role, ok := yoctuned.ContainedFile(a.Path); ok && a.Kind == tree.Remove && before[role].replaced {
			continue // shown with the file that replaces it
		}
		diff := formatDifferences(c.Out, a, before)
		switch {
		case p.JSON:
			p.Line("difference", struct {
				Action tree.Kind `json:"action"`
				Path   string    `json:"path"`
				Diff   string    `json:"diff"`
			}{a.Kind, a.Path, diff})
		case a.Path != manifest.Name: // the manifest only repeats the files that it lists
			showDiff(p, diff)
		}
	}
}

// earlier is a file of the runtime in another version.
type earlier struct {
	tree.Action
	replaced bool
}

// findReplaced finds the files of the runtime that go because those of another version come,
// by their roles.
func findReplaced(actions []tree.Action) map[string]earlier {
	out := map[string]earlier{}
	for _, kind := range []tree.Kind{tree.Remove, tree.Add} {
		for _, a := range actions {
			role, ok := yoctuned.ContainedFile(a.Path)
			switch e, gone := out[role]; {
			case !ok || a.Kind != kind:
			case kind == tree.Remove:
				out[role] = earlier{Action: a}
			case gone:
				e.replaced = true
				out[role] = e
			}
		}
	}
	return out
}

// formatDifferences writes the difference of one file. A file of the runtime takes one line.
func formatDifferences(out string, a tree.Action, before map[string]earlier) string {
	from, to := filepath.Join(out, a.Path), filepath.Join(out, a.Path)
	switch a.Kind {
	case tree.Add:
		from = ""
	case tree.Remove:
		to = ""
	}
	role, contained := yoctuned.ContainedFile(a.Path)
	if e := before[role]; contained && e.replaced {
		return review.SummaryDiff(e.Was, a.Now, filepath.Join(out, e.Path), to)
	}
	if contained && !bytes.Equal(a.Was, a.Now) {
		return review.SummaryDiff(a.Was, a.Now, from, to)
	}
	if d := review.UnifiedDiff(a.Was, a.Now, from, to); d != "" {
		return d
	}
	return fmt.Sprintf("--- %s\n+++ %s\n", from, to) // the mode differs, or the file is empty
}

// buildSummary is what a build did.
type buildSummary struct {
	Layer   string `json:"layer"`
	Release string `json:"release"`
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Changed int    `json:"changed"`
	Removed int    `json:"removed"`
	Targets int    `json:"targets"`
	Modes   int    `json:"modes"`
	Setting int    `json:"settings"`
	// Targets whose plan their device refuses until it is signed, and signatures
	// that went because their plan changed.
	Unsigned []string `json:"unsigned,omitempty"`
	Stale    []string `json:"signatures_removed,omitempty"`
	problems
	Millis int64 `json:"milliseconds"`

	keys bool // the layer has keys
}

// findUnsigned finds the plans of a layer with keys that none of its keys signed.
func (s *buildSummary) findUnsigned(out string) error {
	if !s.keys {
		return nil
	}
	plans, err := sign.Find(out)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if _, err := p.Verify(nil); err != nil {
			s.Unsigned = append(s.Unsigned, p.Doc.Target)
		}
	}
	return nil
}

func summarise(l compiler.Layer, c *tree.Comparison, p *compiler.Project, duration time.Duration) buildSummary {
	s := buildSummary{
		Layer: l.Name, Release: l.Release, Files: len(l.Files), Targets: len(l.Targets),
		problems: problemsOf(p.Report), Millis: duration.Milliseconds(), keys: len(l.Runtime.Keys) > 0,
	}
	for _, t := range l.Targets {
		s.Setting += len(t.Plan.Settings)
		if t.Plan.Power != nil {
			s.Modes += len(t.Plan.Power.Modes)
		}
	}
	n := map[tree.Kind]int{}
	for _, a := range c.Actions {
		if strings.HasSuffix(a.Path, signature.Extension) {
			s.Stale = append(s.Stale, a.Path)
		} else if a.Path != manifest.Name {
			n[a.Kind]++
		}
	}
	s.Added, s.Changed, s.Removed = n[tree.Add], n[tree.Change], n[tree.Remove]
	return s
}

func (s buildSummary) text(out string) string {
	text := fmt.Sprintf("%s: layer %s for %s: %s (%d added, %d changed, %d removed), %s, %s, %s, %s in %d ms",
		out, s.Layer, s.Release, count(s.Files, "file"), s.Added, s.Changed, s.Removed,
		count(s.Targets, "target"), count(s.Modes, "power mode"), count(s.Setting, "setting"), count(s.Warnings, "warning"), s.Millis)
	if len(s.Stale) > 0 {
		text += "\nremoved the signatures of changed plans: " + strings.Join(s.Stale, ", ")
	}
	if len(s.Unsigned) > 0 {
		text += "\nunsigned plans, which the devices refuse: " + strings.Join(s.Unsigned, ", ") + "; sign them with: yoctune sign " + out + " --key FILE"
	}
	return text
}
