package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// profiler is a program that runs another and records it.
type profiler struct {
	name    string
	what    string // it records
	ending  string // of its files
	args    func(file string) []string
	install string
}

func profilers() []profiler {
	return []profiler{
		{
			"nsys", "CUDA calls, kernels, copies and the stages of pipelines (NVTX)", ".nsys-rep",
			func(file string) []string { return []string{"profile", "--trace=cuda,nvtx,osrt", "--output=" + file} },
			"NVIDIA's nsight-systems-cli, a package of JetPack and a recipe of meta-tegra (packages, in the configuration of the layer)",
		},
		{
			"ncu", "what each kernel does with the GPU, each run several times", ".ncu-rep",
			func(file string) []string { return []string{"--nvtx", "--export", file} },
			"NVIDIA's nsight-compute, a package of JetPack and part of CUDA's toolkit",
		},
		{
			"perf", "where the processors' time goes", ".perf.data",
			func(file string) []string { return []string{"record", "-g", "--output=" + file, "--"} },
			"perf of the running kernel: tools: perf: true in the configuration of the layer, or Debian's linux-perf",
		},
	}
}

// auto is what runs a program as fast as it is; ncu does not, and must be named.
func auto() []string { return []string{"nsys", "perf"} }

func newProfileCommand() *cobra.Command {
	var tool, output string
	cmd := &cobra.Command{
		Use:   "profile [flags] -- COMMAND [ARG...]",
		Short: "Run a command under nsys, ncu or perf, where they are installed",
		Long: `profile becomes the profiler, which runs the command and writes what it recorded to
a new file:

  nsys  CUDA calls, kernels, copies and the stages of pipelines (NVTX)
  ncu   what each kernel does with the GPU; it runs each several times, slowly
  perf  where the processors' time goes

Without --tool it is nsys, or perf where that is not installed. pipeline run marks its
stages for nsys and ncu when libnvToolsExt is there (YOCTUNE_NVTX_LIBRARY names
another file). What a pipeline records of itself needs no profiler: pipeline run
--trace, and pipeline top.

Exit codes: the profiler's, which is the command's · 1 there is no profiler, or the
file exists · 2 usage.`,
		Example: `  yoctuned profile -- yoctuned pipeline run plan.json labels --frames 300
  yoctuned profile --tool perf -o run1 -- yoctuned pipeline run plan.json labels`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 {
				return usage(errors.New("the command comes after --"))
			}
			p, program, err := findProfiler(tool)
			if err != nil {
				return err
			}
			command, err := exec.LookPath(args[0])
			if err != nil {
				return fmt.Errorf("profile: %w", err)
			}
			name := strings.TrimSuffix(output, p.ending)
			file := name
			if p.name == "perf" { // the others add it themselves
				file += p.ending
			}
			if _, err := os.Lstat(name + p.ending); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("profile: %s is there already: remove it, or name another with -o", name+p.ending)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "yoctuned: %s records %s in %s\n", p.name, p.what, printable(name+p.ending))
			argv := slices.Concat([]string{program}, p.args(file), []string{command}, args[1:])
			if err := unix.Exec(program, argv, os.Environ()); err != nil {
				return fmt.Errorf("profile: start %s: %w", program, err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&tool, "tool", "auto", "`PROFILER`: auto, nsys, ncu or perf")
	cmd.Flags().StringVarP(&output, "output", "o", "profile", "`FILE` to write, without its ending")
	_ = cmd.RegisterFlagCompletionFunc("tool", cobra.FixedCompletions([]string{"auto", "nsys", "ncu", "perf"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// findProfiler finds the one that is asked for.
func findProfiler(tool string) (profiler, string, error) {
	wanted := []string{tool}
	if tool == "auto" {
		wanted = auto()
	}
	var missing []string
	known := false
	for _, name := range wanted {
		for _, p := range profilers() {
			if p.name != name {
				continue
			}
			known = true
			if program, err := exec.LookPath(name); err == nil {
				return p, program, nil
			}
			missing = append(missing, fmt.Sprintf("%s is not installed: %s", name, p.install))
		}
	}
	if !known {
		return profiler{}, "", usage(fmt.Errorf("--tool is auto, nsys, ncu or perf, not %q", tool))
	}
	return profiler{}, "", fmt.Errorf("profile: %s", strings.Join(missing, "; "))
}
