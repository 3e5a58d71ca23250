package qemu

import (
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

//go:embed cascade.sh
var cascadeScript string

// What the layer of examples/cascade installs, from its golden tree, and the example.
const (
	beltLayer   = "../../golden/cascade/recipes-yoctune/yoctune-belt-reader-config/files/yoctune-on-jetson-orin-nano-devkit"
	beltExample = "../../examples/cascade"
)

// TestTheUnitOfACascadeRunsInAGuest boots the kernel with a real systemd and the unit of examples/cascade:
// after boot it finds and reads labels on the CPU, as the layer's user and in its sandbox.
func TestTheUnitOfACascadeRunsInAGuest(t *testing.T) {
	if os.Getenv("YOCTUNE_QEMU_CASCADE") == "" {
		t.Skip("YOCTUNE_QEMU_CASCADE is not set; `scripts/prove.sh systemd` sets it: the guest takes minutes")
	}
	cache := guestKernel(t)
	library := models.Library(t)
	archive := newSystemdGuest(t, cache, t.TempDir(), cascadeScript)
	archive.addSymlink("bin/sort", "busybox")
	f, err := os.Open(filepath.Join(beltLayer, "plan/plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := plan.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range p.Pipelines["belt"].Stages {
		if st.Model != nil {
			archive.addHostFile("usr/share/yoctune/models/"+st.Model.SHA256, filepath.Join(models.Digest(t, st.Model.SHA256), st.Model.SHA256))
		}
	}
	for name, host := range map[string]string{
		"usr/lib/yoctune/plan.json":                                           filepath.Join(beltLayer, "plan/plan.json"),
		"usr/lib/yoctune/ppocr_keys_v1.txt":                                   filepath.Join(beltExample, "ppocr_keys_v1.txt"),
		"lib/systemd/system/yoctuned-pipeline@belt.service.d/50-yoctune.conf": filepath.Join(beltLayer, "yoctuned-pipeline@belt.service.d-50-yoctune.conf"),
		path.Join("usr/lib/yoctune", filepath.Base(library)):                  library,
	} {
		archive.addHostFile(name, host)
	}
	for _, l := range libraries(library) {
		archive.addHostFile(strings.TrimPrefix(l, "/"), l)
	}
	archive.addSymlink("etc/systemd/system/multi-user.target.wants/yoctuned-pipeline@belt.service", "/lib/systemd/system/yoctuned-pipeline@.service")
	archive.addFile("lib/systemd/system/yoctuned-pipeline@belt.service.d/log.conf", 0o644, []byte("[Service]\nStandardOutput=append:/belt.log\nStandardError=append:/belt.log\n"))
	archive.addFile("expect", 0o644, nil) // no settings
	clip, err := os.ReadFile(filepath.Join(beltExample, "media/belt.grey"))
	if err != nil {
		t.Fatal(err)
	}
	labels, err := os.ReadFile(filepath.Join(beltExample, "media/belt.txt"))
	if err != nil {
		t.Fatal(err)
	}
	// The first frames, with no, one and two labels: models run a hundred times slower on an emulated processor.
	const frames = 3
	texts := strings.Split(strings.TrimSuffix(string(labels), "\n"), "\n")
	archive.addFile("usr/lib/yoctune/media/belt.grey", 0o644, clip[:len(clip)/len(texts)*frames])
	var lines strings.Builder
	for n := range frames {
		fmt.Fprintf(&lines, "%d %s\n", n, texts[n])
	}
	archive.limit, archive.memory = time.Hour, 2048
	archive.addFile("labels", 0o644, []byte(lines.String()))
	report(t, archive.boot(t, cache, "systemd.unit=multi-user.target systemd.show_status=0"), 10)
}
