package sandbox

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path"
	"runtime/debug"
	"slices"
	"time"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/hcl"
	"github.com/yoctune/yoctune/compiler/language/jsonnet"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// IsChild reports whether the arguments, without the program's name, select the child.
func IsChild(args []string) bool { return len(args) == 1 && args[0] == command }

// Serve runs the child: it limits the process, evaluates one request and returns the exit
// code.
func Serve(in io.Reader, out io.Writer) int {
	// An interrupt ends the child at once, whatever the program does with it.
	signal.Reset(os.Interrupt)
	if err := limit(); err != nil {
		fmt.Fprintf(os.Stderr, "limiting the evaluation: %v\n", err)
		return 1
	}
	debug.SetMaxStack(maxStack)
	debug.SetGCPercent(100) // the limit is on address space, not on what is used
	debug.SetMemoryLimit(maxMemory / 2)
	c := &child{enc: gob.NewEncoder(out), dec: gob.NewDecoder(in)}
	if err := c.serve(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n", err)
		return 1
	}
	return 0
}

type child struct {
	enc *gob.Encoder
	dec *gob.Decoder
}

func (c *child) serve() error {
	var req request
	if err := c.dec.Decode(&req); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	var root fs.FS
	if req.Root {
		root = remote{c}
	}
	all := load.Evaluated{Sources: map[string][]byte{}}
	complete := true
	add := func(first string, evaluate func() load.Evaluated) error {
		if err := c.enc.Encode(message{Kind: begins, Name: first}); err != nil {
			return err
		}
		e := evaluateGuarded(first, evaluate)
		complete = complete && len(e.Roots) > 0
		all.Roots = append(all.Roots, e.Roots...)
		all.Diagnostics = append(all.Diagnostics, e.Diagnostics...)
		maps.Copy(all.Sources, e.Sources)
		return nil
	}
	if len(req.HCL) > 0 {
		p := load.Program{Files: req.HCL, Root: root, Vars: req.Vars, VarsShared: req.Shared}
		if err := add(slices.Min(slices.Collect(maps.Keys(req.HCL))), func() load.Evaluated { return hcl.Load(p) }); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(req.Jsonnet)) {
		p := load.Program{Files: map[string][]byte{name: req.Jsonnet[name]}, Root: root, Vars: req.Vars}
		if err := add(name, func() load.Evaluated { return jsonnet.Load(p) }); err != nil {
			return err
		}
	}
	if !complete {
		all.Roots = nil
	}
	return c.enc.Encode(message{Kind: done, Result: all})
}

// evaluateGuarded converts a panic of an evaluator to a diagnostic.
func evaluateGuarded(file string, evaluate func() load.Evaluated) (e load.Evaluated) {
	defer func() {
		if r := recover(); r != nil {
			e = load.Evaluated{Diagnostics: []diag.Diagnostic{{ID: "YT0900", Severity: diag.Error,
				Pos: plan.Position{File: file, Line: 1, Column: 1}, Length: 1, Message: fmt.Sprintf("evaluating the file failed: %v", r)}}}
		}
	}()
	return evaluate()
}

// remote is the configuration's folder, read through the parent.
type remote struct{ c *child }

func (r remote) request(kind kind, op, name string) (answer, error) {
	if err := r.c.enc.Encode(message{Kind: kind, Name: name}); err != nil {
		return answer{}, err
	}
	var a answer
	if err := r.c.dec.Decode(&a); err != nil {
		return answer{}, err
	}
	if a.Error != "" {
		return answer{}, &fs.PathError{Op: op, Path: name, Err: errors.New(a.Error)}
	}
	return a, nil
}

// ReadFile implements [fs.ReadFileFS].
func (r remote) ReadFile(name string) ([]byte, error) {
	a, err := r.request(readFile, "read", name)
	return a.Text, err
}

// ReadDir implements [fs.ReadDirFS]. Folders inside are left out.
func (r remote) ReadDir(name string) ([]fs.DirEntry, error) {
	a, err := r.request(readDir, "list", name)
	entries := make([]fs.DirEntry, 0, len(a.Names))
	for _, n := range a.Names {
		entries = append(entries, entry(n))
	}
	return entries, err
}

// Open implements [fs.FS]; the front ends do not use it.
func (r remote) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
}

// entry implements fs.DirEntry for a file's name.
type entry string

func (e entry) Name() string               { return path.Base(string(e)) }
func (e entry) IsDir() bool                { return false }
func (e entry) Type() fs.FileMode          { return 0 }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) Size() int64                { return 0 }
func (e entry) Mode() fs.FileMode          { return 0 }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) Sys() any                   { return nil }
