// Command tuned measures TuneD and yoctuned with the same knobs on the same machine, one
// after the other: the time of applying, verifying, starting and stopping, the cost of
// idling, the repair of drift, and the number of original values that a SIGKILL loses.
//
//	make build && sudo -E go run ./bench/tuned -o bench/results/$(date -u +%F)-tuned.json
//
// It sets harmless values near the defaults in the running kernel and restores the original
// ones. /etc/tuned, /run and /var/lib of both programs are on a tmpfs in a private mount
// namespace; it neither reads nor writes those of the host. Without TuneD it measures only
// yoctuned.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// knobsTable are the knobs of both programs. swappiness is first, because it triggers the
// kill in the middle of an apply.
//
//go:embed knobs.tsv
var knobsTable string

// Stat summarises the values of several runs.
type Stat struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

// Idle is the cost of an idle program.
type Idle struct {
	Seconds   float64 `json:"seconds"`
	CPU       float64 `json:"cpu_percent"`
	Wakeups   float64 `json:"voluntary_switches_per_second"`
	PSS       int64   `json:"pss_kb"`
	Anonymous int64   `json:"anonymous_kb"`
	File      int64   `json:"file_pss_kb"` // pages of programs and libraries
	Threads   int     `json:"threads"`
	HostForks float64 `json:"host_forks_per_second"`
}

// Figures are the measurements of one program.
type Figures struct {
	Version      string         `json:"version"`
	ApplyWall    Stat           `json:"apply_wall_ms"`
	ApplyCPU     Stat           `json:"apply_cpu_ms"`
	NotApplied   int            `json:"knobs_not_as_wanted_after_apply"`
	Start        Stat           `json:"start_to_applied_ms"`
	Stop         Stat           `json:"sigterm_to_exit_ms"`
	NotBack      int            `json:"knobs_not_back_after_stop"`
	Verify       Stat           `json:"verify_wall_ms"`
	Idle         Idle           `json:"idle"`
	Drift        map[string]any `json:"drift_put_back_ms"` // by path; "no": not within driftPatience
	KillApplied  int            `json:"knobs_lost_after_sigkill_when_applied"`
	KillMidApply []int          `json:"knobs_lost_after_sigkill_mid_apply"`
}

// Record is the content of the result file.
type Record struct {
	Test      string             `json:"test"`
	Date      string             `json:"date"`
	Kernel    string             `json:"kernel"`
	CPUs      int                `json:"cpus"`
	Load      [2]string          `json:"load_before_after"`
	Knobs     int                `json:"knobs"`
	Real      []string           `json:"real"`
	StandIn   []string           `json:"stand_in"`
	Notes     []string           `json:"notes"`
	KernelNR  Stat               `json:"kernel_nr_requests_write_ms"` // writing only the slowest knob
	Figures   map[string]Figures `json:"figures"`
	Ratios    map[string]float64 `json:"ratios_tuned_to_yoctuned"`
	Satisfied map[string]bool    `json:"targets"`
}

// withoutSlowest marks the figures without the slowest knob.
const withoutSlowest = ", without nr_requests"

const (
	driftPatience = 10 * time.Second
	startPatience = 30 * time.Second
	// TuneD's daemon waits for its threads before it ends, and sometimes for ever.
	endPatience = 30 * time.Second
)

func main() {
	var o options
	flag.StringVar(&o.yoctune, "yoctune", "build/bin/yoctune", "program")
	flag.StringVar(&o.yoctuned, "yoctuned", "build/bin/yoctuned", "program")
	flag.StringVar(&o.out, "o", "", "record to write")
	flag.IntVar(&o.runs, "runs", 7, "runs of each figure")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long to observe the idle program")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "tuned:", err)
		os.Exit(1)
	}
}

type options struct {
	yoctune, yoctuned, out string
	runs                   int
	idle                   time.Duration
}

// inside is set in the environment of the process in the private mount namespace.
const inside = "YOCTUNE_BENCH_INSIDE"

