package powerloss

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// pristine are the files of the device: nodes of which each kind of journal record is made.
var pristine = map[string]string{
	"proc/sys/kernel/random/boot_id":                "6a1f3a4e-0000-4000-8000-000000000001\n",
	"proc/sys/kernel/osrelease":                     "5.15.148-tegra\n",
	"proc/cmdline":                                  "console=ttyTCU0\n",
	"proc/meminfo":                                  "MemTotal: 7802352 kB\nMemAvailable: 6202352 kB\nHugepagesize: 2048 kB\n",
	"proc/sys/vm/swappiness":                        "60\n",
	"proc/sys/vm/laptop_mode":                       "0\n",
	"proc/sys/vm/dirty_ratio":                       "20\n",
	"proc/sys/vm/dirty_bytes":                       "0\n",
	"proc/sys/vm/min_free_kbytes":                   "67584\n",
	"sys/kernel/mm/transparent_hugepage/enabled":    "always [madvise] never\n",
	"sys/devices/platform/disk/queue/scheduler":     "[none] mq-deadline kyber\n",
	"sys/devices/platform/disk/queue/nr_requests":   "256\n",
	"sys/devices/platform/disk/queue/read_ahead_kb": "128\n",
}

func knobs(serial int64, values map[string]string) []byte {
	p := plan.Plan{Layer: "power", Target: "loss", Board: "generic", Serial: serial}
	for _, path := range slices.Sorted(maps.Keys(values)) {
		typ := plan.TypeInt
		if strings.HasSuffix(path, "scheduler") || strings.HasSuffix(path, "enabled") {
			typ = plan.TypeChoice
		}
		p.Settings = append(p.Settings, plan.Setting{
			ID: "knob." + path, Domain: plan.DomainKnob, Type: typ, Want: values[path], Select: plan.Select{Path: "/" + path},
			Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
		})
	}
	if err := p.Seal(); err != nil {
		panic(err)
	}
	b, err := p.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

var (
	first  = knobs(1, map[string]string{"proc/sys/vm/swappiness": "10", "proc/sys/vm/laptop_mode": "5", "proc/sys/vm/dirty_ratio": "30", "sys/devices/platform/disk/queue/read_ahead_kb": "512"})
	second = knobs(2, map[string]string{"proc/sys/vm/swappiness": "20", "proc/sys/vm/min_free_kbytes": "70000", "sys/devices/platform/disk/queue/nr_requests": "64"})
)

// scenario is what a user does, one command after the other. The last one is recorded.
type scenario struct {
	name     string
	commands []string
}

var scenarios = []scenario{
	{"apply", []string{"apply first.json"}},
	{"apply another plan", []string{"apply first.json", "apply second.json"}},
	{"rollback", []string{"apply first.json", "rollback"}},
	{"trial", []string{"apply first.json", "apply --try 1s second.json"}},
	{"confirmed trial", []string{"apply --try 20s first.json", "confirm"}},
}

type bench struct {
	program string
	dir     string // of plans and trees
	trees   int
}

// newBench builds yoctuned.
func newBench(t *testing.T) *bench {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Fatalf("%v; `make setup` installs it", err)
	}
	dir, err := os.MkdirTemp("", "powerloss")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: dir}
	t.Cleanup(func() {
		// The process that ends a killed trial may still use its tree.
		for late := time.Now().Add(25 * time.Second); os.RemoveAll(dir) != nil && time.Now().Before(late); time.Sleep(100 * time.Millisecond) {
		}
	})
	b.program = filepath.Join(b.dir, "yoctuned")
	if out, err := exec.Command("go", "build", "-o", b.program, "../../cmd/yoctuned").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, text := range map[string][]byte{"first.json": first, "second.json": second} {
		if err := os.WriteFile(filepath.Join(b.dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// tree makes a device with files.
func (b *bench) tree(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	b.trees++
	root := filepath.Join(b.dir, name+strconv.Itoa(b.trees))
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// read returns the files of a tree.
func read(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		files[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// run runs a command of yoctuned, under strace if it has arguments.
func (b *bench) run(t *testing.T, root, command string, strace ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	words := strings.Fields(command)
	argv := slices.Concat(strace, []string{b.program, words[0], "--root", root}, words[1:])
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = b.dir
	cmd.WaitDelay = time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatalf("%s: %v\n%s", command, err, text.String())
	}
	return text.String(), cmd.ProcessState.ExitCode()
}

// background starts a command and waits until the tree's file has a text.
func (b *bench) background(t *testing.T, root, command, name, want string) {
	t.Helper()
	words := strings.Fields(command)
	cmd := exec.Command(b.program, slices.Concat([]string{words[0], "--root", root}, words[1:])...)
	cmd.Dir = b.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for late := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if text, _ := os.ReadFile(filepath.Join(root, name)); strings.Contains(string(text), want) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s: %s never had %q", command, name, want)
		}
	}
}

// prepare runs the commands of a scenario but the last, which it returns with the tree.
func (b *bench) prepare(t *testing.T, s scenario) (root, last string) {
	t.Helper()
	root = b.tree(t, "device", pristine)
	for _, c := range s.commands[:len(s.commands)-1] {
		if strings.Contains(c, "--try 20s") {
			b.background(t, root, c, "proc/sys/vm/swappiness", "10")
			continue
		}
		if out, code := b.run(t, root, c); code != 0 {
			t.Fatalf("%s: exit %d\n%s", c, code, out)
		}
	}
	return root, s.commands[len(s.commands)-1]
}

// record records the last command of a scenario.
func (b *bench) record(t *testing.T, s scenario) (root string, before map[string]string, calls []call) {
	t.Helper()
	root, last := b.prepare(t, s)
	before = read(t, root)
	log := filepath.Join(b.dir, "calls")
	b.run(t, root, last, "strace", "-f", "-y", "-x", "-s", "1000000", "-o", log, "-e", "trace="+traced, "-e", "signal=none")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if calls, err = parseCalls(string(text)); err != nil {
		t.Fatal(err)
	}
	// What the recording gives at its end must be what there is.
	d := newDisk(root, before)
	for _, c := range calls {
		d.apply(c)
	}
	is, recorded := read(t, root), d.image(killed)
	for _, files := range []map[string]string{is, recorded} {
		delete(files, "run/yoctune/lock") // written at offsets
	}
	if key(is) != key(recorded) {
		t.Fatalf("the recording is incomplete:\n%s\nand the device has:\n%s", key(recorded), key(is))
	}
	return root, before, calls
}

func newDisk(root string, files map[string]string) *disk {
	d := &disk{root: root, names: map[string]*file{}, entries: map[string]*file{}}
	for name, text := range files {
		f := &file{content: text, synced: text}
		d.names[name], d.entries[name] = f, f
	}
	return d
}

// check rolls a damaged device back: everything is as before the first command, without a report of
// a loss. The state that a reboot leaves prevents no plan from being applied.
func (b *bench) check(t *testing.T, at string, files map[string]string) {
	t.Helper()
	root := b.tree(t, "image", files)
	out, code := b.run(t, root, "rollback --format json")
	if code != 0 {
		t.Errorf("%s: rollback: exit %d\n%s", at, code, out)
	}
	now := read(t, root)
	for name, want := range pristine {
		if !isNode(name) || sameValue(now[name], want) {
			continue
		}
		t.Errorf("%s: %s is %q after rollback, was %q before the first command\n%s\n%s", at, name, now[name], want, out, key(files))
	}
	if out, code := b.run(t, root, "rollback"); code != 0 {
		t.Errorf("%s: second rollback: exit %d\n%s", at, code, out)
	}
	// The next boot: memory is gone, the disk remains.
	next := maps.Clone(pristine)
	for name, text := range files {
		if strings.HasPrefix(name, "var/") {
			next[name] = text
		}
	}
	next["proc/sys/kernel/random/boot_id"] = "6a1f3a4e-0000-4000-8000-000000000002\n"
	root = b.tree(t, "image", next)
	if out, code := b.run(t, root, "apply second.json"); code != 0 {
		t.Errorf("%s: apply at the next boot: exit %d\n%s\n%s", at, code, out, key(next))
	}
}

// sameValue compares nodes, of which a tree of files keeps only the word that was chosen.
func sameValue(now, want string) bool {
	if _, chosen, ok := strings.Cut(want, "["); ok {
		chosen, _, _ = strings.Cut(chosen, "]")
		return strings.TrimSpace(now) == chosen || now == want
	}
	return strings.TrimSpace(now) == strings.TrimSpace(want)
}

// TestEveryPrefixCanBeRolledBack cuts the recorded calls of each command after every one.
func TestEveryPrefixCanBeRolledBack(t *testing.T) {
	b := newBench(t)
	chosen := scenarios
	if os.Getenv("YOCTUNE_KILLS") == "" {
		chosen = scenarios[1:2] // the others take too long for each change
	}
	for _, s := range chosen {
		t.Run(s.name, func(t *testing.T) {
			root, before, calls := b.record(t, s)
			d, seen, syncs := newDisk(root, before), map[string]bool{}, 0
			for n := range len(calls) + 1 {
				for _, l := range []loss{killed, power, renamed} {
					if files := d.image(l); !seen[key(files)] && !t.Failed() {
						seen[key(files)] = true
						b.check(t, fmt.Sprintf("%s: %s after call %d of %d", s.name, l, n, len(calls)), files)
					}
				}
				if n < len(calls) {
					d.apply(calls[n])
					if calls[n].name == "fsync" {
						syncs++
					}
				}
			}
			if len(seen) < 15 || syncs < 3 {
				t.Errorf("only %d states and %d syncs in %d calls", len(seen), syncs, len(calls))
			}
			t.Logf("saw: %d calls, %d of them syncs, %d different states of the device", len(calls), syncs, len(seen))
		})
	}
}

// TestKilledProcessIsRolledBack kills yoctuned with SIGKILL when it enters the nth call that
// changes something, for n from a random list.
func TestKilledProcessIsRolledBack(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("YOCTUNE_KILLS"))
	if err != nil {
		kills = 4
	}
	b := newBench(t)
	random := rand.New(rand.NewPCG(1, uint64(kills)))
	count := map[string]int{} // calls of each scenario
	interrupted := 0
	for round := 0; interrupted < kills && round < 10*kills && !t.Failed(); round++ {
		s := scenarios[round%len(scenarios)]
		if kills < 100 {
			s = scenarios[round%3] // a trial takes a second
		}
		if count[s.name] == 0 {
			_, _, calls := b.record(t, s)
			count[s.name] = len(calls)
		}
		root, last := b.prepare(t, s)
		at := 1 + random.IntN(count[s.name])
		_, code := b.run(t, root, last, "strace", "-f", "-o", "/dev/null", "-e", "trace="+traced,
			"-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", traced, at))
		if code < 128 && code != -1 {
			continue // each thread counts for itself, and none came that far
		}
		interrupted++
		if s.name == "trial" {
			time.Sleep(1500 * time.Millisecond) // its guard holds the lock of the device at its end
		}
		b.check(t, fmt.Sprintf("%s: killed at call %d", s.name, at), read(t, root))
	}
	if interrupted < kills {
		t.Errorf("only %d of %d kills came in time", interrupted, kills)
	}
	t.Logf("saw: %d processes killed", interrupted)
}
