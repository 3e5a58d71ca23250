// Package boardfile defines the board file, yoctune.board/1: the hardware of one Linux device
// as its kernel reports it. `yoctuned probe --board-file` writes it, and `boards: NAME: facts`
// of a configuration takes it.
//
// A board file identifies a kind of device, not one device: it has no serial numbers, hardware
// addresses, host names or kernel arguments.
package boardfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// Schema identifies the format.
const Schema = "yoctune.board/1"

// Limits of a board file.
const (
	MaxSize    = 4 << 20 // bytes
	maxText    = 256     // bytes of a text
	maxEntries = 2048    // entries of a list
	maxOptions = 50_000
)

// ErrFormat is wrapped by errors about a file that is not a board file.
var ErrFormat = errors.New("not a board file")

// File is a board file. A fact that the device did not report is absent. Frequencies are in Hz,
// sizes in bytes, temperatures in milli-degrees Celsius, and durations in microseconds.
type File struct {
	Schema     string      `json:"$schema"`
	Model      string      `json:"model,omitempty"`      // of the device tree, or of the firmware's tables
	Compatible []string    `json:"compatible,omitempty"` // of the device tree's root, most specific first
	Firmware   *Firmware   `json:"firmware,omitempty"`   // DMI, where there is no device tree
	Arch       string      `json:"arch,omitempty"`       // as uname -m prints it
	CPUs       *CPUs       `json:"cpus,omitempty"`
	Idle       *Idle       `json:"idle,omitempty"`
	Devfreq    []Devfreq   `json:"devfreq,omitempty"` // by name
	Zones      []Zone      `json:"thermal_zones,omitempty"`
	Cooling    []Cooling   `json:"cooling_devices,omitempty"`
	Memory     *Memory     `json:"memory,omitempty"`
	Block      []Block     `json:"block,omitempty"`   // by name, without loop, RAM and compressed swap devices
	Network    []Interface `json:"network,omitempty"` // by name, without the loopback
	IRQs       []string    `json:"irqs,omitempty"`    // action names, sorted
	GPUs       []GPU       `json:"gpus,omitempty"`    // of DRM
	Kernel     *Kernel     `json:"kernel,omitempty"`
	Cgroup     string      `json:"cgroup,omitempty"`  // unified, hybrid or legacy
	Systemd    string      `json:"systemd,omitempty"` // version
	L4T        string      `json:"l4t,omitempty"`     // of a Jetson
	Modes      []string    `json:"power_modes,omitempty"`
	// Read has the source of each field above, by its JSON name.
	Read map[string]string `json:"read"`
}

// Firmware is what DMI tables name.
type Firmware struct {
	Vendor  string `json:"vendor,omitempty"`
	Product string `json:"product,omitempty"`
	Board   string `json:"board,omitempty"`
}

// CPUs are the processors.
type CPUs struct {
	Present  string   `json:"present"`            // cpu list
	Threads  bool     `json:"threads,omitempty"`  // some cores have several hardware threads
	Boost    bool     `json:"boost,omitempty"`    // the cpufreq driver can switch boosting
	Policies []Policy `json:"policies,omitempty"` // by first core
}

// Policy is a cpufreq policy: cores that share a clock.
type Policy struct {
	CPUs      string   `json:"cpus"` // cpu list
	Driver    string   `json:"driver,omitempty"`
	MinHz     int64    `json:"min_hz,omitempty"` // cpuinfo_min_freq
	MaxHz     int64    `json:"max_hz,omitempty"` // cpuinfo_max_freq
	Hz        []int64  `json:"hz,omitempty"`     // steps, ascending; absent where the driver lists none
	Governors []string `json:"governors,omitempty"`
	EPP       []string `json:"epp,omitempty"` // energy performance preferences
}

// Idle is the cpuidle of core 0.
type Idle struct {
	Driver string      `json:"driver,omitempty"`
	States []IdleState `json:"states,omitempty"` // shallowest first
}

// IdleState is one idle state.
type IdleState struct {
	Name      string `json:"name"`
	Latency   int64  `json:"latency_us"`
	Residency int64  `json:"residency_us,omitempty"`
}