func run(o options) error {
	if os.Geteuid() != 0 {
		return errors.New("must run as root: it changes kernel settings and restores them")
	}
	if os.Getenv(inside) == "" {
		// This process restores everything after the measuring process and its
		// children have ended, also after an interrupt. The lock of the host's yoctuned
		// keeps tests and other programs away meanwhile.
		host, err := rootfs.Open("/")
		if err != nil {
			return err
		}
		unlock, err := host.Lock("bench tuned")
		if err != nil {
			return err
		}
		defer unlock()
		ks := readKnobs()
		defer ks.restore()
		signal.Ignore(unix.SIGINT, unix.SIGTERM)
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
		return cmd.Run()
	}
	work, err := os.MkdirTemp("", "yoctune-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := mountPrivate(work); err != nil {
		return err
	}
	ks := readKnobs()
	if len(ks) == 0 {
		return errors.New("no knob of the table exists and is writable")
	}
	stop := make(chan os.Signal, 1) // undo the inherited disposition
	signal.Notify(stop, unix.SIGINT, unix.SIGTERM)
	go func() { <-stop; os.Exit(130) }()

	rec := Record{
		Test: "tuned", Date: time.Now().UTC().Format(time.DateOnly), Kernel: firstLine("/proc/sys/kernel/osrelease"),
		CPUs: runtime.NumCPU(), Knobs: len(ks),
		Real:    []string{"the kernel of this host and its knobs", "both programs as shipped, with the same table, one after the other on the same machine"},
		StandIn: []string{"a private system bus for tuned-adm, because there is no systemd"},
		Notes: []string{
			"other work runs on the machine: wall times are upper bounds; CPU times and ratios are reliable",
			"/run/yoctune is a tmpfs, as /run is on a device",
			"one knob, nr_requests of a loop device, freezes a queue inside write(2); every apply and rollback of both programs includes that time",
		},
		Figures: map[string]Figures{},
	}
	rec.Load[0] = firstLine("/proc/loadavg")
	rec.KernelNR = ks.timeSlowest(o.runs)
	programs := []program{&yoctuned{o: o, work: work}}
	if _, err := exec.LookPath("tuned"); err == nil {
		programs = append(programs, &tuned{work: work})
	} else {
		rec.Notes = append(rec.Notes, "TuneD is not installed; only yoctuned was measured")
	}
	for _, p := range programs {
		for suffix, table := range map[string]knobs{"": ks, withoutSlowest: ks.without("nr_requests")} {
			f, err := measure(p, table, o)
			switch {
			case err == nil:
				rec.Figures[p.name()+suffix] = f
			case p.name() == "tuned": // the figures of yoctuned stand without it
				rec.Notes = append(rec.Notes, "not measured: "+p.name()+suffix+": "+err.Error())
			default:
				return fmt.Errorf("%s: %w", p.name()+suffix, err)
			}
		}
	}
	rec.Load[1] = firstLine("/proc/loadavg")
	rec.checkGoals()
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if o.out == "" {
		_, err = os.Stdout.Write(b)
		return err
	}
	fmt.Println(o.out)
	return os.WriteFile(o.out, b, 0o644)
}

// mountPrivate mounts empty directories for both programs.
func mountPrivate(work string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	for _, dir := range []string{"/run/yoctune", "/var/lib/yoctune", "/etc/tuned", "/run/tuned", "/var/log/tuned"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("tmpfs on %s: %w", dir, err)
		}
	}
	return os.MkdirAll(work, 0o755)
}

// tunable is a kernel node with its wanted and its original value.
type tunable struct{ path, want, was string }

type knobs []tunable

func readKnobs() knobs {
	var ks knobs
	for line := range strings.Lines(knobsTable) {
		path, want, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		_ = f.Close()
		ks = append(ks, tunable{path, want, readValue(path)})
	}
	return ks
}

// readValue returns the value of a node, with single spaces between fields.
func readValue(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

func (ks knobs) without(name string) knobs {
	return slices.DeleteFunc(slices.Clone(ks), func(k tunable) bool { return filepath.Base(k.path) == name })
}

func (ks knobs) restore() {
	for _, k := range ks {
		if readValue(k.path) != k.was {
			_ = os.WriteFile(k.path, []byte(k.was), 0) // failures show in the counts
		}
	}
}

func (ks knobs) countNotApplied() int {
	return ks.count(func(k tunable) bool { return readValue(k.path) != k.want })
}
func (ks knobs) countNotRestored() int {
	return ks.count(func(k tunable) bool { return readValue(k.path) != k.was })
}

func (ks knobs) count(is func(tunable) bool) int {
	n := 0
	for _, k := range ks {
		if is(k) {
			n++
		}
	}
	return n
}

// timeSlowest measures writing only the slowest knob.
func (ks knobs) timeSlowest(runs int) Stat {
	i := slices.IndexFunc(ks, func(k tunable) bool { return strings.HasSuffix(k.path, "nr_requests") })
	if i < 0 {
		return Stat{}
	}
	var ms []float64
	for range runs {
		start := time.Now()
		_ = os.WriteFile(ks[i].path, []byte(ks[i].want), 0)
		ms = append(ms, since(start))
		_ = os.WriteFile(ks[i].path, []byte(ks[i].was), 0)
	}
	return stat(ms)
}

// program is a program to measure.
type program interface {
	name() string
	version() string
	prepare(ks knobs) error
	apply() *exec.Cmd
	verify() *exec.Cmd
	verifying(start bool) error // starts or stops what verify needs
	daemon() (*exec.Cmd, func() bool)
	recover(start func() (*exec.Cmd, error)) error // after a SIGKILL, as its manual describes
	forget() error                                 // removes all state before the next phase
}

// session measures one program with one table of knobs.
type session struct {
	program
	ks knobs
	o  options
	f  Figures
}

func measure(p program, ks knobs, o options) (Figures, error) {
	s := &session{program: p, ks: ks, o: o, f: Figures{Version: p.version(), Drift: map[string]any{}}}
	ks.restore()
	if err := p.prepare(ks); err != nil {
		return s.f, err
	}
	for _, phase := range []func() error{s.measureApply, s.measureDaemon, s.measureVerify, s.measureIdleAndDrift, s.measureKills, s.reset} {
		if err := phase(); err != nil {
			return s.f, err
		}
	}
	return s.f, nil
}

// reset restores the knobs and removes the program's state.
func (s *session) reset() error {
	s.ks.restore()
	return s.forget()
}

// start starts the daemon and waits until it has applied the knobs.
func (s *session) start() (*exec.Cmd, error) {
	cmd, ready := s.daemon()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for late := time.Now().Add(startPatience); !ready(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return nil, fmt.Errorf("the daemon has not applied the knobs within %v", startPatience)
		}
	}
	return cmd, nil
}

