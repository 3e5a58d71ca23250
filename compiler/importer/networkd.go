package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"

	facts "github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/facts/linux"
)

// linkFields are the fields of the directives of a .link or .network file that take a number
// or a switch.
func linkFields() map[string][]string {
	return map[string][]string{
		"TransmitQueueLength": {"txQueueLen"}, "RxBufferSize": {"ring", "rx"}, "TxBufferSize": {"ring", "tx"},
		"RxChannels": {"channels", "rx"}, "TxChannels": {"channels", "tx"}, "CombinedChannels": {"channels", "combined"},
		"RxMaxCoalescedFrames": {"coalesce", "rxFrames"}, "TxMaxCoalescedFrames": {"coalesce", "txFrames"},
		"UseAdaptiveRxCoalesce": {"coalesce", "adaptiveRx"}, "UseAdaptiveTxCoalesce": {"coalesce", "adaptiveTx"},
	}
}

// linkFeatures are the features of interfaces that directives of [Link] switch, by the kernel's
// names; "tx" is ethtool's name for all checksums that are sent.
func linkFeatures() map[string]string {
	return map[string]string{
		"ReceiveChecksumOffload": "rx-checksum", "TransmitChecksumOffload": "tx",
		"GenericReceiveOffload": "rx-gro", "GenericReceiveOffloadHardware": "rx-gro-hw", "LargeReceiveOffload": "rx-lro",
		"GenericSegmentationOffload": "tx-generic-segmentation", "TCPSegmentationOffload": "tx-tcp-segmentation", "TCP6SegmentationOffload": "tx-tcp6-segmentation",
		"ReceiveVLANCTAGHardwareAcceleration": "rx-vlan-hw-parse", "TransmitVLANCTAGHardwareAcceleration": "tx-vlan-hw-insert",
		"ReceiveVLANCTAGFilter": "rx-vlan-filter", "TransmitVLANSTAGHardwareAcceleration": "tx-vlan-stag-hw-insert",
		"NTupleFilter": "rx-ntuple-filter",
	}
}

// readNetworkd reads .link, .network and .netdev files: what the hardware of interfaces that
// are chosen by name gets. Addresses, names and virtual interfaces stay in the file.
func (im *importer) readNetworkd(lines []*Line, s Source) {
	ext := path.Ext(s.Name)
	kind := map[string]string{".network": facts.Network, ".netdev": facts.NetDev}[ext]
	if kind == "" {
		kind = facts.Link
	}
	ds := parseDirectives(lines, s)
	devices, why := matchedDevices(ds)
	for i := range ds {
		d := &ds[i]
		switch {
		case ext == ".netdev":
			d.line.leave("yoctune creates no interfaces; the file stays")
		case d.section == "Match" && why == "":
			d.line.markUnderstood("")
		case d.section == "Match":
			d.line.leave(why)
		case d.section != "Link":
			d.line.leave("yoctune sets the hardware of interfaces; addresses and routes stay in the file")
		case why != "":
			d.line.leave(why)
		default:
			im.setLink(d, devices)
		}
		copyVerdict(d.group)
		im.noteDirectiveOf(kind, d)
	}
}

// matchedDevices returns the interfaces of the [Match] section, or why they cannot be named.
func matchedDevices(ds []directive) (devices []string, why string) {
	for _, d := range ds {
		if d.section != "Match" {
			continue
		}
		if d.name != "OriginalName" && d.name != "Name" {
			return nil, "yoctune chooses interfaces by their name only, not by " + clean(d.name)
		}
		for _, w := range strings.Fields(d.value) {
			if strings.HasPrefix(w, "!") {
				return nil, "yoctune's globs exclude no names"
			}
			devices = append(devices, w)
		}
	}
	if len(devices) == 0 {
		return nil, "it names no interface"
	}
	return devices, ""
}