// Devfreq is a device with a clock of its own.
type Devfreq struct {
	Name      string   `json:"name"`
	OFNode    string   `json:"of_node,omitempty"`
	Driver    string   `json:"driver,omitempty"`
	MinHz     int64    `json:"min_hz,omitempty"`
	MaxHz     int64    `json:"max_hz,omitempty"`
	Hz        []int64  `json:"hz,omitempty"` // steps, ascending
	Governors []string `json:"governors,omitempty"`
}

// Zone is a thermal zone.
type Zone struct {
	Type     string   `json:"type"`
	Policy   string   `json:"policy,omitempty"` // governor
	Policies []string `json:"policies,omitempty"`
	Trips    []Trip   `json:"trips,omitempty"` // in the kernel's order
}

// Trip is a trip point.
type Trip struct {
	Type     string `json:"type"` // active, passive, hot, critical
	Temp     int64  `json:"temp"`
	Writable bool   `json:"writable,omitempty"`
}

// Cooling is a cooling device.
type Cooling struct {
	Type string `json:"type"`
	Max  int64  `json:"max_state"`
}

// Memory is the memory that the kernel manages.
type Memory struct {
	Bytes     int64   `json:"bytes"`
	HugePages []int64 `json:"huge_pages,omitempty"` // sizes, ascending
}

// Block is a block device.
type Block struct {
	Name       string   `json:"name"`
	Driver     string   `json:"driver,omitempty"`
	Rotational bool     `json:"rotational,omitempty"`
	Schedulers []string `json:"schedulers,omitempty"`
	Requests   int64    `json:"nr_requests,omitempty"`
	Queues     int64    `json:"queues,omitempty"`     // hardware queues
	MaxSectors int64    `json:"max_bytes,omitempty"`  // of one request (max_hw_sectors_kb)
	ReadAhead  int64    `json:"read_ahead,omitempty"` // read_ahead_kb
	Bytes      int64    `json:"bytes,omitempty"`      // of the device
	Removable  bool     `json:"removable,omitempty"`
}

// Interface is a network interface. A name that contains a hardware address ends in "*".
type Interface struct {
	Name     string `json:"name"`
	Driver   string `json:"driver,omitempty"`
	OFNode   string `json:"of_node,omitempty"`
	MTU      int64  `json:"mtu,omitempty"`
	TxQueue  int64  `json:"tx_queue_len,omitempty"`
	RxQueues int64  `json:"rx_queues,omitempty"`
	TxQueues int64  `json:"tx_queues,omitempty"`
	Type     int64  `json:"type,omitempty"` // ARPHRD: 1 Ethernet, 280 CAN
}

// GPU is a device of DRM.
type GPU struct {
	Driver string `json:"driver,omitempty"`
	OFNode string `json:"of_node,omitempty"`
}

// Kernel is the running kernel.
type Kernel struct {
	Release string `json:"release"` // uname -r
	Version string `json:"version"` // its first two numbers, as in "6.6"
	// Options has the options that are set to y, m or a number. Texts are left out: they
	// contain paths, names and keys of whoever built the kernel.
	Options map[string]string `json:"options,omitempty"`
}

// Cores returns the number of present cores, 0 if it is not known.
func (f *File) Cores() int {
	if f.CPUs == nil {
		return 0
	}
	list, err := cpulist.Parse(f.CPUs.Present)
	if err != nil {
		return 0
	}
	return len(list)
}

// Identities returns what recognises a device of the file's kind: the first entry of the
// device tree's "compatible", the product that the firmware names, or [AnyDevice] where the
// device reports neither, as many virtual machines do.
func (f *File) Identities() []string {
	switch {
	case len(f.Compatible) > 0:
		return f.Compatible[:1]
	case f.Firmware != nil && f.Firmware.Product != "":
		return []string{Product(f.Firmware.Vendor, f.Firmware.Product)}
	}
	return []string{AnyDevice}
}

// AnyDevice is the identity of a device that nothing identifies.
const AnyDevice = "any"

// Product returns the identity of a product that the firmware names.
func Product(vendor, product string) string { return "dmi:" + vendor + "/" + product }

