package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/engine/bench"
	"github.com/yoctune/yoctune/runtime/engine/core"
)

func newDevicesCommand() *cobra.Command {
	var open core.Options
	var items int
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the compute devices",
		Long: `List the devices of the backend. A pipeline that uses several passes tensors between them
through host memory.

--share N distributes N work items over the devices by their measured speed, and shows
how many each processed.

YT_CPU_DEVICES=2 divides the CPU into two devices, to try multi-device features.

Exit status: 0 listed, 1 failed, or a device cannot be opened, 2 wrong usage.`,
		Example: `  yoctuned devices
  YT_CPU_DEVICES=2 yoctuned devices --backend cpu --share 200
  yoctuned devices --format json | jq -r 'select(.type == "device") | .name'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if items < 0 {
				return cli.UsageError(fmt.Errorf("--share %d: the number must not be negative", items))
			}
			return runDevices(cmd, open, items)
		},
	}
	coreFlags(cmd, &open)
	cmd.Flags().IntVar(&items, "share", 0, "`N` work items to distribute over the devices")
	return cmd
}

// deviceRow is one device.
type deviceRow struct {
	Index int `json:"index"`
	core.Info
	Share *bench.Share `json:"share"` // nil: no work was shared
}

func runDevices(cmd *cobra.Command, open core.Options, items int) (err error) {
	n, err := core.Count(open)
	if err != nil {
		return err
	}
	var devices []*core.Device
	defer func() {
		for _, d := range devices {
			err = errors.Join(err, d.Close())
		}
	}()
	for i := range n {
		open.Index = i
		d, err := core.Open(open)
		if err != nil {
			return fmt.Errorf("device %d: %w", i, err)
		}
		devices = append(devices, d)
	}
	rows, err := describeDevices(cmd.Context(), devices, items)
	if err != nil {
		return err
	}
	out := cli.NewPrinter(cmd)
	if !out.JSON {
		devicesText(out, rows)
	} else {
		for _, r := range rows {
			out.Line("device", r)
		}
	}
	return out.End("devices", cli.ExitDone, nil)
}

// describeDevices describes each device, with its share of a number of work items unless
// that is 0.
func describeDevices(ctx context.Context, devices []*core.Device, items int) (rows []deviceRow, err error) {
	var shares []bench.Share
	if items > 0 {
		if shares, err = bench.Balance(ctx, devices, items); err != nil {
			return nil, err
		}
	}
	for i, d := range devices {
		info, err := d.Info()
		if err != nil {
			return nil, err
		}
		row := deviceRow{Index: i, Info: info}
		if shares != nil {
			row.Share = &shares[i]
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func devicesText(out cli.Printer, rows []deviceRow) {
	for _, r := range rows {
		out.Printf("%d  %s (%s)", r.Index, r.Name, r.Backend)
		if r.Capability != nil {
			out.Printf(", compute capability %s", *r.Capability)
		}
		if r.Cores != nil {
			out.Printf(", %d cores", *r.Cores)
		}
		if r.MemTotal != nil {
			out.Printf(", %d MiB", *r.MemTotal>>20)
		}
		if r.Share != nil {
			out.Printf(": %d items, %.0f a second", r.Share.Items, r.Share.Rate)
		}
		out.Printf("\n")
	}
}
