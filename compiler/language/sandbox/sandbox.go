// Package sandbox evaluates HCL and Jsonnet in a child process of the same program.
//
// Neither language bounds its evaluation, and a Go process cannot survive running out of
// stack or memory. The child therefore limits its own memory and processor time before it
// reads the configuration, and the parent limits the elapsed time. If the child dies, a
// diagnostic names the file that it was evaluating. The child never opens a file: it
// requests imports from the parent, which reads only below the configuration's folder.
//
// A program that uses a [FrontEnd] must also run as the child:
//
//	if sandbox.IsChild(os.Args[1:]) {
//		os.Exit(sandbox.Serve(os.Stdin, os.Stdout))
//	}
package sandbox

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/hcl"
	"github.com/yoctune/yoctune/compiler/language/jsonnet"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// command is the argument that selects the child.
const command = "__evaluate"

// marker is set in the child's environment. A program that does not call
// [Serve] would otherwise start itself over and over.
const marker = "YOCTUNE_EVALUATES"

// Limits of an evaluation.
const (
	maxMemory  = 2 << 30     // address space, in bytes
	maxCPU     = 5           // seconds of processor time
	maxStack   = 64 << 20    // of one goroutine, in bytes
	maxClock   = time.Minute // from start to end; a busy machine gives processor time slowly
	maxReply   = 256 << 20   // bytes from the child
	maxImports = 1000
)

// FrontEnd evaluates HCL and Jsonnet files for package load.
type FrontEnd struct {
	Root fs.FS             // the configuration's folder, for imports; nil when there is none
	Vars map[string]string // given on the command line
	// Changed are texts that replace those of imported files, by path below the folder.
	Changed map[string][]byte
}

var _ load.FrontEnd = FrontEnd{}

// Reads implements [load.FrontEnd].
func (FrontEnd) Reads(name string) bool {
	ext := filepath.Ext(name)
	return ext == hcl.Extension || ext == jsonnet.Extension
}

// request is the first message to the child.
type request struct {
	HCL, Jsonnet map[string][]byte
	Vars         map[string]string
	Shared       bool // the variables are for other languages as well
	Root         bool // there is a folder to import from
}

// message is sent by the child: the file it begins, a read request, or the result.
type message struct {
	Kind   kind
	Name   string
	Result load.Evaluated
}

type kind int

const (
	begins kind = iota + 1
	readFile
	readDir
	done
)

// answer is the parent's reply to readFile and readDir.
type answer struct {
	Text  []byte
	Names []string
	Error string
}

// Load implements [load.FrontEnd].
func (f FrontEnd) Load(files map[string][]byte) load.Evaluated {
	req := request{HCL: map[string][]byte{}, Jsonnet: map[string][]byte{}, Vars: f.Vars, Root: f.Root != nil}
	for name, text := range files {
		if filepath.Ext(name) == hcl.Extension {
			req.HCL[name] = text
		} else {
			req.Jsonnet[name] = text
		}
	}
	req.Shared = len(req.Jsonnet) > 0
	ctx, cancel := context.WithTimeout(context.Background(), maxClock)
	defer cancel()
	p := &parent{root: f.Root, changed: f.Changed, last: slices.Min(slices.Collect(maps.Keys(files)))}
	result, err := p.run(ctx, req)
	if err != nil {
		return load.Evaluated{Diagnostics: []diag.Diagnostic{p.diagnose(ctx, err)}}
	}
	return result
}

// parent is the parent's side of one child.
type parent struct {
	root    fs.FS
	changed map[string][]byte
	last    string // the file that the child began last
	stderr  head
	state   *os.ProcessState
	total   int
	reads   int
}

func (p *parent) run(ctx context.Context, req request) (load.Evaluated, error) {
	if os.Getenv(marker) != "" {
		return load.Evaluated{}, errors.New("this program cannot evaluate in a child process: it does not call sandbox.Serve")
	}
	exe, err := os.Executable()
	if err != nil {
		return load.Evaluated{}, err
	}
	cmd := exec.CommandContext(ctx, exe, command)
	cmd.Args[0] = os.Args[0]
	cmd.Env = []string{marker + "=1", "GOTRACEBACK=none"}
	cmd.Stderr = &p.stderr
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return load.Evaluated{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return load.Evaluated{}, err
	}
	if err := cmd.Start(); err != nil {
		return load.Evaluated{}, fmt.Errorf("starting the evaluation: %w", err)
	}
	result, err := p.converse(in, io.LimitReader(out, maxReply), req)
	in.Close()
	if err != nil {
		// It may be in the middle of something endless; its id is still ours.
		if kill := cmd.Process.Kill(); kill != nil && !errors.Is(kill, os.ErrProcessDone) {
			err = errors.Join(err, kill)
		}
	}
	if wait := cmd.Wait(); wait != nil && err == nil {
		err = wait
	}
	p.state = cmd.ProcessState
	return result, err
}