// Decode reads a board file: it refuses another schema, unknown fields, a fact without a source,
// and values that no kernel reports. The error wraps [ErrFormat].
func Decode(data []byte) (*File, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("%w: larger than %d MiB", ErrFormat, MaxSize>>20)
	}
	var head struct {
		Schema string `json:"$schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("%w: its $schema is %.60q, and this program reads %q", ErrFormat, head.Schema, Schema)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	f := &File{}
	if err := dec.Decode(f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if err := f.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return f, nil
}

// CheckUse reports why no configuration can take the file: every setting is judged by the cores
// and the memory of its board.
func (f *File) CheckUse() error {
	for _, fact := range []struct {
		name  string
		found bool
	}{{"cores", f.Cores() > 0}, {"memory", f.Memory != nil}} {
		if !fact.found {
			return fmt.Errorf("%w: without %s, no setting can be judged", ErrFormat, fact.name)
		}
	}
	return nil
}

// Prune leaves out what [File.Check] refuses, and returns an error for each: one odd node must not
// cost a device its file.
func (f *File) Prune() []error {
	var left []error
	pruneValue("", reflect.ValueOf(f).Elem(), func(err error) { left = append(left, err) })
	if f.CPUs != nil {
		seen := map[int]bool{}
		present, _ := cpulist.Parse(f.CPUs.Present)
		f.CPUs.Policies = slices.DeleteFunc(f.CPUs.Policies, func(p Policy) bool {
			err := p.check("cpus.policies", present, seen)
			if err != nil {
				left = append(left, fmt.Errorf("%w: the policy is left out", err))
			}
			return err != nil
		})
	}
	facts := f.facts()
	maps.DeleteFunc(f.Read, func(name, _ string) bool { return !slices.Contains(facts, name) })
	return left
}

// pruneValue leaves out what [checkValue] refuses of a value. It returns false if what holds the
// value cannot do without it.
func pruneValue(at string, v reflect.Value, leave func(error)) bool {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !pruneValue(at, v.Elem(), leave) {
			v.SetZero()
		}
		return true
	case reflect.Struct:
		for i := range v.NumField() {
			name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			switch {
			case pruneValue(strings.TrimPrefix(at+"."+name, "."), v.Field(i), leave):
			case options == "omitempty":
				v.Field(i).SetZero()
			default:
				return false
			}
		}
		return true
	case reflect.Slice:
		pruneSlice(at, v, leave)
		return true
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			one := reflect.MakeMap(v.Type())
			one.SetMapIndex(it.Key(), it.Value())
			if err := checkValue(at, one); err != nil {
				leave(fmt.Errorf("%w: it is left out", err))
				v.SetMapIndex(it.Key(), reflect.Value{})
			}
		}
	}
	err := checkValue(at, v)
	if err != nil {
		leave(fmt.Errorf("%w: it is left out", err))
	}
	return err == nil
}

func pruneSlice(at string, v reflect.Value, leave func(error)) {
	if n := v.Len() - maxEntries; n > 0 {
		leave(fmt.Errorf("%s: %d entries after the first %d are left out", at, n, maxEntries))
		v.SetLen(maxEntries)
	}
	kept := 0
	for i := range v.Len() {
		if pruneValue(fmt.Sprintf("%s.%d", at, i), v.Index(i), leave) {
			v.Index(kept).Set(v.Index(i))
			kept++
		}
	}
	if v.SetLen(kept); kept == 0 {
		v.SetZero()
	}
}

// Encode writes the file: the fields in the order above, options and sources by name.
func (f *File) Encode() ([]byte, error) {
	f.Schema = Schema
	if err := f.Check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Check reports the first thing that no device reports.
func (f *File) Check() error {
	if err := checkValue("", reflect.ValueOf(*f)); err != nil {
		return err
	}
	for _, name := range f.facts() {
		if f.Read[name] == "" {
			return fmt.Errorf("read.%s: the file does not name the source of %s", name, name)
		}
	}
	for name := range f.Read {
		if !slices.Contains(f.facts(), name) {
			return fmt.Errorf("read.%s: the file has no such fact", name)
		}
	}
	if f.Memory != nil && f.Memory.Bytes < minMemory {
		return fmt.Errorf("memory.bytes: %d bytes are no memory of a device", f.Memory.Bytes)
	}
	if err := f.checkNames(); err != nil {
		return err
	}
	return f.checkCPUs()
}

// minMemory is less than any Linux device has.
const minMemory = 1 << 20

// checkNames reports a device that is listed twice.
func (f *File) checkNames() error {
	seen := map[string]bool{}
	add := func(list string, i int, name string) error {
		if seen[list+name] {
			return fmt.Errorf("%s.%d.name: %q is there twice", list, i, name)
		}
		seen[list+name] = true
		return nil
	}
	var errs []error
	for i, d := range f.Devfreq {
		errs = append(errs, add("devfreq", i, d.Name))
	}
	for i, b := range f.Block {
		errs = append(errs, add("block", i, b.Name))
	}
	for i, n := range f.Network {
		errs = append(errs, add("network", i, n.Name))
	}
	return cmp.Or(errs...)
}

// facts lists the JSON names of the facts that the file has.
func (f *File) facts() []string {
	var out []string
	v := reflect.ValueOf(*f)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != "$schema" && name != "read" && !v.Field(i).IsZero() {
			out = append(out, name)
		}
	}
	return out
}

func (f *File) checkCPUs() error {
	if f.CPUs == nil {
		return nil
	}
	present, err := cpulist.Parse(f.CPUs.Present)
	if err != nil || len(present) == 0 {
		return fmt.Errorf("cpus.present: %q is not a list of cores", f.CPUs.Present)
	}
	seen := map[int]bool{}
	for i, p := range f.CPUs.Policies {
		if err := p.check(fmt.Sprintf("cpus.policies.%d", i), present, seen); err != nil {
			return err
		}
	}
	return nil
}

// check reports cores that are not present, or that a policy before it has.
func (p *Policy) check(at string, present []int, seen map[int]bool) error {
	list, err := cpulist.Parse(p.CPUs)
	if err != nil || len(list) == 0 {
		return fmt.Errorf("%s.cpus: %q is not a list of cores", at, p.CPUs)
	}
	for _, core := range list {
		if seen[core] || !slices.Contains(present, core) {
			return fmt.Errorf("%s.cpus: %q: core %d is in two policies or not present", at, p.CPUs, core)
		}
	}
	for _, core := range list {
		seen[core] = true
	}
	return nil
}

// checkValue checks the texts, numbers and lists of a value.
func checkValue(at string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return checkValue(at, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if err := checkValue(strings.TrimPrefix(at+"."+name, "."), v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.Len() > maxEntries {
			return fmt.Errorf("%s: more than %d entries", at, maxEntries)
		}
		if steps, ok := v.Interface().([]int64); ok && !isAscending(steps) {
			return fmt.Errorf("%s: the values do not ascend", at)
		}
		for i := range v.Len() {
			if err := checkValue(fmt.Sprintf("%s.%d", at, i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		if v.Len() > maxOptions {
			return fmt.Errorf("%s: more than %d entries", at, maxOptions)
		}
		for it := v.MapRange(); it.Next(); {
			if err := checkText(at, it.Key().String()); err != nil {
				return err
			}
			if err := checkValue(at+"."+it.Key().String(), it.Value()); err != nil {
				return err
			}
		}
	case reflect.String:
		return checkText(at, v.String())
	case reflect.Int64:
		if v.Int() < 0 && !strings.HasSuffix(at, ".temp") {
			return fmt.Errorf("%s: %d is negative", at, v.Int())
		}
	}
	return nil
}

func isAscending(steps []int64) bool {
	for i := range steps {
		if i > 0 && steps[i] <= steps[i-1] {
			return false
		}
	}
	return true
}

func checkText(at, text string) error {
	if !IsText(text) {
		return fmt.Errorf("%s: not a text of printable ASCII characters, of at most %d bytes", at, maxText)
	}
	return nil
}

// IsText reports whether a board file can hold a text.
func IsText(text string) bool {
	return len(text) <= maxText && !strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e })
}
