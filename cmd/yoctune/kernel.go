package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// newKernelCommand returns `yoctune kernel`.
func newKernelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kernel",
		Short: "Predict the kernel configuration that a fragment results in",
		Long: `Predict which options of a configuration fragment Kconfig keeps, for the kernels of the
meta-tegra branches or for your own source.`,
		Example: `  yoctune kernel predict --kernel 5.15 tuning.cfg
  yoctune kernel index linux-custom -o custom.kidx`,
	}
	cmd.AddCommand(newKernelPredictCommand(), newKernelIndexCommand())
	return cmd
}

func newKernelPredictCommand() *cobra.Command {
	var o predictOptions
	cmd := &cobra.Command{
		Use:   "predict --kernel K FRAGMENT...",
		Short: "Predict the value of each symbol in a fragment",
		Long: fmt.Sprintf(`Evaluate a kernel's Kconfig with fragments merged over its base configuration, as
merge_config.sh and kernel-yocto do. For each requested symbol, show the value that the
kernel will have, the reason, and which lines to add. A fragment can be - for standard
input.

--kernel is one of %s, or a file that
"yoctune kernel index" wrote for your own kernel. --base is the configuration to start
from, a defconfig or .config; the default is that of the recipe.

Exit status: 0 every requested value is kept, 1 the request is wrong, 3 a value is not
kept.`, kernel.Names()),
		Example: `  yoctune kernel predict --kernel 5.15 tuning.cfg
  yoctune kernel predict --kernel my.kidx --base .config --format json tuning.cfg
  echo CONFIG_TCP_CONG_BBR=y | yoctune kernel predict --kernel 6.8 -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.fragments = args
			if o.fix && args[len(args)-1] == "-" {
				return cli.UsageError(errors.New("--fix cannot write to standard input (-); put the fragment in a file"))
			}
			if i := slices.Index(args, "-"); i >= 0 && slices.Contains(args[i+1:], "-") {
				return cli.UsageError(errStdinTwice)
			}
			// --fix reads the fragments again.
			stdin := sync.OnceValues(func() ([]byte, error) { return io.ReadAll(cmd.InOrStdin()) })
			o.read = func(name string) ([]byte, error) {
				if name == "-" {
					return stdin()
				}
				return infile.Read(name, maxFragment)
			}
			return predict(cli.NewPrinter(cmd), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.kernel, "kernel", "", "`K`: version of a kernel, or a file that 'yoctune kernel index' wrote")
	f.StringVar(&o.base, "base", "", "`FILE` to start from instead of the recipe's defconfig")
	f.BoolVar(&o.fix, "fix", false, "append the missing lines to the last fragment")
	cobra.CheckErr(cmd.MarkFlagRequired("kernel"))
	return cmd
}

// maxFragment bounds a fragment or base configuration, in bytes; a whole .config has 300 KiB.
const maxFragment = 8 << 20

type predictOptions struct {
	kernel, base string
	fragments    []string
	fix          bool
	read         func(name string) ([]byte, error)
}

func predict(w cli.Printer, o predictOptions) error {
	facts, err := openKernelFacts(o.kernel)
	if err != nil {
		return err
	}
	if o.base != "" {
		base, problems, err := o.readFragment(o.base)
		if err != nil {
			return err
		}
		own := *facts
		if len(base.Lines) == 0 && len(problems) > 0 {
			return fmt.Errorf("--base %s: the file has no line of a kernel configuration", o.base)
		}
		own.Base = base
		own.Set.Base = o.base
		facts = &own
	}
	configs, problems, err := o.readFragments()
	if err != nil {
		return err
	}
	rep := facts.PredictFragments(configs...)
	if o.fix && len(rep.Fix) > 0 {
		last := o.fragments[len(o.fragments)-1]
		if err := appendLines(last, rep.Fix); err != nil {
			return err
		}
		if configs, problems, err = o.readFragments(); err != nil {
			return err
		}
		rep = facts.PredictFragments(configs...)
	}
	if w.JSON {
		writePredictionsJSON(w, facts, rep, problems)
	} else {
		writePredictions(w, facts, rep, problems)
	}
	return cli.Answer(rep.AllKept() && !slices.ContainsFunc(problems, func(p kconfig.Problem) bool { return p.Ignored }))
}

// openKernelFacts opens embedded facts by name, or an index by its file name.
func openKernelFacts(name string) (*kconfig.Facts, error) {
	facts, err := kconfig.Open(name)
	if !errors.Is(err, kernel.ErrUnknown) {
		return facts, err
	}
	facts, err = kconfig.OpenIndex(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("neither one of %s nor a file that `yoctune kernel index` wrote", kernel.Names())
	}
	if err != nil {
		return nil, fmt.Errorf("--kernel %s: %w", name, err)
	}
	return facts, nil
}

func (o predictOptions) readFragment(path string) (*kconfig.Config, []kconfig.Problem, error) {
	data, err := o.read(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if path == "-" {
		path = "stdin"
	}
	c, problems := kconfig.ReadFragment(path, data)
	return c, problems, nil
}

func (o predictOptions) readFragments() (configs []*kconfig.Config, problems []kconfig.Problem, err error) {
	for _, p := range o.fragments {
		c, ps, err := o.readFragment(p)
		if err != nil {
			return nil, nil, err
		}
		configs = append(configs, c)
		problems = append(problems, ps...)
	}
	return configs, append(problems, kconfig.Contradictions(configs...)...), nil
}

// appendLines adds lines to a fragment; the file is replaced at once.
func appendLines(path string, lines []kconfig.Line) error {
	data, err := infile.Read(path, maxFragment)
	if err != nil {
		return fmt.Errorf("--fix: %w", err)
	}
	var b strings.Builder
	b.Write(data)
	if len(data) > 0 && data[len(data)-1] != '\n' {
		b.WriteByte('\n')
	}
	for _, l := range lines {
		b.WriteString(l.String() + "\n")
	}
	if err := outfile.Write(path, []byte(b.String())); err != nil {
		return fmt.Errorf("--fix: %w", err)
	}
	return nil
}

type outcomeCounts struct {
	Requested int `json:"requested"`
	Kept      int `json:"kept"`
	Changed   int `json:"changed"`
	Lost      int `json:"lost"`
	Unknown   int `json:"unknown"`
}

func countOutcomes(ps []kconfig.Prediction) outcomeCounts {
	n := map[kconfig.Outcome]int{}
	for _, p := range ps {
		n[p.Outcome]++
	}
	return outcomeCounts{len(ps), n[kconfig.Kept], n[kconfig.Changed], n[kconfig.Lost], n[kconfig.Unknown]}
}

// writePredictionsJSON writes an object for each requested symbol, and last a
// summary that also holds what is about no single symbol.
func writePredictionsJSON(w cli.Printer, f *kconfig.Facts, rep *kconfig.Report, problems []kconfig.Problem) {
	for _, p := range rep.Predictions {
		w.Line("symbol", p)
	}
	summary := struct {
		Kernel  string `json:"kernel"`
		Release string `json:"release"`
		Facts   string `json:"facts"`
		Source  string `json:"source"`
		Base    string `json:"base"`
		outcomeCounts
		Effects  []kconfig.Effect  `json:"effects"`
		Problems []kconfig.Problem `json:"problems"`
		Fix      []string          `json:"fix"`
		FixKept  int               `json:"fix_kept"`
	}{
		Kernel: f.Set.Name, Release: f.Set.Release, Facts: f.Set.Exactness.String(), Source: f.Set.Source, Base: f.Set.Base,
		outcomeCounts: countOutcomes(rep.Predictions), Effects: append([]kconfig.Effect{}, rep.Effects...), Problems: append([]kconfig.Problem{}, problems...), Fix: []string{}, FixKept: rep.FixKept,
	}
	for _, l := range rep.Fix {
		summary.Fix = append(summary.Fix, l.String())
	}
	w.Line("summary", summary)
}

func writePredictions(w io.Writer, f *kconfig.Facts, rep *kconfig.Report, problems []kconfig.Problem) {
	fmt.Fprintf(w, "kernel %s, %s\nfacts  %s: %s\n", f.Set.Name, f.Set.Base, f.Set.Exactness, f.Set.Source)
	if f.Set.Caveat != "" {
		fmt.Fprintf(w, "       %s\n", f.Set.Caveat)
	}
	fmt.Fprintln(w)
	for _, p := range problems {
		fmt.Fprintln(w, p.Error())
	}
	for _, p := range rep.Predictions {
		request := kconfig.Line{Symbol: p.Symbol, Value: p.Wanted}
		fmt.Fprintf(w, "%-8s %s", p.Outcome, request)
		if p.Outcome == kconfig.Kept {
			if p.Note != "" {
				fmt.Fprintf(w, "   (%s)", p.Note)
			}
			fmt.Fprintln(w)
			continue
		}
		got := "not in .config"
		if p.Got != nil {
			got = "will be " + *p.Got
		}
		fmt.Fprintf(w, "   %s:%d\n         %s: %s\n", p.File, p.Line, got, p.Cause)
		for i, l := range p.Fix {
			lead := "         add "
			if i > 0 {
				lead = "             "
			}
			fmt.Fprintf(w, "%s%s\n", lead, l)
		}
	}
	if len(rep.Effects) > 0 {
		fmt.Fprintln(w, "\nSide effects on other symbols:")
		for _, e := range rep.Effects {
			after := e.After
			if after == "" {
				after = "not in .config"
			}
			fmt.Fprintf(w, "  %s: %s, was %s: %s\n", e.Symbol, after, e.Before, e.Cause)
		}
	}
	c := countOutcomes(rep.Predictions)
	fmt.Fprintf(w, "\n%d requested: %d kept, %d changed, %d lost, %d unknown", c.Requested, c.Kept, c.Changed, c.Lost, c.Unknown)
	if len(rep.Fix) > 0 {
		fmt.Fprintf(w, "; %d kept with these lines added (--fix):", rep.FixKept)
		for _, l := range rep.Fix {
			fmt.Fprintf(w, "\n  %s", l)
		}
	}
	fmt.Fprintln(w)
}

func newKernelIndexCommand() *cobra.Command {
	var o indexOptions
	runProbes, noCache := false, false
	cmd := &cobra.Command{
		Use:   "index SRC -o FILE",
		Short: "Index the Kconfig files of your own kernel source",
		Long: `Read the Kconfig files of an unpacked kernel source and write an index, so that "yoctune
kernel predict" is exact for a vendor kernel, linux-yocto or your own patches. For a
recipe, SRC is its ${S} after do_patch.

Nothing in the source is executed: compiler probes are answered from the declared
compiler version, unless --run-probes is given. The index includes the base
configuration: that of --base, else tegra_defconfig or defconfig of the source.

Indexes are cached in $XDG_CACHE_HOME/yoctune/index, with the digests of the files that
they came from, and reused while those files stay the same.`,
		Example: `  yoctune kernel index build/tmp/work-shared/jetson-orin-nano-devkit/kernel-source -o my.kidx
  yoctune kernel index linux-4.9 --overlay nvidia --overlay nvgpu -o r32.kidx`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if runProbes {
				o.Shell = kconfig.RunShell
			}
			if dir, err := os.UserCacheDir(); err == nil && !noCache {
				o.Cache.Dir = filepath.Join(dir, "yoctune", "index")
			}
			o.Source = args[0]
			return writeIndex(cli.NewPrinter(cmd), o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "output", "o", "", "`FILE` to write")
	f.StringVar(&o.Base, "base", "", "`FILE` with the base configuration: a defconfig or .config")
	f.StringVar(&o.Name, "name", "", "`NAME` of the index (default: the kernel's version)")
	f.StringVar(&o.Arch, "arch", "arm64", "`ARCH` of the kernel build")
	f.StringArrayVar(&o.Overlays, "overlay", nil, "`DIR` tree of KERNEL_OVERLAYS (L4T r32 and r35); may be repeated, in order")
	f.StringVar(&o.Toolchain.GCC, "gcc", "", "`VERSION` of gcc to assume (default: 12.2.0)")
	f.StringVar(&o.Toolchain.Binutils, "binutils", "", "`VERSION` of binutils to assume (default: 2.40)")
	f.BoolVar(&runProbes, "run-probes", false, "run the compiler probes of the source; this executes commands from it")
	f.BoolVar(&noCache, "no-cache", false, "neither use nor write the cache")
	cobra.CheckErr(cmd.MarkFlagRequired("output"))
	return cmd
}

// indexOptions are the flags and the argument of kernel index.
type indexOptions struct {
	kconfig.IndexRequest
	out string
}

func writeIndex(w cli.Printer, o indexOptions) error {
	x, cached, err := o.Build()
	if err != nil {
		return fmt.Errorf("kernel index: %w", err)
	}
	if err := outfile.Write(o.out, x.Data); err != nil {
		return fmt.Errorf("kernel index: %w", err)
	}
	if w.JSON {
		w.Line("summary", struct {
			Release  string   `json:"release"`
			Files    int      `json:"files"`
			Symbols  int      `json:"symbols"`
			Choices  int      `json:"choices"`
			Base     string   `json:"base"`
			Lines    int      `json:"base_lines"`
			Warnings []string `json:"warnings"`
			Assumed  []string `json:"assumed"`
			Output   string   `json:"output"`
			Cached   bool     `json:"cached"`
		}{x.Release, x.Files, x.Symbols, x.Choices, x.Base, x.BaseLines, append([]string{}, x.Warnings...), append([]string{}, x.Assumed...), o.out, cached})
		return nil
	}
	for _, p := range x.Warnings {
		fmt.Fprintln(w, p)
	}
	fmt.Fprintf(w, "kernel %s: %d Kconfig files, %d symbols, %d choices; base %s with %d lines\n",
		x.Release, x.Files, x.Symbols, x.Choices, x.Base, x.BaseLines)
	if len(x.Assumed) > 0 {
		fmt.Fprintf(w, "%d compiler probes are assumed to succeed (--format json lists them, --run-probes runs them)\n", len(x.Assumed))
	}
	if cached {
		fmt.Fprintln(w, "the source did not change; the index is from the cache")
	}
	fmt.Fprintf(w, "wrote %s\n", o.out)
	return nil
}