func (p *parent) converse(in io.Writer, out io.Reader, req request) (load.Evaluated, error) {
	enc, dec := gob.NewEncoder(in), gob.NewDecoder(out)
	if err := enc.Encode(req); err != nil {
		return load.Evaluated{}, err
	}
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			return load.Evaluated{}, err
		}
		var a answer
		switch m.Kind {
		case begins:
			p.last = m.Name
			continue
		case done:
			return m.Result, nil
		case readFile:
			a.Text, a.Error = text(p.read(m.Name))
		case readDir:
			a.Names, a.Error = text(p.list(m.Name))
		}
		if err := enc.Encode(a); err != nil {
			return load.Evaluated{}, err
		}
	}
}

// text shortens an error for a message.
func text[T any](v T, err error) (T, string) {
	if err == nil {
		return v, ""
	}
	return v, load.WithoutPath(err).Error()
}

// read reads a file that the child needs. Anything but a regular file could
// block, or never end.
func (p *parent) read(name string) ([]byte, error) {
	if p.root == nil || !fs.ValidPath(name) {
		return nil, fs.ErrNotExist
	}
	if p.reads++; p.reads > maxImports {
		return nil, fmt.Errorf("the configuration imports more than %d files", maxImports)
	}
	text, changed := p.changed[name]
	size := int64(len(text))
	if !changed {
		info, err := fs.Stat(p.root, name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, errors.New("not a regular file")
		}
		size = info.Size()
	}
	if p.total += int(min(size, load.MaxSource+1)); p.total > load.MaxSource {
		return nil, fmt.Errorf("the configuration is larger than %d MiB", load.MaxSource>>20)
	}
	if changed {
		return text, nil
	}
	return fs.ReadFile(p.root, name)
}

func (p *parent) list(name string) ([]string, error) {
	if p.root == nil || !fs.ValidPath(name) {
		return nil, fs.ErrNotExist
	}
	entries, err := fs.ReadDir(p.root, name)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() && len(names) < maxImports {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// diagnose explains why a child returned no result, from its exit status and output.
func (p *parent) diagnose(ctx context.Context, err error) diag.Diagnostic {
	d := diag.Diagnostic{ID: "YT0007", Severity: diag.Error, Pos: plan.Position{File: p.last, Line: 1, Column: 1}, Length: 1,
		Help: "look for a loop or a call without an end, a value that contains itself, or a size with too many digits"}
	last := p.stderr.String()
	cpu := time.Duration(0)
	if p.state != nil {
		cpu = p.state.UserTime() + p.state.SystemTime()
	}
	switch {
	case strings.Contains(last, "stack overflow"), strings.Contains(last, "stack exceeds"):
		d.Message = "evaluating the file needs calls or brackets nested without end"
	case strings.Contains(last, "out of memory"), strings.Contains(last, "cannot allocate memory"), strings.Contains(last, "makeslice: len out of range"):
		d.Message = fmt.Sprintf("evaluating the file needs more than %d GiB of memory", maxMemory>>30)
	case ctx.Err() != nil:
		d.Message = fmt.Sprintf("evaluating the file takes longer than %s", maxClock)
	case cpu >= (maxCPU-1)*time.Second:
		d.Message = fmt.Sprintf("evaluating the file takes more than %d seconds of processor time", maxCPU)
	default:
		d.ID, d.Message, d.Help = "YT0900", fmt.Sprintf("evaluating the file failed: %v", err), ""
		if line, _, _ := strings.Cut(last, "\n"); line != "" {
			d.Got = line
		}
	}
	return d
}

// head keeps the first bytes written to it.
type head struct{ strings.Builder }

func (h *head) Write(b []byte) (int, error) {
	const limit = 4096
	if room := limit - h.Len(); room > 0 {
		h.Builder.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}
