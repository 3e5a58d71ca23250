package review

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

// old is a layer of yoctune 0.1, whose manifest lists digests only, with edits to
// its files: path, old text, new text.
func old(t *testing.T, edits ...string) Side {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/manifest-1.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var files []emitters.File
	var listing *manifest.Manifest
	for _, f := range archive.Files {
		if f.Name == manifest.Name {
			if listing, err = manifest.Decode(f.Data); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for i := 0; i < len(edits); i += 3 {
			if !strings.HasSuffix(f.Name, edits[i]) {
				continue
			}
			if !strings.Contains(string(f.Data), edits[i+1]) {
				t.Fatalf("%s has no %q", f.Name, edits[i+1])
			}
			f.Data = []byte(strings.Replace(string(f.Data), edits[i+1], edits[i+2], 1))
		}
		files = append(files, emitters.File{Path: f.Name, Data: f.Data})
	}
	return Side{Label: "0.1", Files: manifest.Describe(files, listing)}
}

func TestReviewLayerOfYoctune01(t *testing.T) {
	if r := compared(t, old(t), old(t)); !r.Clean() || r.Same != 1 {
		t.Errorf("%+v", r)
	}
	r := compared(t, old(t), old(t,
		"realtime-control.cfg", "CONFIG_NO_HZ_FULL=y\n", "# CONFIG_NO_HZ_FULL is not set\n",
		"packagegroup-yoctune-realtime-control.bb", "rt-tests", "stress-ng",
		"conf/yoctune/realtime-control.conf", "linux-noble-nvidia-tegra-rt", "linux-noble-nvidia-tegra",
		"conf/yoctune/realtime-control.conf", "INIT_MANAGER = \"systemd\"\n", "INIT_MANAGER = \"systemd\"\nSSTATE_DIR = \"/srv/sstate\"\n",
		"motion.service", "Restart=always", "Restart=on-failure",
		"yoctuned_0.1.0.bb", "0000000002\"", "0000000003\"",
	))
	var b strings.Builder
	if err := r.WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"~ kernel option CONFIG_NO_HZ_FULL: y → n\n      [needs a reboot · risk medium: a new kernel · config.cue:36:",
		"- package rt-tests: install → removed\n", "+ package stress-ng: install\n",
		"~ kernel recipe: linux-noble-nvidia-tegra-rt → linux-noble-nvidia-tegra\n",
		"+ build SSTATE_DIR: /srv/sstate\n",
		"~ service motion.service\n      Service.Restart: always → on-failure\n      [needs a restart · config.cue:54:",
		"~ program yoctuned: 0.1.0\n      sha256: ",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if n := r.Changes(); n != 7 {
		t.Errorf("%d changes, want 7\n%s", n, b.String())
	}
}

// An emitter that is added needs nothing here: what its files mean is compared.
func TestNewKindsOfMeaningAreCompared(t *testing.T) {
	side := func(means ...emitters.Meaning) Side {
		s := newSide(t, plan.Plan{}, nil)
		s.Files = append(s.Files, emitters.File{Path: "recipes-yoctune/x/files/quota.conf", Data: []byte(means[0].Value), Machine: machine, Means: means})
		return s
	}
	was := side(emitters.Meaning{Kind: "quota", Name: "disk", Value: "1 GiB"}, emitters.Meaning{Kind: "quota", Name: "inodes", Value: "9"})
	now := side(emitters.Meaning{Kind: "quota", Name: "disk", Value: "2 GiB", ID: "storage.quota", From: "config.cue:7"})
	r := compared(t, was, now)
	var b strings.Builder
	if err := r.WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"~ quota disk: 1 GiB → 2 GiB\n      [applies immediately · config.cue:7]", "- quota inodes: 9 → removed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// What the manifest states decides, not the text of the file.
func TestManifestIsPreferredToText(t *testing.T) {
	const name = "recipes-kernel/linux/files/" + machine + "/yoctune-box.cfg"
	was, now := newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{}, nil)
	now.Files = slices.Concat(now.Files, []emitters.File{{Path: name, Data: []byte("CONFIG_A=y\n"), Machine: machine,
		Means: []emitters.Meaning{{Kind: emitters.Option, Name: "B", Value: "m"}}}})
	r := compared(t, was, now)
	if len(r.Targets) != 1 || len(r.Targets[0].Changes) != 1 || r.Targets[0].Changes[0].Name != "CONFIG_B" {
		t.Errorf("%+v", r.Targets)
	}
}
