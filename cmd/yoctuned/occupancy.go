package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/occupancy"
)

// occupancyFlags describe a kernel that is not part of the core.
type occupancyFlags struct {
	sm, registers, shared, dynamic, block int
	recorded                              string
}

func newOccupancyCommand() *cobra.Command {
	var f occupancyFlags
	cmd := &cobra.Command{
		Use:   "occupancy [KERNEL]",
		Short: "Calculate the CUDA occupancy of a kernel, and what limits it",
		Long: `Calculate without a GPU how many blocks and warps of a kernel one multiprocessor of an
architecture can hold, and which resource limits them. The results equal those of the
CUDA driver. Without --block every valid block size is shown, and the one with the
highest occupancy is marked.

KERNEL is a kernel of the compute core, with the registers and shared memory that ptxas
reported (default: all kernels). For your own kernel give --registers and --shared, as
printed by ptxas -v.

Exit status: 0 the kernel can run, 1 the architecture or kernel is unknown, 2 wrong
usage, 3 a block of that size cannot be launched.`,
		Example: `  yoctuned occupancy --sm 87
  yoctuned occupancy preprocess --sm 87 --block 128
  yoctuned occupancy --sm 110 --registers 72 --shared 16384 --format json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.recorded != "" {
				return compareOccupancy(cli.NewPrinter(cmd), f.recorded)
			}
			if (f.registers > 0) == (len(args) > 0) && f.registers > 0 {
				return cli.UsageError(errors.New("give a kernel or --registers, not both"))
			}
			d, err := occupancy.Lookup(f.sm)
			if err != nil {
				return fmt.Errorf("--sm: %w", err)
			}
			rows, err := f.rows(d, args)
			if err != nil {
				return err
			}
			return writeOccupancy(cli.NewPrinter(cmd), d, rows)
		},
	}
	cmd.Flags().IntVar(&f.sm, "sm", 87, "`NUMBER` of the architecture: 87 is compute capability 8.7")
	cmd.Flags().IntVar(&f.block, "block", 0, "`THREADS` per block; 0 shows every size")
	cmd.Flags().IntVar(&f.registers, "registers", 0, "`NUMBER` of registers per thread of your own kernel")
	cmd.Flags().IntVar(&f.shared, "shared", 0, "`BYTES` of static shared memory per block of your own kernel")
	cmd.Flags().IntVar(&f.dynamic, "dynamic", 0, "`BYTES` of dynamic shared memory per block")
	cmd.Flags().StringVar(&f.recorded, "recorded", "", "`FILE` with recorded driver results to compare with")
	return cmd
}

// recordedAnswer is the driver's result for a launch configuration.
type recordedAnswer struct {
	SM         int `json:"sm"`
	Registers  int `json:"registers"`
	Shared     int `json:"shared"`
	MaxThreads int `json:"max_threads"`
	MaxDynamic int `json:"max_dynamic"`
	Block      int `json:"block"`
	Dynamic    int `json:"dynamic"`
	Blocks     int `json:"blocks"`
}

// compareOccupancy compares the calculator with recorded results of a driver.
func compareOccupancy(p cli.Printer, path string) error {
	file, err := infile.Open(path)
	if err != nil {
		return fmt.Errorf("read the driver's results: %w", err)
	}
	defer file.Close()
	results, wrong := 0, 0
	for d := json.NewDecoder(file); ; results++ {
		var r recordedAnswer
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("%s: answer %d: %w", path, results+1, err)
		}
		dev, err := occupancy.Lookup(r.SM)
		if err != nil {
			return fmt.Errorf("%s: answer %d: %w", path, results+1, err)
		}
		k := occupancy.Kernel{Registers: r.Registers, Shared: r.Shared, MaxThreads: r.MaxThreads, MaxDynamic: r.MaxDynamic, Carveout: -1, Barriers: 1}
		o, err := dev.Occupancy(k, r.Block, r.Dynamic)
		if err != nil {
			return fmt.Errorf("%s: answer %d: %w", path, results+1, err)
		}
		// The driver also applies the launch bounds, which the calculator lacks.
		if r.Block > r.MaxThreads {
			o.Blocks = 0
		}
		if o.Blocks != r.Blocks {
			wrong++
			p.Printf("differs: %+v: calculated %d\n", r, o.Blocks)
		}
	}
	if results == 0 {
		return fmt.Errorf("%s has no results", path)
	}
	p.Printf("%d results of the driver, %d differ\n", results, wrong)
	return cli.Answer(wrong == 0)
}

// occupancyRow is one kernel with one block size.
type occupancyRow struct {
	Kernel    string            `json:"kernel"`
	SM        int               `json:"sm"`
	Block     int               `json:"block"`
	Registers int               `json:"registers"`
	Shared    int               `json:"shared"`
	Blocks    int               `json:"blocks"`
	Warps     int               `json:"warps"`
	Share     float64           `json:"share"`
	Limits    []occupancy.Limit `json:"limits"`
	Fullest   bool              `json:"fullest"`
}

func (f occupancyFlags) rows(d occupancy.Device, args []string) ([]occupancyRow, error) {
	if f.registers > 0 {
		k := occupancy.Kernel{Registers: f.registers, Shared: f.shared, MaxDynamic: -1, Carveout: -1, Barriers: 1}
		if f.dynamic > 0 {
			k.MaxDynamic = f.dynamic
		}
		return f.calculate(d, "own", k, occupancy.Limits{Kernel: "own", Min: d.Warp, Max: d.ThreadsPerBlock, Step: d.Warp})
	}
	var all []occupancyRow
	for _, l := range occupancy.Launchable() {
		if len(args) > 0 && args[0] != l.Kernel {
			continue
		}
		k, ok := occupancy.BuiltIn(d.SM(), l.Kernel)
		if !ok {
			return nil, fmt.Errorf("the CUDA compiler of this release did not compile %s for sm_%d; give --registers and --shared", l.Kernel, d.SM())
		}
		rows, err := f.calculate(d, l.Kernel, k, l)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	if len(all) == 0 {
		var names []string
		for _, l := range occupancy.Launchable() {
			names = append(names, l.Kernel)
		}
		return nil, fmt.Errorf("no kernel %q with a choice of block sizes; choose one of %s", args[0], strings.Join(names, ", "))
	}
	return all, nil
}

// calculate returns the rows of a kernel: one for each block size.
func (f occupancyFlags) calculate(d occupancy.Device, name string, k occupancy.Kernel, l occupancy.Limits) ([]occupancyRow, error) {
	full, _, err := l.BestBlock(d, k)
	if err != nil {
		return nil, err
	}
	sizes := []int{f.block}
	if f.block == 0 {
		sizes = sizes[:0]
		for b := l.Min; b <= l.Max; b += l.Step {
			sizes = append(sizes, b)
		}
	}
	var rows []occupancyRow
	for _, b := range sizes {
		o, err := d.Occupancy(k, b, f.dynamic)
		if err != nil {
			return nil, cli.UsageError(err)
		}
		rows = append(rows, occupancyRow{
			Kernel: name, SM: d.SM(), Block: b, Registers: k.Registers, Shared: k.Shared,
			Blocks: o.Blocks, Warps: o.Warps, Share: o.Share, Limits: o.Limits, Fullest: b == full,
		})
	}
	return rows, nil
}

func writeOccupancy(p cli.Printer, d occupancy.Device, rows []occupancyRow) error {
	if !p.JSON {
		p.Printf("sm_%d: %d warps, %d blocks, %d registers, %d KiB of shared memory a multiprocessor\n%s\n%-11s %6s %10s %7s %7s %6s  %s\n",
			d.SM(), d.ThreadsPerSM/d.Warp, d.BlocksPerSM, d.RegistersPerSM, d.SharedPerSM>>10, d.Source, "kernel", "block", "registers", "blocks", "warps", "full", "limited by")
	}
	launches := true
	for _, r := range rows {
		launches = launches && r.Blocks > 0
		if p.JSON {
			p.Line("occupancy", r)
			continue
		}
		var limits []string
		for _, l := range r.Limits {
			limits = append(limits, string(l))
		}
		mark := ""
		if r.Fullest {
			mark = "  <- fullest"
		}
		p.Printf("%-11s %6d %10d %7d %7d %5.0f%%  %s%s\n", r.Kernel, r.Block, r.Registers, r.Blocks, r.Warps, 100*r.Share, strings.Join(limits, ", "), mark)
	}
	return p.End("occupancy", cli.ExitCode(launches), nil)
}
