package emitters

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"unicode"

	"github.com/Masterminds/sprig/v3"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

// sinks are the functions that may end an action of a template. Each quotes a value
// for one place in one format; none writes a value unquoted.
func sinks() template.FuncMap {
	return template.FuncMap{
		"bb":             quote.BitBakeExpanding,
		"bbvar":          quote.BitBakeVariable,
		"override":       quote.BitBakeOverride,
		"machine":        quote.BitBakeMachine,
		"overrideprefix": func() string { return quote.OverridePrefix },
		"bbregex":        quote.BitBakeRegex,
		"layername":      quote.LayerName,
		"classname":      quote.ClassName,
		"pkg":            quote.Package,
		"version":        quote.Version,
		"sha256":         quote.SHA256,
		"md5":            quote.MD5,
		"licence":        quote.Licence,
		"file":           quote.FileName,
		"url":            quote.SourceURL,
		"mirrorurl":      quote.MirrorURL,
		"ownmirror":      quote.OwnMirrorURL,
		"mirrorpat":      quote.MirrorPattern,
		"hashserve":      quote.HostPort,
		"hostpath":       quote.HostPath,
		"buildpath":      quote.BuildPath,
		"sh":             quote.Shell,
		"comment":        quote.Comment,
		"cpus":           quote.CPUList,
		"sdtext":         quote.SystemdText,
		"sdword":         quote.SystemdWord,
		"sdexec":         quote.SystemdExec,
		"sdenv":          quote.SystemdEnvironment,
		"sdunit":         quote.SystemdTemplate,
		"sdname":         quote.SystemdDirective,
		"sdvalue":        quote.SystemdValue,
		"devpath":        quote.DevicePath,
		"dest":           quote.InstallDest,
		"kernelarg":      quote.KernelArg,
		"tmpfiles":       quote.Tmpfiles,
		"tmpfilestext":   quote.TmpfilesText,
		"udev":           quote.UdevValue,
		"udevmatch":      quote.UdevMatch,
		"udevglob":       quote.UdevGlob,
		"udevattr":       quote.UdevAttribute,
		"udevword":       quote.UdevWord,
		"sysctl":         quote.Sysctl,
		"module":         quote.Module,
		"kconfig":        quote.Kconfig,
		"powermode":      quote.PowerMode,
		"powerline":      quote.PowerParam,
		"md":             quote.Markdown,
		"mdcode":         quote.MarkdownCode,
		"mdrows":         quote.MarkdownRows,
		"number":         quote.Number,
		"host":           quote.Host,
		"yaml":           quote.YAML,
		"collection":     quote.Collection,
		"word":           quote.FileName,
		"int":            formatDecimal,
		"degrees":        formatDegrees,
	}
}

// Template is a template of one artefact. It serves one goroutine.
type Template struct {
	emitter, text string
	t             *template.Template // nil until it is needed: most layers lack most artefacts

	// Of the current run.
	out    bytes.Buffer
	refs   []Ref
	causes []cause
	seen   map[Ref]bool
	last   Ref
}

// largeText is the size of a text, in bytes, from which on a copy of it costs more than the buffer for
// the next one.
const largeText = 1 << 20

// cause is where in the text of a file a part of the configuration begins.
type cause struct {
	offset int
	ref    Ref
}

// NewTemplate returns a template that is parsed when it is first rendered. Only a
// mistake of the program makes that fail; a test parses them all.
func NewTemplate(emitter, text string) *Template {
	return &Template{emitter: emitter, text: text}
}

func (t *Template) parse() error {
	// Only what the text names: to take in all functions costs more than to parse
	// most templates.
	all, own := functions(), template.FuncMap{}
	for _, action := range strings.Split(t.text, "{{")[1:] {
		action, _, _ = strings.Cut(action, "}}")
		for word := range strings.FieldsFuncSeq(action, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if f, known := all[word]; known {
				own[word] = f
			}
		}
	}
	own["cause"] = t.recordCause
	var err error
	t.t, err = template.New(t.emitter).Option("missingkey=error").Funcs(own).Parse(t.text)
	return err
}

