package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/runtime/device/hardware"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// inventory is what probe finds.
type inventory struct {
	Identity rootfs.Identity
	Hardware rootfs.Hardware
	Nodes    []rootfs.Node
	Args     []string
	Modes    []string // power modes, by id
	Mode     string   // the one in force
	Problems []error  // what could not be read
}

func newProbeCommand() *cobra.Command {
	var boardFile string
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "List the hardware and settings of this device",
		Long: `List the identity of the machine, its block devices, CPU frequency policies, devfreq
devices, network interfaces, interrupts, kernel arguments and power modes: the names that
a plan can select by. The JSON output also has clock steps, memory and thermal zones,
which "yoctune facts refresh" compares with the facts about the board. probe only reads,
and reports what it could not read.

With --board-file it writes the hardware of this device to a file that a configuration takes
as boards: NAME: facts. Any Linux device will do, with a GPU or without. The file has no
serial numbers, hardware addresses, host names or kernel arguments, and two runs give the
same bytes. A fact that the file cannot hold is left out with a message. Without cores and
memory, which every configuration needs, nothing is written and the exit status is 1.`,
		Example: `  yoctuned probe
  yoctuned probe --board-file mine.json
  yoctuned probe --format json | jq 'select(.class == "irq")'`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
			p := cli.NewPrinter(cmd)
			if cmd.Flags().Changed("board-file") {
				return writeBoardFile(cmd, p, dev, boardFile)
			}
			inv := probe(dev)
			if !p.JSON {
				inv.text(p)
				return nil
			}
			inv.json(p)
			return p.End("probe", cli.ExitDone, nil)
		}),
	}
	cmd.Flags().StringVar(&boardFile, "board-file", "", "`FILE` to write the hardware of this device to; - for standard output")
	cobra.CheckErr(cmd.MarkFlagFilename("board-file", "json"))
	return cmd
}

// writeBoardFile writes the hardware of a device to a file.
func writeBoardFile(cmd *cobra.Command, p cli.Printer, dev *rootfs.Root, name string) error {
	if name == "" {
		return cli.UsageError(errors.New("--board-file needs the name of a file"))
	}
	var arch hardware.Arch
	if dev.Running() { // a tree does not have it
		var uts unix.Utsname
		if err := unix.Uname(&uts); err != nil {
			return fmt.Errorf("read the architecture: %w", err)
		}
		arch = hardware.Arch{Name: unix.ByteSliceToString(uts.Machine[:]), Source: "uname -m"}
	}
	file, problems := hardware.Read(dev, arch)
	side := p.To(cmd.ErrOrStderr()) // standard output may be the file
	for _, err := range problems {
		if p.JSON && name != "-" {
			p.Error(err)
		} else {
			side.Printf("yoctuned: %v\n", err)
		}
	}
	if err := file.CheckUse(); err != nil {
		return fmt.Errorf("write the board file %s: %w", name, err)
	}
	text, err := file.Encode()
	if err != nil {
		return fmt.Errorf("write the board file %s: %w", name, err)
	}
	if name == "-" {
		_, err = p.Write(text)
		return err
	}
	if err := outfile.Write(name, text); err != nil {
		return err
	}
	if p.JSON {
		return p.End("probe", cli.ExitDone, nil)
	}
	p.Printf("%s: %d facts about %s\n", name, len(file.Read), cmp.Or(file.Model, file.Arch, "this device"))
	return p.Err()
}

func probe(dev rootfs.FS) inventory {
	inv := inventory{Identity: rootfs.Identify(dev), Hardware: rootfs.ReadHardware(dev)}
	problem := func(err error) {
		if err != nil {
			inv.Problems = append(inv.Problems, err)
		}
	}
	for _, class := range rootfs.Classes() {
		nodes, err := rootfs.Nodes(dev, class)
		problem(err)
		for _, n := range nodes {
			inv.Nodes = append(inv.Nodes, rootfs.Describe(dev, n))
		}
	}
	args, err := rootfs.ReadArgs(dev)
	problem(err)
	for _, a := range args {
		if a.Flag {
			inv.Args = append(inv.Args, a.Name)
		} else {
			inv.Args = append(inv.Args, a.Name+"="+a.Value)
		}
	}
	config, err := power.Read(dev)
	problem(err)
	if config != nil {
		for _, m := range config.Modes {
			inv.Modes = append(inv.Modes, m.Name)
		}
		id, err := power.Current(dev, config)
		problem(err)
		if err == nil {
			inv.Mode = config.ModeName(id)
		}
	}
	return inv
}

func (inv inventory) json(p cli.Printer) {
	p.Line("device", struct {
		rootfs.Identity
		Args  []string `json:"args"`
		Modes []string `json:"power_modes"`
		Mode  string   `json:"power_mode,omitempty"`
	}{inv.Identity, inv.Args, inv.Modes, inv.Mode})
	p.Line("hardware", inv.Hardware)
	for _, n := range inv.Nodes {
		p.Line("node", n)
	}
	for _, err := range inv.Problems {
		p.Error(err)
	}
}

func (inv inventory) text(p cli.Printer) {
	row := func(key, value string) { p.Printf("%-12s %s\n", key, cmp.Or(value, "–")) }
	row("model", inv.Identity.Model)
	row("compatible", strings.Join(inv.Identity.Compatible, " "))
	row("L4T", inv.Identity.L4T)
	row("kernel", inv.Identity.Kernel)
	row("arguments", strings.Join(inv.Args, " "))
	row("power mode", inv.Mode)
	row("power modes", strings.Join(inv.Modes, " "))
	for _, n := range inv.Nodes {
		text := n.Name
		if len(n.Actions) > 0 {
			text = fmt.Sprintf("%s (irq %s)", strings.Join(n.Actions, ","), n.Name)
		}
		if n.Driver != "" {
			text += "  driver " + n.Driver
		}
		if n.OFNode != "" {
			text += "  of_node " + n.OFNode
		}
		row(n.Class, text)
	}
	for _, err := range inv.Problems {
		row("unreadable", err.Error())
	}
}
