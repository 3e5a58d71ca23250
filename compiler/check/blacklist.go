package check

import (
	"path"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/pipeline"
)

func blacklistRules() []Rule {
	return []Rule{{
		ID: "module-needed", Severity: diag.Warning,
		Title: "blacklist of a module that the configuration needs",
		Cause: "udev loads drivers by the aliases of their devices, and ip-link those of the interfaces that it creates. A blacklist entry hides these aliases, so the device, the interface or the parameter does not exist, and what another field sets for it reaches nothing. modprobe by name still works.",
		Fix:   "remove the entry, or what needs the module",
		Wrong: `{modules: nvme: "blacklist", storage: "nvme*": scheduler: "none"}`,
		Right: `{modules: uvcvideo: "blacklist", storage: "nvme*": scheduler: "none"}`,
		See:   "modprobe.d(5); kmod tools/modprobe.c: KMOD_PROBE_APPLY_BLACKLIST_ALIAS_ONLY",
		run:   checkModuleNeeded,
	}}
}

// need is a part of the configuration and a module that its device or file comes from.
type need struct {
	config.Part
	modules []string // each of them alone, under the kernel's names or NVIDIA's
	what    string
}

// diskDrivers are the drivers behind names of disks that udev loads for a device. This list and the next are
// written by hand: the table of disks names the file that registers a disk, which is not always the module whose alias udev
// loads (sdhci_tegra brings mmcblk), and names of interfaces follow habit, not the source.
var diskDrivers = []struct {
	prefix, example string
	drivers         []string
}{
	{"nvme", "nvme0n1", []string{"nvme"}}, {"mmcblk", "mmcblk0", []string{"mmc_block", "sdhci_tegra"}},
	{"sd", "sda", []string{"sd_mod"}}, {"sr", "sr0", []string{"sr_mod"}}, {"vd", "vda", []string{"virtio_blk"}},
}

// linkDrivers are the modules of interfaces that ip-link creates, by the usual beginnings of their names.
var linkDrivers = map[string][]string{
	"br": {"bridge"}, "docker": {"bridge"}, "l4tbr": {"bridge"}, "virbr": {"bridge"}, "bond": {"bonding"}, "wg": {"wireguard"}, "tun": {"tun"}, "tap": {"tun"},
	"veth": {"veth"}, "vxlan": {"vxlan"}, "macvlan": {"macvlan"}, "ipvlan": {"ipvlan"}, "dummy": {"dummy"}, "ifb": {"ifb"}, "can": {"mttcan", "can_dev"}, "vcan": {"vcan"},
}

// moduleNeeds lists what the fields of the target need.
func (s *subject) moduleNeeds() []need {
	var all []need
	add := func(part config.Part, what string, modules ...string) {
		if part.Where().IsSet() {
			all = append(all, need{part, modules, what})
		}
	}
	for _, d := range s.Config.Storage.Entries {
		for _, kind := range diskDrivers {
			if ok, err := path.Match(d.Key(), kind.example); ok && err == nil || strings.HasPrefix(d.Key(), kind.prefix) {
				add(d, "the disks "+d.Key(), kind.drivers...)
			}
		}
	}
	for _, n := range s.Config.Network.Entries {
		if drivers := linkDrivers[strings.TrimRight(n.Key(), "0123456789*?")]; drivers != nil {
			add(n, "the interface "+n.Key(), drivers...)
		}
		if strings.Contains(n.Key(), ".") {
			add(n, "the VLAN "+n.Key(), "8021q")
		}
	}
	for _, v := range s.Config.Sysctl.Entries {
		if module := knob.ProvidingModule(knob.SysctlPath(v.Key())); module != "" {
			add(v, v.Key(), module)
		}
	}
	for _, a := range s.Config.Kernel.Args.Entries {
		if module, _, dotted := strings.Cut(linux.Fold(a.Key()), "."); dotted && a.Kind() != load.Null {
			add(a, "the parameter "+a.Key(), module)
		}
	}
	const gpu = "nvgpu"
	add(config.FirstSet(s.Config.GPU.Min, s.Config.GPU.Max, s.Config.GPU), "the GPU", gpu)
	for c := range s.pipelines() {
		for _, st := range c.Stages.Sorted() {
			if pipeline.MayBeGPU(st.Device.Text) {
				add(st.Device, "the GPU of stage "+st.Key(), gpu)
			}
		}
		if device := c.Source.Path; c.Source.Kind.Text == "v4l2" && strings.Contains(device.Text, "/by-") && strings.Contains(device.Text, "usb") {
			add(device, "the camera of pipeline "+c.Key(), "uvcvideo")
		}
	}
	add(s.Config.Fan, "the fan", "pwm_fan")
	clocks := []string{"tegra194_cpufreq", "tegra186_cpufreq", "tegra124_cpufreq"}
	add(config.FirstSet(s.Config.CPU.Governor, s.Config.CPU.Min, s.Config.CPU.Max, s.Config.Power.Default), "the clocks of the cores", clocks...)
	return all
}

func checkModuleNeeded(s *subject) {
	blacklisted := map[string]*config.NamedString{}
	for _, m := range s.Config.Modules.Entries {
		if m.Text == "blacklist" {
			blacklisted[linux.Fold(m.Key())] = m
		}
	}
	if len(blacklisted) == 0 {
		return
	}
	seen := map[string]bool{}
	for _, n := range s.moduleNeeds() {
		for _, module := range n.modules {
			if m := blacklisted[module]; m != nil && !seen[module] {
				seen[module] = true // one entry, one message
				s.reportAt(m, m.Show(), "", "%s needs the module %s", n.what, m.Key()).addRelated(n, "what needs it")
			}
		}
	}
}
