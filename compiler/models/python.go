package models

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/yoctune/yoctune/internal/tailbuf"
)

//go:embed requirements.txt
var requirements []byte

//go:embed candidate.py
var script []byte

// ErrNoEnvironment means that the Python environment was not set up.
var ErrNoEnvironment = errors.New("the Python environment for models is not set up: run yoctune model setup, which installs pinned packages from the Python index")

// Environment is a Python environment with the libraries that make candidates.
type Environment struct{ dir string }

// FindEnvironment returns the environment below a cache folder, which may not be set up.
func FindEnvironment(cache string) Environment {
	sum := sha256.Sum256(requirements)
	return Environment{filepath.Join(cache, "models-"+hex.EncodeToString(sum[:6]))}
}

// Dir is the folder of the environment.
func (e Environment) Dir() string { return e.dir }

// complete names a file that is there once everything was installed.
func (e Environment) complete() string { return filepath.Join(e.dir, "complete") }

func (e Environment) python() string { return filepath.Join(e.dir, "bin", "python") }

// Library is the environment's ONNX Runtime library, "" if it has none.
func (e Environment) Library() string {
	found, err := filepath.Glob(filepath.Join(e.dir, "lib", "python3*", "site-packages", "onnxruntime", "capi", "libonnxruntime.so.*"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

// Ready reports whether the environment was set up.
func (e Environment) Ready() bool {
	_, err := os.Stat(e.complete())
	return err == nil
}

// SetUp makes the environment with a Python interpreter and installs the pinned packages, each by its
// digest. An environment that is complete is kept. What pip prints goes to w.
func (e Environment) SetUp(ctx context.Context, python string, w io.Writer) error {
	if e.Ready() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(e.dir), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(e.dir); err != nil {
		return err
	}
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		var tail tailbuf.Buffer
		cmd.Stdout, cmd.Stderr = w, io.MultiWriter(w, &tail)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args[:min(len(args), 2)], " "), err, tail.String())
		}
		return nil
	}
	fmt.Fprintf(w, "installing the libraries into %s takes some minutes\n", e.dir)
	if err := run(python, "-c", "import sys, venv, ensurepip; sys.exit(0 if sys.version_info >= (3, 11) else 'Python 3.11 or later is needed')"); err != nil {
		return err
	}
	if err := run(python, "-m", "venv", e.dir); err != nil {
		return err
	}
	list := filepath.Join(e.dir, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o644); err != nil {
		return err
	}
	if err := run(e.python(), "-m", "pip", "install", "--progress-bar", "off", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:", "--require-hashes", "-r", list); err != nil {
		return err
	}
	return os.WriteFile(e.complete(), nil, 0o644)
}

// maxMade bounds the text that the script prints, in bytes.
const maxMade = 16 << 20

// make makes a candidate. progress receives what the script reports. The notes are the script's
// account of what it did.
func (e Environment) make(ctx context.Context, request map[string]any, limit time.Duration, progress func(string)) (map[string]string, error) {
	if !e.Ready() {
		return nil, ErrNoEnvironment
	}
	input, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.python(), "-I", "-c", string(script))
	cmd.Stdin = bytes.NewReader(input)
	// The libraries start no thread that outlives the script; the group ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var tail tailbuf.Buffer
	cmd.Stderr = &tail
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var notes map[string]string
	failed := ""
	lines := bufio.NewScanner(io.LimitReader(out, maxMade))
	lines.Buffer(nil, maxMade)
	for lines.Scan() {
		var l struct {
			Progress string `json:"progress"`
			Error    string `json:"error"`
			Done     *struct {
				Notes map[string]string `json:"notes"`
			} `json:"done"`
		}
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue
		}
		switch {
		case l.Error != "":
			failed = l.Error
		case l.Done != nil:
			notes = l.Done.Notes
		case l.Progress != "":
			progress(l.Progress)
		}
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() == context.DeadlineExceeded:
		return nil, fmt.Errorf("it took longer than %v and was ended", limit)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case failed != "":
		return nil, errors.New(failed)
	case err != nil:
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
			return nil, errors.New("its process was killed, probably because the memory was exhausted")
		}
		return nil, fmt.Errorf("%w: %s", err, tail.String())
	case notes == nil:
		return nil, errors.New("the script ended without a result")
	}
	return notes, nil
}
