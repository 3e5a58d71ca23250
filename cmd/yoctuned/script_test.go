package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/cli/clitest"
	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"yoctuned": main})
}

// Each script is a session of a user. Besides yoctuned it may use
//
//	synthtree BOARD DIR     make a device tree
//	seal FILE...            complete plans: defaults and digest
//	digest PLAN FILE TEXT   write TEXT, with the plan's digest for DIGEST
//	flash PLAN DIR          make the tree match an image with the plan's layer
//	sign FILE DIR           sign a file, and install the key below DIR
//	exits CODE COMMAND...   run a command that must end with that code
//	awaits FILE [TEXT]      wait until a file is there, and has the text in it
//	quiet DIR               the watching process of a tree must not wake while nothing happens
//	rests DIR               the watching process of a tree must soon hold less memory than now
//	fetches SOCKET PATH TEXT  read what is served on a socket; the answer contains the text, or with ! does not
//	hold DIR                hold the lock of a device until the script ends
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		// Pipelines without --root would leave their folders in /run. A socket's path is short.
		Setup: func(env *testscript.Env) error {
			dir, err := os.MkdirTemp("/tmp", "socket")
			env.Setenv("RUNTIME_DIRECTORY", dir)
			env.Defer(func() { _ = os.RemoveAll(dir) })
			return err
		},
		// go test -tags serve ./cmd/yoctuned
		Condition: func(cond string) (bool, error) { return cond == "serve" && serving, nil },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"synthtree": cmdSynthtree, "seal": cmdSeal, "digest": cmdDigest, "flash": cmdFlash, "sign": cmdSign, "exits": cmdExits, "hold": cmdHold, "awaits": cmdAwaits, "quiet": cmdQuiet, "rests": cmdRests, "fetches": cmdFetches,
		},
	})
}

func cmdSynthtree(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(devicetest.Build(ts.MkAbs(args[1]), args[0]))
}

func cmdSeal(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		var p plan.Plan
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &p))
		for i := range p.Settings {
			s := &p.Settings[i]
			fill := func(field *string, value string) {
				if *field == "" {
					*field = value
				}
			}
			fill(&s.Domain, plan.DomainSysctl)
			fill(&s.Type, plan.TypeInt)
			fill(&s.Compare, plan.Exact)
			fill(&s.Policy, plan.Enforce)
			fill(&s.Needs, plan.NeedsNothing)
		}
		ts.Check(p.Seal())
		b, err := p.Encode()
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name), b, 0o644))
	}
}

func cmdDigest(ts *testscript.TestScript, _ bool, args []string) {
	p, err := plan.Decode(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.ReplaceAll(args[2], "DIGEST", p.Digest)), 0o644))
}

func cmdFlash(ts *testscript.TestScript, _ bool, args []string) {
	p, err := plan.Decode(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(devicetest.InstallPlan(ts.MkAbs(args[1]), p))
}

func cmdSign(ts *testscript.TestScript, _ bool, args []string) {
	key, err := signature.Generate()
	ts.Check(err)
	keys := ts.MkAbs(filepath.Join(args[1], "etc/yoctune/keys"))
	ts.Check(os.MkdirAll(keys, 0o755))
	ts.Check(os.WriteFile(filepath.Join(keys, "fleet.pub"), key.Public().File(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".minisig"), key.Sign([]byte(ts.ReadFile(args[0])), ""), 0o644))
}

func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

// cmdAwaits polls, because another process causes the awaited change.
func cmdAwaits(ts *testscript.TestScript, _ bool, args []string) {
	const patience = time.Minute
	late := time.Now().Add(patience)
	for {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		there := err == nil || !errors.Is(err, fs.ErrNotExist)
		if there && (len(args) == 1 || strings.Contains(string(b), args[1])) {
			return
		}
		if time.Now().After(late) {
			ts.Fatalf("%s: %v, after %v: %s", args[0], err, patience, b)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// watcher is the process that watches a tree.
func watcher(ts *testscript.TestScript, tree string) int {
	var state struct {
		PID int `json:"pid"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(tree, "run/yoctune/watch.json"))), &state))
	return state.PID
}

// cmdRests runs a command and waits until the process that watches the tree holds less
// than it did at most meanwhile.
func cmdRests(ts *testscript.TestScript, _ bool, args []string) {
	proc := fmt.Sprintf("/proc/%d/", watcher(ts, args[0]))
	kB := func(field string) (n int) {
		b, err := os.ReadFile(proc + "status")
		ts.Check(err)
		_, rest, _ := strings.Cut(string(b), "\n"+field+":")
		_, _ = fmt.Sscan(rest, &n)
		return n
	}
	ts.Check(os.WriteFile(proc+"clear_refs", []byte("5"), 0)) // resets the peak
	ts.Check(ts.Exec(args[1], args[2:]...))
	const less = 1024 // kB; what a sample loads is some 4 MB
	for late := time.Now().Add(time.Minute); kB("VmRSS") > kB("VmHWM")-less; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(late) {
			ts.Fatalf("%d kB at most, and %d kB a minute later", kB("VmHWM"), kB("VmRSS"))
		}
	}
}

// cmdQuiet lets time pass on purpose: a stray ticker shows in every two seconds. What
// starting leaves behind, such as a collection of garbage, shows in the first ones.
func cmdQuiet(ts *testscript.TestScript, _ bool, args []string) {
	pid := watcher(ts, args[0])
	wakeups := func() (n int) {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		ts.Check(err)
		for _, name := range tasks {
			b, err := os.ReadFile(name)
			if err != nil {
				continue // a thread that ended
			}
			_, rest, _ := strings.Cut(string(b), "\nvoluntary_ctxt_switches:")
			var count int
			_, _ = fmt.Sscan(rest, &count)
			n += count
		}
		return n
	}
	for late := time.Now().Add(time.Minute); ; {
		before := wakeups()
		time.Sleep(2 * time.Second)
		n := wakeups() - before
		if n <= 4 {
			return
		}
		if time.Now().After(late) {
			ts.Fatalf("%d wakeups in two idle seconds", n)
		}
	}
}

func cmdFetches(ts *testscript.TestScript, neg bool, args []string) {
	socket := ts.MkAbs(args[0])
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		// The file is there a moment before anybody listens.
		for {
			conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
			if !errors.Is(err, unix.ECONNREFUSED) || ctx.Err() != nil {
				return conn, err
			}
			time.Sleep(5 * time.Millisecond)
		}
	}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://localhost" + args[1])
	ts.Check(err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if found := strings.Contains(string(b), args[2]); found == neg {
		ts.Fatalf("%s: %s: %q is there: %v, in\n%s", args[1], resp.Status, args[2], found, b)
	}
}

func cmdHold(ts *testscript.TestScript, _ bool, args []string) {
	dev, err := rootfs.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	unlock, err := dev.Lock("yoctuned apply")
	ts.Check(err)
	ts.Defer(unlock)
}

func TestEveryCommandHasHelpAndExamplesThatItAccepts(t *testing.T) {
	clitest.CheckHelp(t, newRootCommand)
}

func TestRunReturnsInsteadOfExiting(t *testing.T) {
	var out, errs strings.Builder
	if code := run(context.Background(), []string{"verify", "--root", filepath.Join(t.TempDir(), "none")}, &out, &errs); code != cli.ExitFailed || !strings.Contains(errs.String(), "none") {
		t.Errorf("%d %s", code, errs.String())
	}
}
