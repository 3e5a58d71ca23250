package plan

import (
	"reflect"
	"slices"
	"strings"
)

// Layer is the input of every emitter: one Yocto layer for one release.
type Layer struct {
	Name        string // collection and layer name, [a-z][a-z0-9-]*
	Maintainer  string // "Name <mail>"
	Description string
	Priority    int      // BBFILE_PRIORITY
	Version     int      // LAYERVERSION
	Depends     []string // collections of LAYERDEPENDS besides those that every layer needs
	Release     string
	CoreOnly    bool      // for boards without a BSP of NVIDIA's: openembedded-core alone
	Targets     []*Target // sorted by name; each has its own MACHINE
	Build       Build
	Suppressed  []Suppression
	Runtime     Runtime
	Origins     Origins // of layer.*, build.*, runtime.*
}

// Feature is the distro feature that switches the layer on.
func (l *Layer) Feature() string { return "yoctune-" + l.Name }

// FindTarget returns the target of that name, nil if there is none.
func (l *Layer) FindTarget(name string) *Target {
	i, ok := slices.BinarySearchFunc(l.Targets, name, func(t *Target, name string) int { return strings.Compare(t.Name, name) })
	if !ok {
		return nil
	}
	return l.Targets[i]
}

// Target is one machine of the layer. Ids of its parts, the keys of Origins:
//
//	sysctl.<key> · cpu.<field> · gpu.<field> · memory.<field> · storage.<glob>.<field>
//	irq.affinity.<name> · network.<glob>.<field> · modules.<name>
//	kernel.config.<SYMBOL> · kernel.args.<name> · kernel.preempt
//	power.default · power.modes.<NAME> · fan.<field> · fan.profiles.<NAME> · services.<unit> · packages.<name> · pipelines.<name>
type Target struct {
	Name      string
	Board     string
	Machine   string
	Plan      *Plan // complete, with digest
	Kernel    Kernel
	Modules   []Module
	Slices    []Slice
	Services  []Service
	Packages  []Package
	ZRAM      *ZRAM
	Tmpfs     []Tmpfs // sorted by path
	Fan       *Fans
	Models    []ModelFile   // sorted by SHA256
	Files     []CarriedFile // of the configuration's folder, sorted by path
	Benchmark bool          // the image contains the benchmarks of yoctuned, if it contains yoctuned
	Origins   Origins

	Overrides []Override // sorted by ID
}

// Serial returns the serial of the plans.
func (l *Layer) Serial() int64 {
	serial := int64(0)
	for _, t := range l.Targets {
		serial = max(serial, t.Plan.Serial)
	}
	return serial
}

// Serves reports whether the target's image contains yoctuned-serve.
func (t *Target) Serves() bool {
	for _, p := range t.Plan.Pipelines {
		if p.Serves() {
			return true
		}
	}
	return t.Measures() || t.Plan.Cluster != nil
}

// Measures reports whether the target serves its measurements.
func (t *Target) Measures() bool { return t.Plan.Monitor != nil && t.Plan.Monitor.Metrics }

// Override is a value of a profile that the target's own fields replaced.
type Override struct {
	ID       string // as in Origins
	Profile  string
	Position Position // of the profile's value
}

// Kernel is what the kernel's recipe and command line need.
type Kernel struct {
	Recipes  []string       // PNs to append to, e.g. linux-jammy-nvidia-tegra
	Provider string         // PREFERRED_PROVIDER_virtual/kernel to set, "" to leave the BSP's
	By       string         // id of what chose Provider: kernel.preempt, kernel.recipe
	Version  string         // version line of Provider, "" for the one that the release has
	Config   []ConfigOption // in the order of the fragment: sorted by symbol
	Args     []Arg          // in command-line order: sorted by name
	Removed  []RemovedArg   // sorted by name
}

// RemovedArg is an argument that the machine sets itself and the target does without.
type RemovedArg struct {
	Name  string
	Words []Arg // as KERNEL_ARGS has it: console, for instance, more than once
}

// ConfigOption is one line of a kernel fragment.
type ConfigOption struct {
	Symbol string // without CONFIG_
	Value  string // y, m, n, a number, 0x…, or text
	Quoted bool   // text: written in quotes
}