// setLink sets a directive of [Link] for each interface.
func (im *importer) setLink(d *directive, devices []string) {
	field, value := []string{d.name}, d.value
	switch d.name {
	case "MTUBytes":
		size, ok := binarySize(value)
		if !ok {
			d.line.leave("not a size")
			return
		}
		field, value = []string{"mtu"}, strconv.FormatInt(size, 10)
	case "RxCoalesceSec", "TxCoalesceSec":
		span, ok := microseconds(value)
		if !ok {
			d.line.leave("not a time in seconds, ms or us")
			return
		}
		field, value = []string{"coalesce", strings.ToLower(d.name[:2]) + "Usecs"}, strconv.FormatInt(span, 10)
	default:
		if feature := linkFeatures()[d.name]; feature != "" {
			for _, device := range devices {
				im.setFeatures(d.line, simpleGlob(device), []string{feature, value})
			}
			return
		}
		to, ok := linkFields()[d.name]
		if !ok {
			d.line.leavef("yoctune has no field for %s", clean(d.name))
			return
		}
		field = to
		if strings.HasPrefix(d.name, "UseAdaptive") {
			value = switchOf(value)
		}
	}
	if value == "" || value == "max" {
		d.line.leavef("yoctune takes a number, not %q", clean(d.value))
		return
	}
	for _, device := range devices {
		im.setField(d.line, scalarOrSwitch(value), slices.Concat([]string{"network", simpleGlob(device)}, field)...)
	}
}

// switchOf reads a switch as systemd, ethtool and tuned write it; "" for other text.
func switchOf(s string) string {
	switch strings.ToLower(s) {
	case "yes", "true", "on", "1", "y", "t":
		return "true"
	case "no", "false", "off", "0", "n", "f":
		return "false"
	}
	return ""
}

// scalarOrSwitch writes a number, a switch or text.
func scalarOrSwitch(s string) string {
	if s == "true" || s == "false" {
		return s
	}
	return formatScalar(s)
}

// binarySize reads a size whose suffixes are powers of 1024.
func binarySize(s string) (int64, bool) {
	shift := 0
	if i := strings.IndexAny(s, "KMG"); i >= 0 && i == len(s)-1 {
		shift = 10 * (1 + strings.IndexByte("KMG", s[i]))
		s = s[:i]
	}
	n, ok := number(s)
	return n << shift, ok && n >= 0 && n < 1<<30
}

// microseconds reads a time span of systemd with one unit, by default seconds.
func microseconds(s string) (int64, bool) {
	for _, u := range []struct {
		suffix string
		factor int64
	}{{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"", 1000000}} {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			n, ok := number(strings.TrimSpace(digits))
			return n * u.factor, ok && n >= 0 && n <= 1000000
		}
	}
	return 0, false
}

// setFeatures imports NAME on|off of `ethtool -K DEVICE`. A short name stands for all features of
// the kernel that ethtool's own pattern matches.
func (im *importer) setFeatures(l *Line, device string, words []string) {
	if len(words)%2 != 0 {
		l.leavePart(clean(strings.Join(words, " ")), "not pairs of a name and on or off")
		return
	}
	for i := 0; i < len(words); i += 2 {
		name, value := words[i], switchOf(words[i+1])
		if value == "" {
			l.leavePart(clean(name+" "+words[i+1]), "neither on nor off")
			continue
		}
		features := linux.FeaturesOf(im.release.Kernel, name)
		if len(features) > 1 {
			l.markAdjusted("ethtool's %s stands for %s", clean(name), strings.Join(features, ", "))
		}
		if len(features) == 0 {
			features = []string{name} // offload-name gives the reason
		}
		for _, f := range features {
			im.setField(l, value, "network", device, "offloads", f)
		}
	}
}

// setEthtool imports parameters of `ethtool -G|-L|-C DEVICE NAME VALUE...`; tuned takes them
// in the same form.
func (im *importer) setEthtool(l *Line, group, device string, words []string) {
	if len(words)%2 != 0 || len(words) == 0 {
		l.leavePart(clean(strings.Join(words, " ")), "not pairs of a name and a value")
		return
	}
	fields := map[string]map[string]string{
		"ring":     {"rx": "rx", "tx": "tx"},
		"channels": {"combined": "combined", "rx": "rx", "tx": "tx"},
		"coalesce": {"rx-usecs": "rxUsecs", "rx-frames": "rxFrames", "tx-usecs": "txUsecs", "tx-frames": "txFrames", "adaptive-rx": "adaptiveRx", "adaptive-tx": "adaptiveTx"},
	}[group]
	for i := 0; i < len(words); i += 2 {
		name, value := words[i], words[i+1]
		field := fields[name]
		if strings.HasPrefix(name, "adaptive") {
			value = switchOf(value)
		}
		if field == "" || value == "" {
			l.leavePart(clean(words[i]+" "+words[i+1]), "yoctune has no field for it")
			continue
		}
		im.setField(l, scalarOrSwitch(value), "network", device, group, field)
	}
}
