package checklayer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeBitBake is a rig whose bitbake is a shell script, in a work folder that is
// as good as a prepared one.
func fakeBitBake(t *testing.T, script string) (*rig, string) {
	t.Helper()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "bitbake", "bin", "bitbake"), "#!/bin/sh\n"+script, 0o755)
	// The server of this bitbake: a program of that name in a session of its own.
	writeFile(t, filepath.Join(root, "bitbake", "bin", "bitbake-server"), "#!/bin/sh\nsleep 60 & wait\n", 0o755)
	g := &rig{work: root, src: sources{BitBake: filepath.Join(root, "bitbake"), OECore: filepath.Join(root, "oe-core")}}
	if err := g.configure("quick", conf{Layers: []string{"/l"}}); err != nil {
		t.Fatal(err)
	}
	return g, filepath.Join(root, "log")
}

func TestCancellingEndsBitBakeAndItsServer(t *testing.T) {
	g, log := fakeBitBake(t, `setsid bitbake-server "$BUILDDIR/bitbake.lock" & touch "$BUILDDIR/started"; sleep 60 & wait`)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	go func() {
		for len(processesOf(g.build("quick"))) < 2 {
			if _, err := os.Stat(g.build("quick")); err != nil {
				return // the test is over
			}
			time.Sleep(5 * time.Millisecond)
		}
		cancel(stopped)
	}()
	if _, err := g.bitbake(ctx, "quick", log, "bitbake", "-p"); err == nil || !errors.Is(context.Cause(ctx), stopped) {
		t.Errorf("ended with %v, %v", err, context.Cause(ctx))
	}
	if left := processesOf(g.build("quick")); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

func TestBitBakeSeesOnlyTheEnvironmentItNeeds(t *testing.T) {
	t.Setenv("MACHINE", "of-the-user")
	t.Setenv("BB_NO_NETWORK", "0")
	t.Setenv("PATH", "relative:"+os.Getenv("PATH"))
	g, log := fakeBitBake(t, "env; pwd; echo \"arg: $*\"")
	out, err := g.bitbake(t.Context(), "quick", log, "bitbake", "-e", "a b; $(touch x)")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HOME=" + filepath.Join(g.work, "home"), "BUILDDIR=" + g.build("quick"), "LC_ALL=en_US.UTF-8", "arg: -e a b; $(touch x)\n", "\n" + g.build("quick") + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	for _, bad := range []string{"of-the-user", "BB_NO_NETWORK", ":relative:"} {
		if strings.Contains(out, bad) {
			t.Errorf("has %q:\n%s", bad, out)
		}
	}
	b, err := os.ReadFile(log)
	if err != nil || !strings.HasPrefix(string(b), "$ bitbake -e a b; $(touch x)\n") || !strings.Contains(string(b), "arg: -e") {
		t.Errorf("log: %q, %v", b, err)
	}
}

func TestStandInsGrowUntilEverythingResolves(t *testing.T) {
	// The first two rounds miss something, the third one does not.
	g, log := fakeBitBake(t, `
case "$1" in
-e) echo 'PREFERRED_PROVIDER_virtual/libc="glibc"' ;;
*)
	stand_ins=$(cat "$BUILDDIR"/../../stand-ins/quick/recipes/stand-in/*.bb)
	case "$stand_ins" in *virtual/libc*) ;; *) echo "ERROR: Nothing PROVIDES 'virtual/libc'"; exit 1 ;; esac
	case "$stand_ins" in *base-files*) ;; *) echo "ERROR: Nothing RPROVIDES 'base-files' (but /x.bb RDEPENDS on or otherwise requires it)"; exit 1 ;; esac
	;;
esac`)
	g.layer = &layer{Dir: "/l"}
	g.standIns = map[string]*standIns{"quick": newStandIns(filepath.Join(g.work, "stand-ins", "quick"))}
	if out, err := g.resolve(t.Context(), "quick", log, []string{"world"}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(g.standIns["quick"].file("glibc"))
	if err != nil || !strings.Contains(string(b), `PROVIDES += "virtual/libc"`) {
		t.Errorf("the stand-in of the preferred provider: %v\n%s", err, b)
	}
}
