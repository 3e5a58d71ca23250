// Package linux holds facts about the kernel arguments and modules of the kernels that
// package kernel describes. They were extracted from the sources that [Sources] names, by
// internal/cmd/facts.
package linux

import (
	_ "embed"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/nametable"
	"github.com/yoctune/yoctune/schema/spelling"
)

//go:embed args.bin
var argData []byte

//go:embed modules.bin
var moduleData []byte

var (
	argTable = sync.OnceValue(func() *nametable.Table { return nametable.Open(argData) })
	modTable = sync.OnceValue(func() *nametable.Table { return nametable.Open(moduleData) })
)

// How an argument is registered, and thus who reads it and when.
const (
	SetupValue = 's' // __setup("name="): read only with a value
	SetupPlain = 'p' // __setup("name"): with or without one
	Early      = 'e' // early_param
	Core       = 'c' // core_param
	Module     = 'm' // a parameter of a module, read when the module is loaded, too
	Override   = 'o' // arm64's overrides of processor features
	Documented = 'd' // only documented: nothing is known about its value
	User       = 'u' // a program reads it: systemd, dracut or the BSP's initial file system
)

// Arg is an argument of one kernel, or of the programs that read its command line.
type Arg struct {
	Name  string
	Kinds string // the constants above
	// Value is what the argument takes: a type of module parameters (int, bool, charp and so
	// on), "size", "size@", "cores", "cores,", "number" or "words:A|B"; "" where it is not known.
	Value string
	// Needs are alternatives, each of them options that must all be on. NAME=y has to be built in.
	// There are none where the argument is always read.
	Needs [][]string
	// Arch is the architecture that reads the argument where arm64 does not. "other" where no
	// kernel for arm64 has the code.
	Arch string
	// By is the program that reads it.
	By string
}

// Takes reports whether the argument is registered in one of the ways.
func (a Arg) Takes(kinds string) bool { return strings.ContainsAny(a.Kinds, kinds) }

// FindArg returns an argument of a kernel, such as "5.15". The kernel takes - and _ for the
// same character.
func FindArg(line, name string) (Arg, bool) {
	n := lineIndex(line)
	rest, ok := argTable().Find(Fold(name))
	if !ok || n < 0 {
		return Arg{}, false
	}
	return parseArg(Fold(name), rest, n)
}

func parseArg(name, rest string, n int) (Arg, bool) {
	for variant := range strings.SplitSeq(rest, "\t") {
		f := strings.Split(variant, ";")
		if len(f) != 6 || !holds(f[0], n) {
			continue
		}
		a := Arg{Name: name, Kinds: f[1], Value: f[2], Arch: f[4], By: f[5]}
		if f[3] != "" {
			for alternative := range strings.SplitSeq(f[3], "/") {
				a.Needs = append(a.Needs, strings.Split(alternative, "&"))
			}
		}
		return a, true
	}
	return Arg{}, false
}

// Args yields the arguments of a kernel by name.
func Args(line string) iter.Seq[Arg] {
	n := lineIndex(line)
	return func(yield func(Arg) bool) {
		for name, rest := range argTable().All() {
			if a, ok := parseArg(name, rest, n); ok && name[0] != '!' && !yield(a) {
				return
			}
		}
	}
}

// Mod is a module of one kernel.
type Mod struct {
	Name string
	// Options build it: each of them alone. There are none where a recipe of the BSP builds it.
	Options []string
	// Of is the module that an alias stands for.
	Of []string
}

// OutOfTree reports whether the BSP builds the module outside of the kernel.
func (m Mod) OutOfTree() bool { return len(m.Options) == 0 && len(m.Of) == 0 }

// FindModule returns a module of a kernel by its name or an alias.
func FindModule(line, name string) (Mod, bool) {
	n := lineIndex(line)
	rest, ok := modTable().Find(Fold(name))
	if !ok || n < 0 {
		return Mod{}, false
	}
	return parseMod(Fold(name), rest, n)
}

func parseMod(name, rest string, n int) (Mod, bool) {
	for variant := range strings.SplitSeq(rest, "\t") {
		f := strings.Split(variant, ";")
		if len(f) != 3 || !holds(f[0], n) {
			continue
		}
		m := Mod{Name: name}
		if f[1] != "" {
			m.Options = strings.Split(f[1], "/")
		}
		if f[2] != "" {
			m.Of = strings.Split(f[2], "/")
		}
		return m, true
	}
	return Mod{}, false
}