// Arg is one kernel argument; Flag has no value.
type Arg struct {
	Name  string
	Value string
	Flag  bool
}

// Module is a kernel module to load at boot or to keep from loading.
type Module struct {
	Name   string
	Action string // load, blacklist
}

// Slice is a systemd slice of the layer.
type Slice struct {
	Name string // inference.slice
	CPUs string // AllowedCPUs, cpu list; "" leaves it
}

// Service is a systemd service unit, or a drop-in for a unit that something else installs. Of numbers, 0 leaves systemd's; of time spans, "" does.
type Service struct {
	Name        string // vision.service
	Description string
	Exec        []string // argv; first word an absolute path
	Type        string   // simple, exec, notify, oneshot
	User        string   // name or number
	Group       string
	Groups      []string // supplementary
	Directory   string   // working directory
	Slice       string   // inference.slice
	After       []string
	Wants       []string
	Requires    []string

	Environment      map[string]string
	EnvironmentFiles []string              // may begin with "-"
	Commands         map[string][][]string // argvs by directive, such as ExecStartPre; the program may have prefixes
	Spans            map[string]string     // time spans by directive, such as RestartSec: 3, 1500ms, infinity
	Capabilities     map[string][]string   // by directive; an empty list is a value
	OOMScore         *int                  // OOMScoreAdjust
	StartLimitBurst  int

	CPUs       string // AllowedCPUs / CPUAffinity, cpu list
	Nice       *int
	Scheduling string // other, batch, idle, fifo, rr
	Priority   int    // 1–99 with fifo and rr
	MemoryMax  int64  // bytes
	MemoryHigh int64  // bytes
	CPUWeight  int    // 1 to 10000
	IOWeight   int    // 1 to 10000
	CPUQuota   int    // percent of one core
	MemoryLock bool   // LimitMEMLOCK=infinity
	Restart    string // of Restart=
	Enable     bool
	Hardening  bool // sandbox options on

	Verbatim   []Directive // by section and name, in the order of the configuration
	OwnInstall bool        // the section [Install] is that of Verbatim, or absent

	Timer *Timer // starts the service in place of the boot
}

// Timer is the timer of a service.
type Timer struct {
	Name        string // vision.timer
	Description string
	DropIn      bool // another recipe brings the timer
	Enable      bool
	Fields      []Directive // of [Timer], as systemd reads them
	Verbatim    []Directive // by section and name, in the order of the configuration
	OwnInstall  bool        // the section [Install] is that of Verbatim, or absent
}

// IsTemplate reports whether the unit is a template, of which systemd runs instances.
func (t *Timer) IsTemplate() bool { return strings.HasSuffix(t.Name, "@.timer") }

// Values returns the verbatim values of a directive.
func (t *Timer) Values(section, name string) []string { return valuesOf(t.Verbatim, section, name) }

// SetsTimes reports whether a directive of [Timer] sets when the service starts: an empty one of
// them resets all.
func (d Directive) SetsTimes() bool {
	return d.Section == "Timer" && slices.Contains([]string{"OnActiveSec", "OnBootSec", "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec", "OnCalendar"}, d.Name)
}

// Directive is a directive of a unit with its value as systemd reads it.
type Directive struct {
	Section, Name, Value string
}

// Values returns the verbatim values of a directive.
func (s *Service) Values(section, name string) []string { return valuesOf(s.Verbatim, section, name) }

func valuesOf(directives []Directive, section, name string) []string {
	var all []string
	for _, d := range directives {
		if d.Section == section && d.Name == name {
			all = append(all, d.Value)
		}
	}
	return all
}

// IsTemplate reports whether the unit is a template, of which systemd runs instances.
func (s *Service) IsTemplate() bool { return strings.HasSuffix(s.Name, "@.service") }

// IsWhole reports whether the layer writes the whole unit. A drop-in that replaces a command
// begins with an empty one.
func (s *Service) IsWhole() bool {
	commands := s.Values("Service", "ExecStart")
	return len(s.Exec) > 0 || len(commands) > 0 && commands[0] != ""
}

// ChangesNothing reports whether a drop-in has no directives: the entry is there for its timer alone.
func (s *Service) ChangesNothing() bool {
	bare := *s
	bare.Name, bare.Timer, bare.Enable, bare.Hardening = "", nil, false, false
	v := reflect.ValueOf(bare)
	for i := range v.NumField() {
		if !isEmpty(v.Field(i)) {
			return false
		}
	}
	return true
}

