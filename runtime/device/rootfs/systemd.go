package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

// systemd owns the cgroups of its units and overwrites the writes of other programs.
// Resources are therefore set as properties of the unit by D-Bus, until the next boot
// (systemctl set-property --runtime):
//
//	/sys/fs/cgroup/inference.slice/systemd/AllowedCPUs
//	/sys/fs/cgroup/inference.slice/vision.service/systemd/MemoryMax
//
// If another program has written the file of the cgroup, the file's value is read in place
// of the property, and setting the property corrects both.

// CgroupDir is the mount point of the unified hierarchy.
const CgroupDir = "/sys/fs/cgroup"

// Unset is the text of a property without a value.
const Unset = "unset"

// unitProperty is a property and the cgroup file that it controls.
type unitProperty struct {
	name      string
	file      string
	parse     func(text string) (any, bool)
	format    func(value any) (string, bool)
	parseFile func(file string) string // the file's value as text of the property
	ofUnit    bool                     // a property of every unit, not of services alone
}

// shownProperties are those that are read only, and whether every unit has them.
var shownProperties = map[string]bool{
	"Type": false, "User": false, "Group": false, "SupplementaryGroups": false, "WorkingDirectory": false, "Environment": false, "EnvironmentFiles": false,
	"Restart": false, "RestartUSec": false, "WatchdogUSec": false, "TimeoutStartUSec": false, "TimeoutStopUSec": false,
	"OOMScoreAdjust": false, "LimitMEMLOCK": false, "AmbientCapabilities": false, "CapabilityBoundingSet": false,
	"StartLimitIntervalUSec": true, "StartLimitBurst": true, "After": true, "Wants": true, "Requires": true,
	"AccuracyUSec": false, "RandomizedDelayUSec": false, "FixedRandomDelay": false, "Persistent": false, "WakeSystem": false, "RemainAfterElapse": false,
	"OnClockChange": false, "OnTimezoneChange": false, // of timers
	"ActiveState": true, "FragmentPath": true, "DropInPaths": true, "NeedDaemonReload": true,
}

func lookupProperty(name string) (unitProperty, bool) {
	if ofUnit, ok := shownProperties[name]; ok {
		p := unitProperty{name: name, format: formatShown, ofUnit: ofUnit}
		if strings.Contains(name, "Capabilit") {
			p.format = formatCapabilities
		}
		return p, true
	}
	weight := func(line string) string {
		line, _, _ = strings.Cut(line, "\n")
		return strings.TrimPrefix(line, "default ")
	}
	number := func(file string, parseFile func(string) string) unitProperty {
		return unitProperty{name, file, parseNumber, formatNumber, parseFile, false}
	}
	p, ok := map[string]unitProperty{
		"AllowedCPUs":        {name, "cpuset.cpus", parseCPUs, formatCPUs, strings.TrimSpace, false},
		"CPUWeight":          number("cpu.weight", weight),
		"IOWeight":           number("io.weight", weight),
		"MemoryMax":          number("memory.max", strings.TrimSpace),
		"MemoryHigh":         number("memory.high", strings.TrimSpace),
		"CPUQuotaPerSecUSec": number("cpu.max", parseQuota), // µs of processor time in a second
	}[name]
	return p, ok
}

func parseNumber(text string) (any, bool) {
	if text == Unset {
		return uint64(math.MaxUint64), true
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return n, err == nil
}

func formatNumber(value any) (string, bool) {
	n, ok := value.(uint64)
	if n == math.MaxUint64 {
		return Unset, ok
	}
	return strconv.FormatUint(n, 10), ok
}

// formatShown formats the value of a property that is read only: a list has a line for each element.
func formatShown(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v], true
	case int32, uint32:
		return fmt.Sprint(v), true
	case uint64:
		if v == math.MaxUint64 {
			return plan.Infinity, true
		}
		return strconv.FormatUint(v, 10), true
	case []string:
		return strings.Join(v, "\n"), true
	case [][]any: // files, which may be absent
		lines := make([]string, len(v))
		for i, file := range v {
			if len(file) != 2 {
				return "", false
			}
			lines[i] = fmt.Sprint(file[0])
			if file[1] == true {
				lines[i] = "-" + lines[i]
			}
		}
		return strings.Join(lines, "\n"), true
	}
	return "", false
}

// capabilities are the names of the kernel's, by their number (include/uapi/linux/capability.h).
var capabilities = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
	SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP
	MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// formatCapabilities lists the capabilities of a set, sorted.