// functions are made once: sprig builds its whole table each time.
var functions = sync.OnceValue(Funcs)

// recordCause writes nothing: it records the part of the configuration behind the text
// that follows.
func (t *Template) recordCause(target, id string) string {
	t.last = Ref{Target: target, ID: id}
	t.causes = append(t.causes, cause{t.out.Len(), t.last})
	if !t.seen[t.last] {
		t.seen[t.last] = true
		t.refs = append(t.refs, t.last)
	}
	return ""
}

// Funcs is what templates can call: a few functions of sprig that give the same
// answer each time, and the sinks. The list keeps out functions that read the clock,
// the environment or the network.
func Funcs() template.FuncMap {
	all := sprig.HermeticTxtFuncMap()
	m := sinks()
	for _, name := range []string{"default", "has", "hasPrefix", "hasSuffix", "list", "lower", "replace", "reverse", "ternary", "trimSuffix"} {
		m[name] = all[name]
	}
	// parse puts the template's own in its place.
	m["cause"] = func(string, string) string { return "" }
	return m
}

// Render runs the template. `cause TARGET ID` in it names the part of the
// configuration behind the following text: the ids become origins of the file, and a refusal
// carries the last one.
func (t *Template) Render(data any) ([]byte, []Ref, error) {
	if t.t == nil {
		if err := t.parse(); err != nil {
			return nil, nil, &Error{Emitter: t.emitter, Err: err}
		}
	}
	t.out.Reset()
	t.refs, t.causes, t.seen, t.last = nil, nil, map[Ref]bool{}, Ref{}
	if err := t.t.Execute(&t.out, data); err != nil {
		var refused *quote.Error
		if errors.As(err, &refused) {
			// The line of the template does not help the author of the value.
			err = refused
		}
		return nil, nil, &Error{Emitter: t.emitter, Ref: t.last, Err: err}
	}
	if t.out.Len() > largeText {
		text := t.out.Bytes()
		t.out = bytes.Buffer{}
		return text, t.refs, nil
	}
	return bytes.Clone(t.out.Bytes()), t.refs, nil
}

// Fill renders the template into f.
func (t *Template) Fill(f File, data any) (File, error) {
	b, refs, err := t.Render(data)
	if err != nil {
		return File{}, err
	}
	if f.Mode == 0 {
		f.Mode = 0o644
	}
	f.Data, f.Origins, f.causes = b, refs, t.causes
	return f, nil
}

// FillFor renders the template into f for one target: the data has the fields Layer, a
// name, and Target.
func (t *Template) FillFor(target *plan.Target, layer string, f File) (File, error) {
	f.Machine = target.Machine
	return t.Fill(f, struct {
		Layer  string
		Target *plan.Target
	}{layer, target})
}

func formatDecimal(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return strconv.Itoa(n), nil
	case int64:
		return strconv.FormatInt(n, 10), nil
	case *int:
		return strconv.Itoa(*n), nil
	}
	return "", &quote.Error{Sink: "number", Reason: "it is not an integer"}
}

// formatDegrees writes milli-degrees as whole degrees Celsius.
func formatDegrees(milli int64) (string, error) {
	if milli < 0 || milli%1000 != 0 {
		return "", &quote.Error{Sink: "degrees", Reason: "it is not a whole number of degrees"}
	}
	return strconv.FormatInt(milli/1000, 10), nil
}

// GatedAppend returns a bbappend that requires file only when the layer is enabled and only for
// the given machines, so that the layer changes no signature elsewhere. The names of the
// layer and the machines have been checked, and file is made of the former.
func GatedAppend(path, layer, file string, machines []string) File {
	text := fmt.Appendf(nil, "require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-%s', bb.utils.contains_any('MACHINE', '%s', '%s', '', d), '', d)}\n",
		layer, strings.Join(machines, " "), file)
	return File{Path: path, Mode: 0o644, Data: text}
}