// IsRoot reports whether a service's programs run as root.
func (s *Service) IsRoot() bool {
	user := s.User
	for _, u := range s.Values("Service", "User") {
		user = u
	}
	return user == "" || user == "root" || user == "0"
}

// Package is a package to add to or keep out of images.
type Package struct {
	Name   string
	Action string // install, exclude
}

// ModelFile is a model of a pipeline, or its labels, that the layer installs on the
// device.
type ModelFile struct {
	ID     string // pipelines.<name>.stages.<stage> of the first that uses it
	URI    string // where bitbake fetches it
	SHA256 string
	Name   string // of the file among the models; "" for its digest

	Member  string // of the archive at URI; "" when the file itself is there
	Archive string // digest of the archive
}

// archives are the names of archives that bitbake unpacks by itself, and under which it
// does: a wheel is a zip archive.
var archives = []struct{ suffix, as string }{
	{".whl", ".zip"}, {".zip", ".zip"}, {".tar", ".tar"}, {".tar.gz", ".tar.gz"}, {".tgz", ".tar.gz"}, {".tar.bz2", ".tar.bz2"}, {".tar.xz", ".tar.xz"},
}

// ArchiveType returns the suffix under which bitbake unpacks the archive at URI, "" for
// what it does not unpack.
func (m ModelFile) ArchiveType() string {
	address, _, _ := strings.Cut(m.URI, "?")
	for _, a := range archives {
		if strings.HasSuffix(address, a.suffix) {
			return a.as
		}
	}
	return ""
}

// CarriedFile is a file beside the configuration that the layer contains, for a pipeline:
// a model, its labels, or frames.
type CarriedFile struct {
	ID     string // part of the configuration that names it
	Path   string // relative and clean: below the configuration's folder, and below the plan's on the device
	SHA256 string
	Data   []byte
}

// Fans is what the layer makes of the BSP's nvfancontrol.conf.
type Fans struct {
	Fan                   // without its curve: profiles have them all
	Profiles []FanProfile // added to the file, by name
}

// FanProfile is a profile of nvfancontrol.
type FanProfile struct {
	Name  string
	Curve []FanPoint // rising temperature
}

// Tmpfs is a file system in memory.
type Tmpfs struct {
	Path   string
	Bytes  int64
	Mode   string // octal
	Inodes int64  // 0: the kernel's default
}

// ZRAM is a compressed swap device made at boot.
type ZRAM struct {
	Bytes     int64
	Algorithm string
}

// Suppression is a rule that the configuration switches off.
type Suppression struct {
	Rule   string
	Reason string
}

// Build is the build-side configuration, written to the settings file.
type Build struct {
	Threads         int  // BB_NUMBER_THREADS, 0: unset
	MakeJobs        int  // PARALLEL_MAKE, 0: unset
	DownloadThreads int  // number_threads of do_fetch, 0: unset
	RmWork          bool // INHERIT += "rm_work"
	Off             Off
	SStateMirrors   []Mirror
	Premirrors      []Mirror
	HashServe       string // BB_HASHSERVE, "" leaves it
	HashUpstream    string // BB_HASHSERVE_UPSTREAM
	SStateDir       string
	DownloadDir     string
	PressureCPU     int // BB_PRESSURE_MAX_CPU, 0: unset
	PressureIO      int
	PressureMemory  int

	OwnMirror      string          // SOURCE_MIRROR_URL of own-mirrors
	MirrorTarballs bool            // BB_GENERATE_MIRROR_TARBALLS
	Network        string          // any, mirrors, none; "" leaves it
	Hosts          []string        // BB_ALLOWED_NETWORKS
	HashOff        bool            // BB_SIGNATURE_HANDLER = "OEBasicHash"
	HashDatabase   string          // BB_HASHSERVE_DB_DIR
	HashServer     *HashServer     // nil: none of our own
	LoadFactor     string          // BB_LOADFACTOR_MAX, decimal text; "" leaves it
	RecipeJobs     []RecipeJobs    // by recipe, sorted
	RmWorkExclude  []string        // RM_WORK_EXCLUDE
	PackageFormat  string          // ipk, rpm, deb; "" leaves it
	ImageFeatures  []string        // added to IMAGE_FEATURES
	NoFeatures     []string        // removed from IMAGE_FEATURES
	PackageConfigs []PackageConfig // by recipe, sorted
	Distro         Words           // of DISTRO_FEATURES
	MachineWords   Words           // of MACHINE_FEATURES
	DiskMonitors   []DiskMonitor   // in the order of BB_DISKMON_DIRS
	ReadOnlyRoot   bool
	NotRecommended []string   // packages whose recommendations are ignored: BAD_RECOMMENDATIONS
	Optional       []Optional // by collection, sorted
	Kas            *Kas       // nil: no files for kas
	BitBakeSetup   bool       // files for bitbake-setup
	Variables      []Variable // by name, sorted
}