func formatCapabilities(value any) (string, bool) {
	set, ok := value.(uint64)
	var names []string
	for n, name := range capabilities {
		if set>>n&1 == 1 {
			names = append(names, "CAP_"+name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "\n"), ok
}

// parseCPUs converts a list to systemd's form, a bit for each CPU with the lowest first.
func parseCPUs(text string) (any, bool) {
	if text == Unset {
		return []byte{}, true
	}
	cpus, err := cpulist.Parse(text)
	if err != nil || len(cpus) == 0 {
		return nil, false
	}
	mask := make([]byte, slices.Max(cpus)/8+1)
	for _, c := range cpus {
		mask[c/8] |= 1 << (c % 8)
	}
	return mask, true
}

func formatCPUs(value any) (string, bool) {
	mask, ok := value.([]byte)
	var cpus []int
	for n := range 8 * len(mask) {
		if mask[n/8]>>(n%8)&1 == 1 {
			cpus = append(cpus, n)
		}
	}
	return cmp.Or(cpulist.Format(cpus), Unset), ok
}

// parseQuota parses cpu.max, "MAX PERIOD" in µs; systemd chooses the period.
func parseQuota(file string) string {
	f := strings.Fields(file)
	if len(f) != 2 {
		return ""
	}
	limit, err := strconv.ParseUint(f[0], 10, 40)
	period, err2 := strconv.ParseUint(f[1], 10, 40)
	if err != nil || err2 != nil || period == 0 {
		return f[0]
	}
	return strconv.FormatUint(limit*1_000_000/period, 10)
}

// matchesFile reports whether a cgroup file has the value of a property, up to rounding:
// memory is rounded to pages, and quotas to microseconds of a period.
func (p unitProperty) matchesFile(property, file string) bool {
	if property == file {
		return true
	}
	a, err := strconv.ParseUint(property, 10, 63)
	b, err2 := strconv.ParseUint(file, 10, 63)
	if err != nil || err2 != nil {
		return false
	}
	step := uint64(0)
	switch p.name {
	case "MemoryMax", "MemoryHigh":
		step = uint64(os.Getpagesize())
	case "CPUQuotaPerSecUSec":
		step = a/1000 + 1
	}
	return max(a, b)-min(a, b) < step
}

// IsUnitDir reports whether name is the cgroup of a unit.
func IsUnitDir(name string) bool {
	return strings.HasPrefix(name, CgroupDir+"/") && isUnit(path.Base(name))
}

// isUnit reports whether a cgroup directory has the name of a unit.
func isUnit(name string) bool { return unitInterface(name) != "" }

// unitInterface returns the D-Bus interface of a unit's type. A timer has no cgroup, and its properties are
// below the folder that it would have.
func unitInterface(name string) string {
	for suffix, kind := range map[string]string{".service": "Service", ".slice": "Slice", ".scope": "Scope", ".timer": "Timer"} {
		if len(name) > len(suffix) && strings.HasSuffix(name, suffix) {
			return systemdName + "." + kind
		}
	}
	return ""
}

const (
	systemdName = "org.freedesktop.systemd1"
	systemdPath = "/org/freedesktop/systemd1"
	// systemdSocket is systemd's private socket for root, available before the bus.
	systemdSocket  = "unix:path=/run/systemd/private"
	systemdTimeout = 10 * time.Second // it may be slow during boot
	systemdIdle    = time.Second
)

// isSystemdRunning does the same as sd_booted(3).
func isSystemdRunning() bool {
	st, err := os.Lstat("/run/systemd/system")
	return err == nil && st.IsDir()
}

// unitNode is a property of a unit.
type unitNode struct {
	unit, dir string
	property  unitProperty
}

func (n unitNode) read(r *Root) (string, error) {
	var value dbus.Variant
	err := r.systemd.call(func(ctx context.Context, conn *dbus.Conn) error {
		return conn.Object(systemdName, unitPath(n.unit)).
			CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, n.interfaceName(), n.property.name).Store(&value)
	})
	if err != nil {
		return "", err
	}
	text, ok := n.property.format(value.Value())
	if !ok {
		return "", fmt.Errorf("unexpected value %s of systemd: %w", value, unix.EOPNOTSUPP)
	}
	if text == Unset || n.property.file == "" {
		return text, nil
	}
	// The file exists only if its controller is enabled.
	if c, err := r.Read(n.dir + "/" + n.property.file); err == nil {
		if given := n.property.parseFile(strings.TrimSpace(c.Text)); given != "" && !n.property.matchesFile(text, given) {
			return given, nil
		}
	}
	return text, nil
}

// interfaceName returns the D-Bus interface that has the property.
func (n unitNode) interfaceName() string {
	if n.property.ofUnit {
		return systemdName + ".Unit"
	}
	return unitInterface(n.unit)
}

func (n unitNode) write(r *Root, text string) error {
	if n.property.parse == nil {
		return unix.EROFS
	}
	value, ok := n.property.parse(text)
	if !ok {
		return unix.EINVAL
	}
	type property struct {
		Name  string
		Value dbus.Variant
	}
	return r.systemd.call(func(ctx context.Context, conn *dbus.Conn) error {
		set := []property{{n.property.name, dbus.MakeVariant(value)}}
		const runtime = true // until the next boot
		return conn.Object(systemdName, systemdPath).
			CallWithContext(ctx, systemdName+".Manager.SetUnitProperties", 0, n.unit, runtime, set).Err
	})
}

// UnitState is the state of a unit.
type UnitState struct {
	Load   string `json:"load"`   // loaded, not-found, masked, ...
	Active string `json:"active"` // active, inactive, failed, activating, ...
}

// UnitStates queries units by name. It fails for a tree, which has no running systemd.
func (r *Root) UnitStates(names []string) (map[string]UnitState, error) {
	if !r.Running() || !isSystemdRunning() {
		return nil, fmt.Errorf("systemd is not running: %w", fs.ErrNotExist)
	}
	// Name, description, load, active, sub, following, path, job, its type and path.
	var rows [][]any
	err := r.systemd.call(func(ctx context.Context, conn *dbus.Conn) error {
		return conn.Object(systemdName, systemdPath).CallWithContext(ctx, systemdName+".Manager.ListUnitsByNames", 0, names).Store(&rows)
	})
	if err != nil {
		return nil, err
	}
	out := map[string]UnitState{}
	for _, row := range rows {
		if len(row) < 4 {
			continue
		}
		name, _ := row[0].(string)
		load, _ := row[2].(string)
		active, _ := row[3].(string)
		out[name] = UnitState{load, active}
	}
	return out, nil
}

// unitPath returns the object path of a unit. Characters other than letters and digits, and
// a leading digit, are escaped.
func unitPath(unit string) dbus.ObjectPath {
	var b strings.Builder
	for i, c := range []byte(unit) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return dbus.ObjectPath(systemdPath + "/unit/" + b.String())
}

// systemd is a connection that is closed when idle, to save an idle enforcer a thread and
// its memory.
type systemd struct {
	lock sync.Mutex
	conn *dbus.Conn
	idle *time.Timer
}

// call connects to systemd unless it is connected, and calls do with the connection.
func (s *systemd) call(do func(context.Context, *dbus.Conn) error) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), systemdTimeout)
	defer cancel()
	if s.conn == nil {
		conn, err := dialSystemd()
		if err != nil {
			return err
		}
		s.conn, s.idle = conn, time.AfterFunc(systemdIdle, s.close)
	}
	s.idle.Reset(systemdIdle)
	err := do(ctx, s.conn)
	if !s.conn.Connected() {
		_ = s.conn.Close()
		s.conn = nil
	}
	return wrapRefusal(err)
}