// Modules yields the modules of a kernel by name, aliases included.
func Modules(line string) iter.Seq[Mod] {
	n := lineIndex(line)
	return func(yield func(Mod) bool) {
		for name, rest := range modTable().All() {
			if strings.HasPrefix(name, optionPrefix) {
				continue
			}
			if m, ok := parseMod(name, rest, n); ok && !yield(m) {
				return
			}
		}
	}
}

// ModulesOf returns the modules that an option builds.
func ModulesOf(line, option string) []string {
	rest, ok := modTable().Find(optionPrefix + option)
	if !ok {
		return nil
	}
	m, _ := parseMod(option, rest, lineIndex(line))
	return m.Of
}

// PackageOf is the package of a module (openembedded-core kernel-module-split.bbclass).
func PackageOf(module string) string {
	return "kernel-module-" + strings.ReplaceAll(strings.ToLower(module), "_", "-")
}

// optionPrefix is that of the lines that list modules by option.
const optionPrefix = "CONFIG_"

// Fold writes a name as the kernel compares it (kernel/params.c: dash2underscore).
func Fold(name string) string { return strings.ReplaceAll(name, "-", "_") }

// NearestArg returns the argument that a slip turns into name, and the number of letters that
// differ; "" where there is none.
func NearestArg(line, name string) (near string, distance int) {
	return nearest(name, argNames(line))
}

// HasArg reports whether an arm64 kernel, or a program, reads an argument. It is quicker than
// [FindArg] where many names are tried.
func HasArg(line, name string) bool {
	_, ok := slices.BinarySearch(argNames(line), Fold(name))
	return ok
}

// NearestModule returns the module that a slip turns into name; "" where there is none.
func NearestModule(line, name string) string {
	near, _ := nearest(name, moduleNames(line))
	return near
}

var argNames = remember(func(line string) []string {
	var names []string
	for a := range Args(line) {
		if a.Arch == "" {
			names = append(names, a.Name)
		}
	}
	return names
})

var moduleNames = remember(func(line string) []string {
	var names []string
	for m := range Modules(line) {
		names = append(names, m.Name)
	}
	return names
})

// remember keeps the list of each kernel: a configuration can hold many unknown names.
func remember(list func(string) []string) func(string) []string {
	var known sync.Map
	return func(line string) []string {
		names, ok := known.Load(line)
		if !ok {
			names, _ = known.LoadOrStore(line, list(line))
		}
		return names.([]string)
	}
}

func nearest(name string, names []string) (near string, distance int) {
	name = Fold(name)
	limit := 1
	if len(name) > 7 {
		limit = 2
	}
	distance = limit + 1
	for _, n := range names {
		if d := spelling.DistanceWithin(name, n, limit); d < distance {
			near, distance = n, d
		}
	}
	return near, distance
}

// Cpulist describes which words a list of processors may hold on a kernel.
func Cpulist(line string) (lastN, all bool) {
	_, lastN = FindArg(line, "!cpulist.N")
	_, all = FindArg(line, "!cpulist.all")
	return lastN, all
}

// CommandLineSize returns the bytes that an arm64 kernel keeps of its command line, with the zero at its end; 0
// where it is not known.
func CommandLineSize(line string) int {
	a, _ := FindArg(line, "!cmdline")
	n, _ := strconv.Atoi(a.Value)
	return n
}

// lineIndex is the place of a kernel in the masks of the tables.
func lineIndex(line string) int {
	return slices.IndexFunc(kernel.Sets(), func(s kernel.Set) bool { return s.Name == line })
}

// perLine returns a function that reads what the tables hold about a kernel, once for each.
func perLine[T any](read func(n int) []T) func(line string) []T {
	var lines sync.Map // of func() []T
	return func(line string) []T {
		once, _ := lines.LoadOrStore(line, sync.OnceValue(func() []T { return read(lineIndex(line)) }))
		return once.(func() []T)()
	}
}

func holds(mask string, n int) bool {
	m, err := strconv.ParseUint(mask, 16, 16)
	return err == nil && n >= 0 && m>>n&1 == 1
}
