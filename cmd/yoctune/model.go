package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/models"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/flattar"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/schema/formats/evidence"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/units"
)

func newModelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Make the models of a configuration smaller or faster, and judge what that costs",
		Long: `Make candidates of a model, measure them on the device that will run them, and keep the
fastest that is accurate enough. The judgement is a file beside the model, the evidence;
'yoctune vet' and 'build' refuse a model whose evidence is missing or of another device,
runtime or model.`,
		Example: `  yoctune model setup
  yoctune model optimise meta-camera --target cam --on root@192.0.2.7
  yoctune model show meta-camera --target cam`,
	}
	cmd.AddCommand(newModelSetupCommand(), newModelOptimiseCommand(), newModelJudgeCommand(), newModelShowCommand())
	return cmd
}

// environment is the Python environment of the user.
func environment() (models.Environment, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return models.Environment{}, fmt.Errorf("no folder for the Python environment: %w", err)
	}
	return models.FindEnvironment(filepath.Join(cache, "yoctune")), nil
}

func newModelSetupCommand() *cobra.Command {
	var python string
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Install the Python libraries that make candidates",
		Long: `Make a Python environment in the user's cache folder and install the libraries that make
candidates: onnx, onnxruntime, onnxslim, numpy and what they need, in pinned versions and
by their digests. It takes about 300 MiB. No other command uses the network.

Exit status: 0 it is set up, 1 failed, 2 wrong usage.`,
		Example: "  yoctune model setup\n  yoctune model setup --python python3.12",
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := environment()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if err := env.SetUp(ctx, python, cmd.ErrOrStderr()); err != nil {
				return err
			}
			p := cli.NewPrinter(cmd)
			if p.JSON {
				p.Summary("model setup", struct {
					Folder string `json:"folder"`
				}{env.Dir()})
			} else {
				p.Printf("the Python environment is in %s\n", env.Dir())
			}
			return p.Err()
		},
	}
	cmd.Flags().StringVar(&python, "python", "python3", "`PROGRAM` of Python 3.11 or later")
	return cmd
}

// modelFlags choose models of a configuration.
type modelFlags struct{ target, model string }

func (f *modelFlags) add(cmd *cobra.Command) {
	addVariableFlag(cmd)
	cmd.Flags().StringVar(&f.target, "target", "", "`TARGET` whose models to take (default: the only one)")
	cmd.Flags().StringVar(&f.model, "model", "", "`MODEL` to take (default: every one with candidates)")
}

// jobs opens the configuration. Making evidence does not need it to exist.
func (f *modelFlags) jobs(cmd *cobra.Command, dir string) ([]models.Job, error) {
	p, err := openProject(cmd, dir)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(p.Report.All(), func(d diag.Diagnostic) bool { return d.Severity == diag.Error && d.ID != "model-evidence" }) {
		if err := showProject(cmd, dir, p); err != nil {
			return nil, err
		}
		return nil, cli.AlreadyReported()
	}
	t, err := f.findTarget(p)
	if err != nil {
		return nil, err
	}
	return models.Jobs(dir, t, f.model)
}

func (f *modelFlags) findTarget(p *compiler.Project) (*resolve.Target, error) {
	var names []string
	for _, t := range p.Targets {
		if t.Name == f.target || f.target == "" && len(p.Targets) == 1 {
			return t, nil
		}
		names = append(names, t.Name)
	}
	if f.target == "" {
		return nil, cli.UsageError(fmt.Errorf("choose a target with --target: %s", strings.Join(names, ", ")))
	}
	return nil, fmt.Errorf("no target is called %q; the configuration has %s", f.target, strings.Join(names, ", "))
}