func (s *systemd) close() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

func dialSystemd() (*dbus.Conn, error) {
	conn, err := dbus.Dial(systemdSocket)
	if err == nil {
		if err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err == nil {
			return conn, nil
		}
		_ = conn.Close()
	}
	// Use the bus if this process is not root or systemd has no private socket.
	conn, err2 := dbus.ConnectSystemBus()
	if err2 != nil {
		return nil, fmt.Errorf("cannot connect to systemd (%w; %w): %w", err, err2, fs.ErrNotExist)
	}
	return conn, nil
}

// wrapRefusal wraps systemd's refusals with the matching errno.
func wrapRefusal(err error) error {
	var refused dbus.Error
	if !errors.As(err, &refused) {
		return err
	}
	var errno error
	switch refused.Name {
	case systemdName + ".NoSuchUnit":
		errno = fs.ErrNotExist
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
		errno = unix.EACCES
	case "org.freedesktop.DBus.Error.InvalidArgs":
		errno = unix.EINVAL
	case "org.freedesktop.DBus.Error.UnknownProperty", "org.freedesktop.DBus.Error.PropertyReadOnly", "org.freedesktop.DBus.Error.UnknownInterface":
		errno = unix.EOPNOTSUPP
	default:
		return fmt.Errorf("systemd: %w", err)
	}
	return fmt.Errorf("systemd: %w: %w", err, errno)
}
