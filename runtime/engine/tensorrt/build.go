package tensorrt

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/onnx"
)

// Job is one engine to build.
type Job struct {
	Key     Key
	Model   string // path of the ONNX file
	Builder string // path of trtexec
}

// Progress is told while an engine is built: with each line of the builder, and at
// least every beatInterval.
type Progress struct {
	Elapsed time.Duration
	Line    string // "": nothing new, and it still works
}

// Bounds of a build.
const (
	beatInterval = 10 * time.Second // between signs of life
	stopTime     = 5 * time.Second  // from the request to end to the end
	keptLines    = 12               // of the builder, for the error
	maxLine      = 4096
)

// Build makes an engine and puts it in the store, unless it is there. One is built at
// a time: it takes the memory that TensorRT can get. When ctx ends the builder is
// ended with all it started, and nothing is left. The error wraps [ErrBuild] where
// the builder failed, with its last words.
func (s Store) Build(ctx context.Context, j Job, tell func(Progress)) (built bool, err error) {
	if tell == nil {
		tell = func(Progress) {}
	}
	m, err := onnx.ReadFile(j.Model)
	if err != nil {
		return false, fmt.Errorf("model %s: %w", j.Model, err)
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return false, err
	}
	unlock, err := s.wait(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, err := s.Find(j.Key); err == nil {
		return false, nil
	}
	name := j.Key.String()
	work, final := filepath.Join(s.Dir, building+name), filepath.Join(s.Dir, name)
	// What is there was cut short, or is damaged.
	for _, dir := range []string{work, final} {
		if err := os.RemoveAll(dir); err != nil {
			return false, err
		}
	}
	if err := os.Mkdir(work, 0o755); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	start := time.Now()
	out := filepath.Join(work, "engine.plan")
	if err := run(ctx, j, out, func(line string) { tell(Progress{time.Since(start), line}) }); err != nil {
		return false, err
	}
	engine, err := os.ReadFile(out)
	if err != nil || len(engine) == 0 {
		return false, fmt.Errorf("%w: %s ended well and wrote no engine", ErrBuild, j.Builder)
	}
	if err := s.finish(work, wrap(m, engine, j.Key), About{Key: j.Key, Built: time.Now().UTC(), Took: time.Since(start).Seconds()}); err != nil {
		return false, err
	}
	if err := os.Remove(out); err != nil {
		return false, err
	}
	if err := os.Rename(work, final); err != nil {
		return false, err
	}
	return true, syncDir(s.Dir)
}

// finish writes an engine's files to the disk.
func (s Store) finish(dir string, engine []byte, a About) error {
	write := func(name string, b []byte) error {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		return errors.Join(err, f.Sync(), f.Close())
	}
	if err := write(fileEngine, engine); err != nil {
		return err
	}
	sum, err := Digest(filepath.Join(dir, fileEngine))
	if err != nil {
		return err
	}
	a.Digest, a.Bytes = sum, int64(len(engine))
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := write(fileAbout, append(b, '\n')); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Arguments are those of trtexec for a job. It measures no speed afterwards.
func (j Job) Arguments(out string) []string {
	args := []string{"--onnx=" + j.Model, "--saveEngine=" + out, "--iterations=1", "--duration=0", "--warmUp=0"}
	if j.Key.Precision == "fp16" {
		args = append(args, "--fp16")
	}
	if mib := j.Key.Workspace >> 20; mib > 0 {
		flag := "--memPoolSize=workspace:" // from 8.4 on
		if !newer(j.Key.TensorRT, "8.4") {
			flag = "--workspace="
		}
		args = append(args, flag+strconv.FormatInt(mib, 10))
	}
	var low, best, high []string
	for _, name := range sortedNames(j.Key.Shapes) {
		r := j.Key.Shapes[name]
		low, best, high = append(low, name+":"+dims(r.Min)), append(best, name+":"+dims(r.Opt)), append(high, name+":"+dims(r.Max))
	}
	if len(low) > 0 {
		args = append(args, "--minShapes="+strings.Join(low, ","), "--optShapes="+strings.Join(best, ","), "--maxShapes="+strings.Join(high, ","))
	}
	return args
}

func sortedNames(m map[string]Range) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func dims(shape []int64) string {
	s := make([]string, len(shape))
	for i, d := range shape {
		s[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(s, "x")
}

// run runs the builder in a process group of its own.
func run(ctx context.Context, j Job, out string, tell func(line string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(j.Builder, j.Arguments(out)...)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBuild, err)
	}
	ended := make(chan struct{})
	go func() {
		err = cmd.Wait()
		// What the builder started and left behind holds the pipe.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		close(ended)
	}()
	stop := context.AfterFunc(ctx, func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		t := time.NewTimer(stopTime)
		defer t.Stop()
		select {
		case <-ended:
		case <-t.C:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	last := listen(r, tell)
	<-ended
	stop()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: stopped: %w", ErrBuild, ctx.Err())
	case err != nil:
		return fmt.Errorf("%w: %s: %w: %s", ErrBuild, filepath.Base(j.Builder), err, strings.Join(last, "; "))
	}
	return nil
}

// listen tells what the builder says until it has nothing more to say, and that it is
// still there when it says nothing. It returns the last lines.
func listen(r io.Reader, tell func(string)) []string {
	var mu sync.Mutex // tell is called by one at a time
	done := make(chan struct{})
	var beat sync.WaitGroup
	heard := make(chan struct{}, 1)
	beat.Go(func() {
		t := time.NewTimer(beatInterval)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-heard:
			case <-t.C:
				mu.Lock()
				tell("")
				mu.Unlock()
			}
			t.Reset(beatInterval)
		}
	})
	var last []string
	in := bufio.NewReaderSize(r, maxLine)
	for {
		b, long, err := in.ReadLine()
		for long && err == nil {
			_, long, err = in.ReadLine() // the rest of it
		}
		if err != nil {
			break
		}
		line := strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
		if line == "" {
			continue
		}
		if last = append(last, line); len(last) > keptLines {
			last = last[1:]
		}
		mu.Lock()
		tell(line)
		mu.Unlock()
		select {
		case heard <- struct{}{}:
		default:
		}
	}
	close(done)
	beat.Wait()
	return last
}

// errBusy is in the error while another program builds.
var errBusy = errors.New("engines are being built by another program")

// lock takes the lock of builds, or fails with errBusy.
func (s Store) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errBusy
		}
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// wait is lock, waited for.
func (s Store) wait(ctx context.Context) (func(), error) {
	for {
		unlock, err := s.lock()
		if !errors.Is(err, errBusy) {
			return unlock, err
		}
		t := time.NewTimer(200 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("%w: %w", errBusy, ctx.Err())
		case <-t.C:
		}
	}
}