func newModelOptimiseCommand() *cobra.Command {
	var f modelFlags
	var on, program, library, prepare string
	effort := models.Effort{}
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "optimise [DIR]",
		Short: "Make candidates of models, measure them and keep the best that is accepted",
		Long: `For each model with 'optimise', make the candidates, measure them beside the original with
'yoctuned bench model' on the device, and judge them by 'accept'. The fastest accepted
candidate and the evidence are written beside the model; without one the original stays,
and the reason is printed.

The device is this machine, or with --on a host that ssh reaches and that has yoctuned;
ssh asks for nothing, so that the host's key must be known and the login need no password.
With --prepare nothing is measured: FILE is an archive that 'yoctuned bench model
--archive' takes on a device that is out of reach, and 'yoctune model judge' judges the
signed record that it writes.

A candidate is accepted only if, with 95 percent confidence and at every batch size of the
stages, it loses at most maxLoss, is minSpeedup times as fast, and keeps to maxMemory.

Exit status: 0 judged, whether or not a candidate was accepted, 1 failed, 2 wrong usage.`,
		Example: `  yoctune model optimise meta-camera --target cam --on root@192.0.2.7
  yoctune model optimise meta-camera --target cam --model reader --prepare request.tar`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := configurationFolder(args)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			jobs, err := f.jobs(cmd, dir)
			if err != nil {
				return err
			}
			if prepare != "" && len(jobs) != 1 {
				return cli.UsageError(errors.New("--prepare takes one model: choose it with --model"))
			}
			env, err := environment()
			if err != nil {
				return err
			}
			if !env.Ready() {
				return models.ErrNoEnvironment
			}
			d := models.Device{Host: on, Program: program, Library: library, Other: env.Library()}
			if cmd.Flags().Changed("on") {
				if err := models.CheckHost(on); err != nil {
					return cli.UsageError(fmt.Errorf("--on: %w", err))
				}
			}
			if on == "" && prepare == "" {
				if d.Program, err = findYoctuned(program); err != nil {
					return err
				}
			}
			effort.Limit = limit
			for i := range jobs {
				if err := optimise(ctx, cmd, &jobs[i], env, d, effort, prepare); err != nil {
					return fmt.Errorf("model %s: %w", jobs[i].Model.Key(), err)
				}
			}
			return nil
		},
	}
	f.add(cmd)
	s := cmd.Flags()
	s.StringVar(&on, "on", "", "`HOST` to measure on through ssh, with a user and a port as in ssh://root@192.0.2.7:22 (default: this machine)")
	s.StringVar(&program, "yoctuned", "", "`PROGRAM` yoctuned on the device (default: in PATH; on this machine also beside yoctune)")
	s.StringVar(&library, "library", "", "`FILE` of the ONNX Runtime library on the device (default: the installed one)")
	s.StringVar(&prepare, "prepare", "", "`FILE` to write the request to, instead of measuring")
	s.IntVar(&effort.Rounds, "rounds", 20, "`N` rounds of measurement")
	s.IntVar(&effort.Runs, "runs", 10, "`N` runs of each model in a round")
	s.DurationVar(&limit, "limit", 10*time.Minute, "`TIME` limit of making a candidate, and of each step of its measurement")
	for _, other := range []string{"on", "yoctuned", "library"} { // nothing is measured
		cmd.MarkFlagsMutuallyExclusive("prepare", other)
	}
	return cmd
}

// findYoctuned returns the program that measures on this machine.
func findYoctuned(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), "yoctuned")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath("yoctuned")
	if err != nil {
		return "", errors.New("yoctuned, which measures models, is neither beside yoctune nor in PATH: name it with --yoctuned, or a device with --on")
	}
	return path, nil
}

func optimise(ctx context.Context, cmd *cobra.Command, j *models.Job, env models.Environment, d models.Device, effort models.Effort, prepare string) error {
	work, err := os.MkdirTemp("", "yoctune-model-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	report := func(candidate, text string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s: %s\n", j.Model.Key(), candidate, text)
	}
	made, err := j.Make(ctx, env, work, effort.Limit, report)
	if err != nil {
		return err
	}
	if _, err := j.Request(work, made, effort); err != nil {
		return err
	}
	p := cli.NewPrinter(cmd)
	if prepare != "" {
		if err := writeArchive(work, prepare); err != nil {
			return err
		}
		if p.JSON {
			p.Summary("model optimise", struct {
				Request string `json:"request"`
			}{prepare})
		} else {
			p.Printf("%s: run on the device: yoctuned bench model --archive -o measured.json --sign < %s\n", prepare, filepath.Base(prepare))
		}
		return p.Err()
	}
	data, err := d.Measure(ctx, work, report)
	if err != nil {
		return err
	}
	e, err := j.Judge(work, data, d.By())
	if err != nil {
		return err
	}
	return showEvidence(p, "model optimise", evidence.Path(j.Model.Source.Text, j.Target.Name), e)
}

func writeArchive(work, name string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".request-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(flattar.Pack(work, f), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func newModelJudgeCommand() *cobra.Command {
	var f modelFlags
	var record, request, key string
	cmd := &cobra.Command{
		Use:   "judge [DIR] --model MODEL --request FILE --record FILE --device-key KEY",
		Short: "Judge a record that a device made and signed",
		Long: `Judge the record of a measurement that was carried by hand: the request of 'yoctune model
optimise --prepare', the record that 'yoctuned bench model --archive --sign' made of it on
the device, and beside the record its signature. The device's public key is what
'yoctuned keygen' printed there. A record without a valid signature is refused.

Exit status: 0 judged, 1 failed or refused, 2 wrong usage.`,
		Example: `  yoctune model judge meta-camera --target cam --model reader --request request.tar --record measured.json --device-key device.pub`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := configurationFolder(args)
			if err != nil {
				return err
			}
			by, data, err := readRecord(record, key)
			if err != nil {
				return err
			}
			jobs, err := f.jobs(cmd, dir)
			if err != nil {
				return err
			}
			if len(jobs) != 1 {
				return cli.UsageError(errors.New("a record is of one model: choose it with --model"))
			}
			work, err := os.MkdirTemp("", "yoctune-model-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(work)
			archive, err := os.Open(request)
			if err != nil {
				return err
			}
			defer archive.Close()
			if err := flattar.Unpack(archive, work); err != nil {
				return fmt.Errorf("%s: %w", request, err)
			}
			e, err := jobs[0].Judge(work, data, by)
			if err != nil {
				return err
			}
			return showEvidence(cli.NewPrinter(cmd), "model judge", evidence.Path(jobs[0].Model.Source.Text, jobs[0].Target.Name), e)
		},
	}
	f.add(cmd)
	s := cmd.Flags()
	s.StringVar(&request, "request", "", "`FILE` that --prepare wrote")
	s.StringVar(&record, "record", "", "`FILE` with the record")
	s.StringVar(&key, "device-key", "", "`KEY` of the device: a file, or the public key itself")
	for _, name := range []string{"request", "record", "device-key"} {
		cobra.CheckErr(cmd.MarkFlagRequired(name))
	}
	return cmd
}

