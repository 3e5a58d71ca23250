package planfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

func tree(t *testing.T) (*rootfs.Root, string) {
	t.Helper()
	dir := t.TempDir()
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dev, dir
}

func writePlan(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func encoded(t *testing.T, serial int64) []byte {
	t.Helper()
	p := &plan.Plan{Layer: "vision", Target: "line-camera", Board: "orin-nano-8gb", Serial: serial}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func key(t *testing.T) (public []byte, private signature.Secret) {
	t.Helper()
	k, err := signature.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return k.Public().File(), k
}

func TestInstalledPlanIsFoundBelowTheRoot(t *testing.T) {
	dev, dir := tree(t)
	if _, err := planfile.Load(dev, planfile.Source{}); !errors.Is(err, planfile.ErrMissing) {
		t.Errorf("nothing installed: %v", err)
	}
	writePlan(t, dir+planfile.Installed, encoded(t, 3))
	f, err := planfile.Load(dev, planfile.Source{})
	if err != nil || f.Plan.Serial != 3 || f.Origins != nil || f.Signed {
		t.Fatalf("%+v, %v", f, err)
	}
	writePlan(t, dir+"/usr/lib/yoctune/plan.origins.json", []byte(`{"sysctl.a":{"file":"c.cue","line":3,"column":7}}`))
	f, err = planfile.Load(dev, planfile.Source{})
	if err != nil || f.Origins["sysctl.a"].Line != 3 {
		t.Errorf("%+v, %v", f, err)
	}
	writePlan(t, dir+"/usr/lib/yoctune/plan.origins.json", []byte(`{`))
	if _, err := planfile.Load(dev, planfile.Source{}); err == nil || !strings.Contains(err.Error(), "plan.origins.json") {
		t.Errorf("broken origins: %v", err)
	}
}

func TestPlanArgumentIsAHostPath(t *testing.T) {
	dev, _ := tree(t)
	name := filepath.Join(t.TempDir(), "mine.json")
	writePlan(t, name, encoded(t, 5))
	f, err := planfile.Load(dev, planfile.Source{Path: name})
	if err != nil || f.Plan.Serial != 5 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := planfile.Load(dev, planfile.Source{Path: name, Origins: name + ".none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing origins were accepted: %v", err)
	}
	if _, err := planfile.Load(dev, planfile.Source{Path: name + ".none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestBrokenPlanIsRefused(t *testing.T) {
	dev, dir := tree(t)
	good := encoded(t, 3)
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"truncated":     {good[:len(good)/2], plan.ErrSyntax},
		"empty":         {nil, plan.ErrSyntax},
		"edited":        {bytes.Replace(good, []byte("line-camera"), []byte("line-camerb"), 1), plan.ErrDigest},
		"trailing data": {append(bytes.Clone(good), "{}"...), plan.ErrSyntax},
		"next major":    {bytes.Replace(good, []byte(plan.Schema), []byte("yoctune.plan/3"), 1), plan.ErrSchema},
		"not JSON":      {[]byte("board: x"), plan.ErrSyntax},
		"null":          {[]byte("null"), plan.ErrSchema},
	} {
		t.Run(name, func(t *testing.T) {
			writePlan(t, dir+planfile.Installed, c.data)
			if f, err := planfile.Load(dev, planfile.Source{}); !errors.Is(err, c.want) {
				t.Errorf("%+v, %v; want %v", f, err, c.want)
			}
		})
	}
	writePlan(t, dir+planfile.Installed, bytes.Repeat([]byte(" "), plan.MaxSize+1))
	if _, err := planfile.Load(dev, planfile.Source{}); !errors.Is(err, rootfs.ErrTooLarge) {
		t.Errorf("huge: %v", err)
	}
}

func TestKeyRequiresASignedPlan(t *testing.T) {
	dev, dir := tree(t)
	data := encoded(t, 3)
	pub, priv := key(t)
	otherPub, other := key(t)
	writePlan(t, dir+planfile.Installed, data)
	load := func() (*planfile.File, error) { return planfile.Load(dev, planfile.Source{}) }
	sidecar := dir + planfile.Installed + signature.Extension

	if f, err := load(); err != nil || f.Signed {
		t.Errorf("without a key: %+v, %v", f, err)
	}
	writePlan(t, dir+planfile.KeyDir+"/fleet.txt", pub)
	if _, err := load(); err == nil || !strings.Contains(err.Error(), "/etc/yoctune/keys/fleet.txt is not named *.pub") {
		t.Errorf("a key of another name is ignored: %v", err)
	}
	if err := os.Remove(dir + planfile.KeyDir + "/fleet.txt"); err != nil {
		t.Fatal(err)
	}
	writePlan(t, dir+planfile.KeyDir+"/fleet.pub", pub)
	if _, err := load(); !errors.Is(err, planfile.ErrSignature) {
		t.Errorf("unsigned: %v", err)
	}
	writePlan(t, sidecar, priv.Sign(data, ""))
	if f, err := load(); err != nil || !f.Signed || f.Signer != priv.Public().ID() {
		t.Errorf("signed: %+v, %v", f, err)
	}
	writePlan(t, sidecar, other.Sign(data, ""))
	if _, err := load(); !errors.Is(err, planfile.ErrSignature) {
		t.Errorf("signed by an unknown key: %v", err)
	}
	writePlan(t, dir+planfile.KeyDir+"/second.pub", otherPub)
	if f, err := load(); err != nil || !f.Signed {
		t.Errorf("signed by the second key: %+v, %v", f, err)
	}
	writePlan(t, sidecar, priv.Sign(encoded(t, 4), ""))
	if _, err := load(); !errors.Is(err, planfile.ErrSignature) {
		t.Errorf("signature of another plan: %v", err)
	}
	writePlan(t, sidecar, []byte("rubbish"))
	if _, err := load(); !errors.Is(err, planfile.ErrSignature) {
		t.Errorf("without a signature: %v", err)
	}
	writePlan(t, sidecar, priv.Sign(data, ""))
	writePlan(t, dir+planfile.KeyDir+"/broken.pub", []byte("RWQ"))
	if _, err := load(); err == nil {
		t.Error("a key that cannot be read is ignored")
	}
}

func TestPlanForAnotherBoardIsRefused(t *testing.T) {
	nano := rootfs.Identity{Compatible: []string{"nvidia,p3768-0000+p3767-0005", "nvidia,p3767-0005", "nvidia,tegra234"}}
	agx := rootfs.Identity{Compatible: []string{"nvidia,p3737-0000+p3701-0005", "nvidia,p3701-0005", "nvidia,tegra234"}}
	server := rootfs.Identity{}
	for _, c := range []struct {
		board string
		on    rootfs.Identity
		ok    bool
	}{
		{"orin-nano-8gb", nano, true},
		{"orin-nano-8gb", agx, false},
		{"agx-orin-64gb", agx, true},
		{"orin-nano-8gb", server, false},
		{"generic", server, true},
		{"", server, true},
		{"generic", nano, true},
		{"agx-xavier", nano, false},
		{"no-such-board", nano, false},
		{"no-such-board", server, false},
		{"nano-4gb", nano, false},
	} {
		err := planfile.CheckDevice(&plan.Plan{Board: c.board}, c.on)
		if (err == nil) != c.ok || err != nil && (!errors.Is(err, planfile.ErrBoard) || !strings.Contains(err.Error(), "--any-board")) {
			t.Errorf("%q on %q: %v", c.board, c.on.Compatible, err)
		}
	}
}

func TestOlderPlanIsRefused(t *testing.T) {
	dev, dir := tree(t)
	p := func(target string, serial int64) *plan.Plan {
		return &plan.Plan{Layer: "vision", Target: target, Serial: serial}
	}
	if err := planfile.CheckSerial(dev, p("a", 1)); err != nil {
		t.Errorf("first plan: %v", err)
	}
	if err := planfile.Confirm(dev, p("a", 5)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		plan *plan.Plan
		ok   bool
	}{{p("a", 4), false}, {p("a", 5), true}, {p("a", 6), true}, {p("b", 1), true}} {
		if err := planfile.CheckSerial(dev, c.plan); errors.Is(err, planfile.ErrSerial) == c.ok {
			t.Errorf("%s serial %d: %v", c.plan.Target, c.plan.Serial, err)
		}
	}
	if err := planfile.Confirm(dev, p("a", 2)); err != nil {
		t.Fatal(err)
	}
	if err := planfile.CheckSerial(dev, p("a", 4)); !errors.Is(err, planfile.ErrSerial) {
		t.Errorf("confirming an older serial lowered the confirmed one: %v", err)
	}
	writePlan(t, dir+planfile.SerialFile, []byte("rubbish"))
	if err := planfile.CheckSerial(dev, p("a", 9)); err == nil || !strings.Contains(err.Error(), planfile.SerialFile) {
		t.Errorf("a damaged record is ignored: %v", err)
	}
}

func TestTriedPlanIsRefusedUntilForgotten(t *testing.T) {
	dev, err := rootfs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tried, other := &plan.Plan{Digest: "sha256:a", Serial: 6}, &plan.Plan{Digest: "sha256:b"}
	if got, err := planfile.ReadTrial(dev); got != nil || err != nil || got.Running("boot") {
		t.Fatalf("%+v %v", got, err)
	}
	if err := (planfile.Trial{Boot: "boot", Digest: tried.Digest, Deadline: 100}).Write(dev); err != nil {
		t.Fatal(err)
	}
	got, err := planfile.ReadTrial(dev)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Running("boot") || got.Running("the next boot") || got.Expired(99) || !got.Expired(100) {
		t.Errorf("%+v", got)
	}
	if err := planfile.CheckTrial(got, tried); !errors.Is(err, planfile.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	if err := planfile.CheckTrial(got, other); err != nil {
		t.Errorf("another plan: %v", err)
	}
	if err := planfile.ForgetTrial(dev); err != nil {
		t.Fatal(err)
	}
	if got, err := planfile.ReadTrial(dev); got != nil || err != nil {
		t.Errorf("%+v %v", got, err)
	}
}

func TestDamagedTrialErrorSuggestsAFix(t *testing.T) {
	dev, err := rootfs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.WriteState(planfile.TrialFile, []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := planfile.ReadTrial(dev); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("%v", err)
	}
}

func TestPlanForAnotherL4TIsRefused(t *testing.T) {
	for _, c := range []struct {
		plan, device string
		ok           bool
	}{
		{"36.5.0", "36.4.0", true},
		{"36.5.0", "35.6.0", false},
		{"36.5.0", "", true}, // the image does not report its version
		{"", "36.4.0", true},
		{"39.2.0", "36.5.0", false},
	} {
		err := planfile.CheckDevice(&plan.Plan{Board: "generic", L4T: c.plan}, rootfs.Identity{L4T: c.device})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, planfile.ErrL4T) {
			t.Errorf("%s on %s: %v", c.plan, c.device, err)
		}
	}
}