// measureApply measures applying all knobs once.
func (s *session) measureApply() error {
	var wall, cpu []float64
	for range s.o.runs {
		if err := s.reset(); err != nil {
			return err
		}
		cmd := s.apply()
		cmd.SysProcAttr = dieWithParent()
		begin := time.Now()
		if err := runLimited(cmd); err != nil {
			return err
		}
		wall = append(wall, since(begin))
		cpu = append(cpu, float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())/1e6)
	}
	s.f.ApplyWall, s.f.ApplyCPU, s.f.NotApplied = stat(wall), stat(cpu), s.ks.countNotApplied()
	return nil
}

// measureDaemon measures starting and stopping the daemon.
func (s *session) measureDaemon() error {
	var starts, stops []float64
	for range s.o.runs {
		if err := s.reset(); err != nil {
			return err
		}
		begin := time.Now()
		cmd, err := s.start()
		if err != nil {
			return err
		}
		starts = append(starts, since(begin))
		begin = time.Now()
		if err := end(cmd); err != nil {
			return err
		}
		stops = append(stops, since(begin))
		s.f.NotBack = max(s.f.NotBack, s.ks.countNotRestored())
	}
	s.f.Start, s.f.Stop = stat(starts), stat(stops)
	return s.reset()
}

// measureVerify measures verifying all knobs.
func (s *session) measureVerify() error {
	if err := s.verifying(true); err != nil {
		return err
	}
	var wall []float64
	for range s.o.runs {
		cmd := s.verify()
		begin := time.Now()
		if err := runLimited(cmd); err != nil {
			return errors.Join(err, s.verifying(false))
		}
		wall = append(wall, since(begin))
	}
	s.f.Verify = stat(wall)
	return errors.Join(s.verifying(false), s.reset())
}