// readRecord reads a record and verifies its signature.
func readRecord(name, key string) (by string, data []byte, err error) {
	k, err := publicKey(key)
	if err != nil {
		return "", nil, err
	}
	if data, err = infile.Read(name, measurement.MaxSize); err != nil {
		return "", nil, err
	}
	sig, err := infile.Read(name+signature.Extension, signature.MaxSize)
	if err != nil {
		return "", nil, fmt.Errorf("the record has no signature: %w", err)
	}
	who, err := signature.Verify([]signature.Key{k}, data, sig)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return "key " + who.KeyID, data, nil
}

func newModelShowCommand() *cobra.Command {
	var f modelFlags
	cmd := &cobra.Command{
		Use:   "show [DIR]",
		Short: "Show the evidence of the models of a target",
		Long: `Show what was measured of the models of a target, the verdict on each candidate and its
reason, and whether the evidence still counts.

Exit status: 0 shown, 1 a model has no evidence that counts, 2 wrong usage.`,
		Example: "  yoctune model show meta-camera --target cam\n  yoctune model show meta-camera --target cam --model reader --format json",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := configurationFolder(args)
			if err != nil {
				return err
			}
			jobs, err := f.jobs(cmd, dir)
			if err != nil {
				return err
			}
			p := cli.NewPrinter(cmd)
			for _, j := range jobs {
				e := j.Target.Evidence[j.Model.Key()]
				if e.Evidence == nil {
					return fmt.Errorf("model %s: %s", j.Model.Key(), e.Fault)
				}
				if err := showEvidence(p, "model show", e.Path, e.Evidence); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

// candidateRow is a candidate at one batch size.
const candidateRow = "  %-26s %5s %10s %10s %9s %-22s %-22s %s\n"

func showEvidence(p cli.Printer, command, file string, e *evidence.Evidence) error {
	if p.JSON {
		p.Encode(e)
		p.Summary(command, struct {
			File   string         `json:"file"`
			Chosen *evidence.File `json:"chosen"`
		}{file, e.Chosen})
		return p.Err()
	}
	p.Printf("%s for %s: %d examples, %s; ONNX Runtime %s on %s; %s\n", e.Model, e.Target, e.Count, e.Accept.Metric, e.Runtime.ONNXRuntime,
		cmp.Or(e.Device.Model, strings.Join(e.Device.Identities, " "), e.Device.CPU, "an unnamed device"), e.Measurement.By)
	p.Printf("  asked for: a loss of at most %s, a speedup of at least %s", e.Accept.MaxLoss, e.Accept.MinSpeedup)
	if e.Accept.MaxMemory > 0 {
		p.Printf(", at most %s of memory", units.RoundSize(e.Accept.MaxMemory))
	}
	p.Printf("\n")
	p.Printf(candidateRow, "candidate", "batch", "size", "p50", e.Accept.Metric, "loss (95 %)", "speedup (95 %)", "memory")
	for i, c := range e.Candidates {
		memory := "-"
		if c.Memory != nil {
			memory = units.RoundSize(*c.Memory)
		}
		for _, b := range c.Batches {
			p.Printf(candidateRow, c.Name, fmt.Sprint(b.Batch), units.RoundSize(c.Bytes), time.Duration(b.P50).Round(time.Microsecond).String(), b.Metric,
				intervalText(b.Loss), intervalText(b.Speedup), memory)
		}
		if i == 0 {
			continue
		}
		word := "rejected"
		if c.Accepted {
			word = "accepted"
		}
		p.Printf("  %s %s: %s\n", c.Name, word, c.Reason)
		for _, name := range slices.Sorted(maps.Keys(c.Notes)) {
			p.Printf("    %s: %s\n", name, shorten(c.Notes[name]))
		}
	}
	if e.Chosen == nil {
		p.Printf("the original stays\n")
	} else {
		p.Printf("%s takes its place\n", e.Chosen.File)
	}
	p.Printf("%s: the evidence\n", file)
	return p.Err()
}

// shorten keeps a note to a line; the evidence has all of it.
func shorten(text string) string {
	const width = 160
	if len(text) <= width {
		return text
	}
	cut := strings.LastIndexByte(text[:width], ' ')
	return fmt.Sprintf("%s … (%d characters)", text[:max(cut, 0)], len(text))
}

func intervalText(i *evidence.Interval) string {
	if i == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s to %s)", i.Mid, i.Low, i.High)
}