// Off are switches that the configuration declares off: another file may have them on.
type Off struct{ RmWork, HashOff, MirrorTarballs, ReadOnlyRoot bool }

// HashServer is a hash equivalence server that several builders share.
type HashServer struct {
	BitBake  string // checkout of bitbake on its machine
	Listen   string // [ws://][host]:port
	Upstream string // "" for none
	ReadOnly bool
}

// PackageConfig changes PACKAGECONFIG of one recipe.
type PackageConfig struct {
	Recipe string
	Words
}

// Words are what a list gains and loses.
type Words struct{ Append, Remove []string }

// DiskMonitor is an entry of BB_DISKMON_DIRS.
type DiskMonitor struct {
	ID     string // part of the configuration
	Action string // WARN, STOPTASKS or HALT
	Path   string
	KiB    int64 // free space, 0 for no limit
	Inodes int64
}

// RecipeJobs is PARALLEL_MAKE of one recipe.
type RecipeJobs struct {
	Recipe string
	Jobs   int
}

// Optional names packages to install where a layer of that collection is present.
type Optional struct {
	Collection  string
	Packages    []string
	Recommended []Recommended // what pipelines need of that layer, by machine
}

// Recommended is a package that one machine's image gets where it exists.
type Recommended struct {
	Target  string
	Machine string
	ID      string // what needs it
	Package string
}

// Kas is what a configuration for kas needs besides the layer.
type Kas struct {
	Image  string
	Distro string
	Folder string // of the layer inside its repository, "." for the top
}

// Variable is a variable of the build that no field of [Build] stands for.
type Variable struct {
	Name   string
	Set    bool // Value replaces what it has
	Value  string
	Append []string // words
	Remove []string // words
}

// Mirror is one line of SSTATE_MIRRORS or PREMIRRORS.
type Mirror struct {
	ID      string // name in the configuration
	Pattern string // regular expression over the fetch URL
	URL     string
}

// Forms of the runtime.
const (
	RuntimeBundled  = "bundled"  // the layer contains the program
	RuntimeSource   = "source"   // a recipe compiles it
	RuntimePrebuilt = "prebuilt" // a recipe fetches it
	RuntimeNone     = "none"     // the layer installs no program
)

// Runtime is how the layer installs yoctuned.
type Runtime struct {
	Form    string // one of the forms; "" is none
	Version string
	Files   []RuntimeFile // what the recipes take, by name
	Keys    []PublicKey   // whose signatures the device accepts; by name
	CUDA    bool          // add yoctune-cuda
}

// Installed reports whether the layer installs the program.
func (r *Runtime) Installed() bool { return r.Form != "" && r.Form != RuntimeNone }

// Bundled reports whether the layer contains the program.
func (r *Runtime) Bundled() bool { return r.Form == RuntimeBundled }

// PublicKey is a minisign public key.
type PublicKey struct {
	Name string
	Key  string // as minisign -P takes it
}

// RuntimeFile is one file of the runtime: a program, its licences, its sources.
type RuntimeFile struct {
	Name     string // yoctuned-arm64, yoctuned-source, yoctuned-licenses, …
	URI      string // where it is fetched; the file's name when the layer contains it
	SHA256   string
	Data     []byte   // of a file that the layer contains
	Licences []string // of NAME-licenses: SPDX identifiers of all that is linked into the program
	MD5      string   // of NAME-licenses
}