// measureIdleAndDrift measures the idle daemon, how it repairs drift, and how many knobs a
// SIGKILL loses afterwards.
func (s *session) measureIdleAndDrift() error {
	cmd, err := s.start()
	if err != nil {
		return err
	}
	time.Sleep(5 * time.Second)
	s.f.Idle = measureIdle(cmd.Process.Pid, s.o.idle)
	for _, path := range []string{"/proc/sys/vm/swappiness", "/sys/block/loop2/queue/rq_affinity"} {
		if i := slices.IndexFunc(s.ks, func(k tunable) bool { return k.path == path }); i >= 0 {
			s.f.Drift[path] = drift(s.ks[i])
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := s.recover(s.start); err != nil {
		return err
	}
	s.f.KillApplied = s.ks.countNotRestored()
	return nil
}

// measureKills counts how many knobs a SIGKILL during an apply loses.
func (s *session) measureKills() error {
	for range s.o.runs {
		if err := s.reset(); err != nil {
			return err
		}
		if err := killMidway(s.apply(), s.ks[0]); err != nil {
			return err
		}
		if err := s.recover(s.start); err != nil {
			return err
		}
		s.f.KillMidApply = append(s.f.KillMidApply, s.ks.countNotRestored())
	}
	return nil
}

// killMidway kills the command as soon as the first knob has changed.
func killMidway(cmd *exec.Cmd, first tunable) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	late := time.Now().Add(endPatience)
	for readValue(first.path) != first.want && time.Now().Before(late) {
		select {
		case <-done:
			return nil
		default:
		}
	}
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	<-done
	if time.Now().After(late) {
		return fmt.Errorf("%s has not set %s within %v", filepath.Base(cmd.Path), first.path, endPatience)
	}
	return nil
}

// drift changes a knob and measures in ms how long the program takes to repair it.
func drift(k tunable) any {
	other := "1"
	if k.want == other {
		other = "2"
	}
	if err := os.WriteFile(k.path, []byte(other), 0); err != nil {
		return err.Error()
	}
	begin := time.Now()
	for time.Since(begin) < driftPatience {
		if readValue(k.path) == k.want {
			return round(since(begin))
		}
		time.Sleep(100 * time.Microsecond)
	}
	return "no"
}

// measureIdle observes an idle process for d.
func measureIdle(pid int, d time.Duration) Idle {
	c0, s0, f0, begin := ticks(pid), switches(pid), forks(), time.Now()
	time.Sleep(d)
	c1, s1, f1, t := ticks(pid), switches(pid), forks(), time.Since(begin).Seconds()
	const perSecond = 100 // USER_HZ
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	memory := func(word string) int64 { return readField(fmt.Sprintf("/proc/%d/smaps_rollup", pid), word) }
	return Idle{
		Seconds: round(t), CPU: float64(c1-c0) / perSecond * 100 / t, Wakeups: round(float64(s1-s0) / t),
		PSS: memory("Pss:"), Anonymous: memory("Anonymous:"), File: memory("Pss_File:"), Threads: len(tasks), HostForks: round(float64(f1-f0) / t),
	}
}

// ticks returns the CPU time of a process in clock ticks.
func ticks(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return user + system
}

// switches returns the voluntary context switches of all threads of a process.
func switches(pid int) int64 {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	var n int64
	for _, name := range names {
		n += readField(name, "voluntary_ctxt_switches:")
	}
	return n
}

func forks() int64 { return readField("/proc/stat", "processes") }

// readField returns the number that follows word at the start of a line.
func readField(name, word string) int64 {
	b, _ := os.ReadFile(name)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == word {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

func firstLine(name string) string {
	b, _ := os.ReadFile(name)
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func since(t time.Time) float64 { return float64(time.Since(t)) / float64(time.Millisecond) }

func round(v float64) float64 { return math.Round(v*100) / 100 }

func stat(v []float64) Stat {
	slices.Sort(v)
	return Stat{round(v[0]), round(v[len(v)/2]), round(v[len(v)-1]), len(v)}
}

// checkGoals compares the figures with the goals of yoctuned.
func (r *Record) checkGoals() {
	y := r.Figures["yoctuned"]
	lost := y.KillApplied
	for _, n := range y.KillMidApply {
		lost += n
	}
	quick := true
	for _, v := range y.Drift {
		ms, ok := v.(float64)
		quick = quick && ok && ms <= 50
	}
	r.Satisfied = map[string]bool{
		"apply at most 5 ms longer than the slowest write":            y.ApplyWall.Median <= r.KernelNR.Median+5,
		"start to applied at most 5 ms longer than the slowest write": y.Start.Median <= r.KernelNR.Median+5,
		"SIGTERM at most 10 ms longer than the slowest write":         y.Stop.Median <= r.KernelNR.Median+10,
		"verify within 4 ms":      y.Verify.Median <= 4,
		"idle at most 0.02 % CPU": y.Idle.CPU <= 0.02, "at most 0.05 wakeups/s": y.Idle.Wakeups <= 0.05,
		"anonymous memory at most 4 MB": y.Idle.Anonymous <= 4_000, "PSS at most 6 MB": y.Idle.PSS <= 6_000,
		"drift repaired within 50 ms": quick, "no original lost": lost == 0,
	}
	_, ok := r.Figures["tuned"]
	if !ok {
		return
	}
	r.Ratios = map[string]float64{}
	for _, suffix := range []string{"", withoutSlowest} {
		t, measured := r.Figures["tuned"+suffix]
		if !measured {
			continue
		}
		y := r.Figures["yoctuned"+suffix]
		for name, pair := range map[string][2]Stat{
			"apply wall": {t.ApplyWall, y.ApplyWall}, "apply cpu": {t.ApplyCPU, y.ApplyCPU},
			"start": {t.Start, y.Start}, "stop": {t.Stop, y.Stop}, "verify": {t.Verify, y.Verify},
		} {
			r.Ratios[name+suffix] = round(pair[0].Median / pair[1].Median)
		}
	}
	r.Satisfied["apply 10 times faster than tuned"] = r.Ratios["apply wall"] >= 10
	r.Satisfied["verify 15 times faster than tuned"] = r.Ratios["verify"] >= 15
}
