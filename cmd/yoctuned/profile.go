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

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
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
			"ncu", "the GPU use of each kernel, running each several times", ".ncu-rep",
			func(file string) []string { return []string{"--nvtx", "--export", file} },
			"NVIDIA's nsight-compute, a package of JetPack and part of CUDA's toolkit",
		},
		{
			"perf", "the CPU time by function", ".perf.data",
			func(file string) []string { return []string{"record", "-g", "--output=" + file, "--"} },
			"perf of the running kernel: tools: perf: true in the configuration of the layer, or Debian's linux-perf",
		},
	}
}

// autoProfilers are the profilers that hardly slow a program down. ncu does, and must be
// chosen explicitly.
func autoProfilers() []string { return []string{"nsys", "perf"} }

func newProfileCommand() *cobra.Command {
	var tool, output string
	cmd := &cobra.Command{
		Use:   "profile [flags] -- COMMAND [ARG...]",
		Short: "Run a command under nsys, ncu or perf",
		Long: `Run a command under a profiler, which writes its recording to a new file:
  nsys  CUDA calls, kernels, copies and the stages of pipelines (NVTX)
  ncu   the GPU use of each kernel; it runs each kernel several times, slowly
  perf  the CPU time by function
The default is nsys if it is installed, else perf.

"yoctuned pipeline run" marks its stages for nsys and ncu if libnvToolsExt is installed
($YOCTUNE_NVTX_LIBRARY names another file). Traces of pipelines need no profiler: see
"yoctuned pipeline run --trace" and "yoctuned pipeline top".

Exit status: that of the profiler, which is the command's, 1 no profiler is installed, or
the file exists, 2 wrong usage.`,
		Example: `  yoctuned profile -- yoctuned pipeline run plan.json labels --frames 300
  yoctuned profile --tool perf -o run1 -- yoctuned pipeline run plan.json labels`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 {
				return cli.UsageError(errors.New("write the command after --"))
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
				return fmt.Errorf("profile: %s already exists; remove it, or choose another name with -o", name+p.ending)
			}
			printable.Fprintf(cmd.ErrOrStderr(), "yoctuned: %s records %s in %s\n", p.name, p.what, name+p.ending)
			argv := slices.Concat([]string{program}, p.args(file), []string{command}, args[1:])
			if err := unix.Exec(program, argv, os.Environ()); err != nil {
				return fmt.Errorf("profile: start %s: %w", program, err)
			}
			return nil
		},
	}
	cli.ChoiceVar(cmd, &tool, "tool", "auto", "`PROFILER` to use", "auto", "nsys", "ncu", "perf")
	cmd.Flags().StringVarP(&output, "output", "o", "profile", "`FILE` to write, without its extension")
	return cmd
}

// findProfiler finds the program of a profiler; auto is the first that is installed.
func findProfiler(tool string) (profiler, string, error) {
	wanted := []string{tool}
	if tool == "auto" {
		wanted = autoProfilers()
	}
	var missing []string
	for _, name := range wanted {
		for _, p := range profilers() {
			if p.name != name {
				continue
			}

			if program, err := exec.LookPath(name); err == nil {
				return p, program, nil
			}
			missing = append(missing, fmt.Sprintf("%s is not installed: %s", name, p.install))
		}
	}

	return profiler{}, "", fmt.Errorf("profile: %s", strings.Join(missing, "; "))
}
