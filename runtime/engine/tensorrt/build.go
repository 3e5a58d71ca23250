package tensorrt

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/internal/onnx"
)

// Job is one engine to build.
type Job struct {
	Key     Key
	Model   string // path of the ONNX file
	Builder string // path of trtexec

	timings string // the build's timing cache, "" if TensorRT has none
}

// Progress reports the progress of a build: one for each output line of the builder, and at
// least one every beatInterval.
type Progress struct {
	Elapsed time.Duration
	Line    string // "": no new output, the builder is still running
}

// Limits of a build.
const (
	beatInterval = 10 * time.Second // between signs of life
	stopTime     = 5 * time.Second  // from the request to end to the end
	keptLines    = 12               // last output lines, for the error
	maxLine      = 4096
)

// Build builds an engine and stores it, unless the store has it. Only one build runs at a
// time, because TensorRT uses all available memory. When ctx ends, the builder and its child
// processes are killed and its files are removed. If the builder fails, the error wraps
// [ErrBuild] and contains its last output. report may be nil.
func (s Store) Build(ctx context.Context, j Job, report func(Progress)) (built bool, err error) {
	if report == nil {
		report = func(Progress) {}
	}
	m, err := onnx.ReadFile(j.Model)
	if err == nil {
		err = m.CheckComplete()
	}
	if err != nil {
		return false, fmt.Errorf("model %s: %w", j.Model, err)
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return false, err
	}
	unlock, err := s.waitLock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, err := s.Find(j.Key); err == nil {
		return false, nil
	}
	name := j.Key.String()
	work, final := filepath.Join(s.Dir, building+name), filepath.Join(s.Dir, name)
	// Existing directories are interrupted builds or damaged engines.
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
	if err := s.borrowTimings(&j, work); err != nil {
		return false, err
	}
	if err := runBuilder(ctx, j, out, func(line string) { report(Progress{time.Since(start), line}) }); err != nil {
		if ctx.Err() == nil && j.timings != "" {
			err = errors.Join(err, removeIfExists(s.timings(j.Key))) // it may be what the builder stumbled over
		}
		return false, err
	}
	engine, err := os.ReadFile(out)
	if err != nil || len(engine) == 0 {
		return false, fmt.Errorf("%w: %s succeeded but wrote no engine", ErrBuild, j.Builder)
	}
	if err := s.writeEngine(work, wrapEngine(m, engine, j.Key), About{Key: j.Key, Built: time.Now().UTC(), Took: time.Since(start).Seconds()}); err != nil {
		return false, err
	}
	if err := os.Remove(out); err != nil {
		return false, err
	}
	if err := s.keepTimings(j); err != nil {
		return false, err
	}
	if err := os.Rename(work, final); err != nil {
		return false, err
	}
	return true, syncDir(s.Dir)
}

// timings is the path of the timing cache: how fast TensorRT's implementations of layers are on a GPU.
// With it, the next build measures only what is new.
func (s Store) timings(k Key) string {
	sum := sha256.Sum256([]byte(k.TensorRT + "\n" + k.GPU))
	return filepath.Join(s.Dir, timings+hex.EncodeToString(sum[:8]))
}

// borrowTimings copies the timing cache into a build's folder: a build that is killed leaves the
// original as it was. TensorRT has such caches from version 8 on.
func (s Store) borrowTimings(j *Job, work string) error {
	if !isNewer(j.Key.TensorRT, "8") {
		return nil
	}
	j.timings = filepath.Join(work, "timings")
	data, err := os.ReadFile(s.timings(j.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return os.WriteFile(j.timings, data, 0o644)
}

// keepTimings puts a build's timing cache in the place of the store's.
func (s Store) keepTimings(j Job) error {
	if j.timings == "" {
		return nil
	}
	err := os.Rename(j.timings, s.timings(j.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the builder wrote none
	}
	return err
}

func removeIfExists(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeEngine writes the files of an engine and syncs them to disk.
func (s Store) writeEngine(dir string, engine []byte, a About) error {
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

// Arguments returns the arguments of trtexec for a job. They keep it from benchmarking the
// engine.
func (j Job) Arguments(out string) []string {
	args := []string{"--onnx=" + j.Model, "--saveEngine=" + out, "--iterations=1", "--duration=0", "--warmUp=0"}
	if strings.Contains(j.Key.Precision, "fp16") {
		args = append(args, "--fp16")
	}
	if strings.Contains(j.Key.Precision, "int8") {
		args = append(args, "--int8") // the scales are in the model
	}
	if mib := j.Key.Workspace >> 20; mib > 0 {
		flag := "--memPoolSize=workspace:" // from 8.4 on
		if !isNewer(j.Key.TensorRT, "8.4") {
			flag = "--workspace="
		}
		args = append(args, flag+strconv.FormatInt(mib, 10))
	}
	if j.timings != "" {
		args = append(args, "--timingCacheFile="+j.timings)
	}
	var low, best, high []string
	for _, name := range slices.Sorted(maps.Keys(j.Key.Shapes)) {
		r := j.Key.Shapes[name]
		low, best, high = append(low, name+":"+formatShape(r.Min)), append(best, name+":"+formatShape(r.Opt)), append(high, name+":"+formatShape(r.Max))
	}
	if len(low) > 0 {
		args = append(args, "--minShapes="+strings.Join(low, ","), "--optShapes="+strings.Join(best, ","), "--maxShapes="+strings.Join(high, ","))
	}
	return args
}

func formatShape(shape []int64) string {
	s := make([]string, len(shape))
	for i, d := range shape {
		s[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(s, "x")
}

// runBuilder runs the builder in its own process group.
func runBuilder(ctx context.Context, j Job, out string, report func(line string)) error {
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
		// Child processes that the builder left behind would keep the pipe open.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		close(ended)
	}()
	stop := context.AfterFunc(ctx, func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		if !backoff.WaitClosed(ended, stopTime) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	last := readOutput(r, report)
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

// readOutput reports the lines of the builder's output, and "" after each beatInterval
// without output. It returns the last lines at the end of the output.
func readOutput(r io.Reader, report func(string)) []string {
	var mu sync.Mutex // serialises report
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
				report("")
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
			_, long, err = in.ReadLine() // discard the rest of the line
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
		report(line)
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

// errBusy means that another process holds the lock of builds.
var errBusy = errors.New("another program is building engines")

// lock acquires the lock of builds, or fails with errBusy.
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

// waitLock acquires the lock of builds, waiting until ctx ends.
func (s Store) waitLock(ctx context.Context) (func(), error) {
	for {
		unlock, err := s.lock()
		if !errors.Is(err, errBusy) {
			return unlock, err
		}
		if backoff.WaitClosed(ctx.Done(), 200*time.Millisecond) {
			return nil, fmt.Errorf("%w: %w", errBusy, ctx.Err())
		}
	}
}
