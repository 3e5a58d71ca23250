package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/emitters"
)

func layer(files ...string) []emitters.File {
	var out []emitters.File
	for i := 0; i < len(files); i += 2 {
		out = append(out, emitters.File{Path: files[i], Data: []byte(files[i+1]), Mode: 0o644})
	}
	return out
}

func write(t *testing.T, out string, force bool, files []emitters.File) error {
	t.Helper()
	c, err := Compare(out, files)
	if err != nil {
		return err
	}
	return c.Write(t.Context(), force)
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		return "absent"
	}
	return string(b)
}

func TestFirstBuildIsAtomicAndSecondChangesNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a", "layer")
	files := layer("conf/layer.conf", "x\n", "README.md", "y\n")
	if err := write(t, out, false, files); err != nil {
		t.Fatal(err)
	}
	c, err := Compare(out, files)
	if err != nil || !c.Clean() || c.Same != 2 {
		t.Errorf("second comparison: %+v, %v", c, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(out), ".yoctune-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("temporary folders are left: %v", left)
	}
}

func TestStaleFilesAreDeletedAndForeignFilesStay(t *testing.T) {
	out := filepath.Join(t.TempDir(), "layer")
	if err := write(t, out, false, layer("old/gone.conf", "x\n", "kept.conf", "y\n")); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(out, "notes.txt")
	if err := os.WriteFile(foreign, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(t, out, false, layer("kept.conf", "z\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(out, "old")); !os.IsNotExist(err) {
		t.Error("the emptied folder of a stale file is still there")
	}
	if read(t, foreign) != "mine" || read(t, filepath.Join(out, "kept.conf")) != "z\n" {
		t.Error("a foreign file was touched, or a generated one was not updated")
	}
}

func TestForeignFilesAreNeverOverwritten(t *testing.T) {
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "README.md"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, force := range []bool{false, true} {
		err := write(t, out, force, layer("README.md", "generated", "conf/layer.conf", "x"))
		if !errors.Is(err, errForeign) {
			t.Errorf("force=%t: got %v, want ErrForeign", force, err)
		}
		if read(t, filepath.Join(out, "conf/layer.conf")) != "absent" {
			t.Errorf("force=%t: half of the layer was written", force)
		}
	}
}

func TestHandEditedFilesNeedForce(t *testing.T) {
	out := filepath.Join(t.TempDir(), "layer")
	if err := write(t, out, false, layer("a.conf", "1\n")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(out, "a.conf")
	if err := os.WriteFile(file, []byte("edited\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(t, out, false, layer("a.conf", "2\n")); !errors.Is(err, ErrEdited) {
		t.Errorf("got %v, want ErrEdited", err)
	}
	if read(t, file) != "edited\n" {
		t.Error("the edit is lost")
	}
	if err := write(t, out, true, layer("a.conf", "2\n")); err != nil || read(t, file) != "2\n" {
		t.Errorf("with force: %v, %q", err, read(t, file))
	}
}

func TestLinksInTheFolderAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	out := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(out, "conf")); err != nil {
		t.Fatal(err)
	}
	if err := write(t, out, true, layer("conf/layer.conf", "x")); !errors.Is(err, errForeign) {
		t.Errorf("got %v, want ErrForeign", err)
	}
	if read(t, filepath.Join(outside, "layer.conf")) != "absent" {
		t.Error("a file was written through the link")
	}
}

func TestPathsOutsideTheFolderAreRefused(t *testing.T) {
	for _, p := range []string{"../x", "/etc/x", "a/../../x", "", "a//b", manifest.Name} {
		if err := write(t, filepath.Join(t.TempDir(), "layer"), true, layer(p, "x")); !errors.Is(err, errFolder) {
			t.Errorf("%q: got %v, want ErrFolder", p, err)
		}
	}
}

func TestManifestWithOutsidePathsIsRefused(t *testing.T) {
	out := t.TempDir()
	victim := filepath.Join(filepath.Dir(out), "victim")
	if err := os.WriteFile(victim, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := `{"$schema":"yoctune.manifest/1","files":{"../victim":{"sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}}}`
	if err := os.WriteFile(filepath.Join(out, manifest.Name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(t, out, true, layer("a", "b")); !errors.Is(err, errFolder) {
		t.Errorf("got %v, want ErrFolder", err)
	}
	if read(t, victim) != "x" {
		t.Error("a file outside was removed")
	}
}

func TestFileInPlaceOfFolderIsAnError(t *testing.T) {
	out := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(out, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(t, out, false, layer("a", "b")); !errors.Is(err, errFolder) {
		t.Errorf("got %v, want ErrFolder", err)
	}
}

// A layer that is built under another umask is the same layer.
func TestModesDoNotDependOnTheUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	out := filepath.Join(t.TempDir(), "layer")
	files := layer("a/b.conf", "x", "c.sh", "y", "d.sh", "z")
	files[1].Mode, files[2].Mode = 0o755, 0o755
	if err := write(t, out, false, files); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"a/b.conf": 0o644, "c.sh": 0o755, "d.sh": 0o755} {
		info, err := os.Stat(filepath.Join(out, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// Git keeps the executable bit alone, so a checkout differs in the rest.
func TestLayerIsIndependentOfUmask(t *testing.T) {
	out := filepath.Join(t.TempDir(), "layer")
	files := layer("a.conf", "x", "b.sh", "y")
	files[1].Mode = 0o755
	if err := write(t, out, false, files); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"a.conf": 0o664, "b.sh": 0o775} {
		if err := os.Chmod(filepath.Join(out, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := Compare(out, files); err != nil || len(c.Actions) != 0 {
		t.Errorf("it differs: %+v, %v", c, err)
	}
	if err := os.Chmod(filepath.Join(out, "b.sh"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err := Compare(out, files); err != nil || len(c.Actions) != 1 {
		t.Error("a script that lost its executable bit is not reported as different")
	}
}

// An interrupted build leaves neither a layer nor temporary files.
func TestCancelledContextLeavesNothingBehind(t *testing.T) {
	for name, exists := range map[string]bool{"a new folder": false, "an existing folder": true} {
		out := filepath.Join(t.TempDir(), "layer")
		if exists {
			if err := os.Mkdir(out, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		c, err := Compare(out, []emitters.File{{Path: "conf/layer.conf", Mode: 0o644, Data: []byte("a\n")}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		end()
		if err := c.Write(ctx, false); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*", "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
		if stage, err := filepath.Glob(filepath.Join(filepath.Dir(out), ".yoctune-*")); err != nil || len(stage) > 0 {
			t.Errorf("%s: left %v, %v", name, stage, err)
		}
	}
}

// Folders that yoctune 0.1 wrote have a manifest of digests only: they are read,
// compared and brought up to date.
func TestVersion1ManifestIsRecognised(t *testing.T) {
	out := filepath.Join(t.TempDir(), "layer")
	files := layer("conf/layer.conf", "x\n", "gone.conf", "y\n")
	if err := write(t, out, false, files); err != nil {
		t.Fatal(err)
	}
	text := `{"$schema":"yoctune.manifest/1","files":{"conf/layer.conf":{"mode":"0644","sha256":"` + manifest.Digest([]byte("x\n")) +
		`"},"gone.conf":{"mode":"0644","sha256":"` + manifest.Digest([]byte("y\n")) + `"}}}`
	if err := os.WriteFile(filepath.Join(out, manifest.Name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	back, err := Read(out)
	if err != nil || len(back) != 3 || string(back[0].Data) != text {
		t.Fatalf("read as %+v, %v", back, err)
	}
	// As it was published it is written again.
	copied := filepath.Join(t.TempDir(), "copy")
	if err := write(t, copied, false, back); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(copied, manifest.Name)); got != text {
		t.Errorf("the copy has the manifest %s", got)
	}
	if err := write(t, out, false, layer("conf/layer.conf", "x\n")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(out, manifest.Name)); !strings.Contains(got, manifest.Schema) || read(t, filepath.Join(out, "gone.conf")) != "absent" {
		t.Errorf("after a build: %s", got)
	}
}

func TestFilesBesideTheirManifestMustBeListed(t *testing.T) {
	files := layer("a.conf", "1\n")
	listing, err := manifest.Of(files).Encode()
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, emitters.File{Path: manifest.Name, Data: listing}, emitters.File{Path: "b.conf", Data: []byte("2\n")})
	if _, err := Compare(filepath.Join(t.TempDir(), "x"), files); !errors.Is(err, errFolder) || !strings.Contains(err.Error(), "b.conf is not in the manifest") {
		t.Errorf("got %v", err)
	}
}

func TestBeforeIsTheFolderOnDisk(t *testing.T) {
	out := filepath.Join(t.TempDir(), "layer")
	was := layer("kept.conf", "k\n", "changed.conf", "1\n", "gone.conf", "g\n")
	was[0].Means = []emitters.Meaning{{Kind: emitters.Setting, Name: "kept"}}
	if err := write(t, out, false, was); err != nil {
		t.Fatal(err)
	}
	c, err := Compare(out, layer("kept.conf", "k\n", "changed.conf", "2\n", "new.conf", "n\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range c.EarlierFiles() {
		got[f.Path] = string(f.Data)
		if f.Path == "kept.conf" && len(f.Means) != 1 {
			t.Errorf("kept.conf means %+v", f.Means)
		}
	}
	want := map[string]string{"kept.conf": "k\n", "changed.conf": "1\n", "gone.conf": "g\n"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// Two first builds of one folder: the second ends with a message, and changes nothing.
func TestFolderThatAppearsMeanwhileIsLeftAlone(t *testing.T) {
	out := filepath.Join(t.TempDir(), "meta-box")
	late, err := Compare(out, layer("a.conf", "late\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t, out, false, layer("a.conf", "first\n")); err != nil {
		t.Fatal(err)
	}
	if err := late.Write(t.Context(), false); !errors.Is(err, errConcurrent) || !strings.Contains(err.Error(), out) {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(out, "a.conf")); err != nil || string(got) != "first\n" {
		t.Errorf("%q %v", got, err)
	}
}

// Of the files of a large layer, only those that differ are held in memory, and its manifest is
// not held as text.
func TestEqualFilesAreNotHeldInMemory(t *testing.T) {
	const count, size = 64, 256 << 10
	var files []emitters.File
	for i := range count {
		f := emitters.File{Path: fmt.Sprintf("files/%d", i), Data: bytes.Repeat([]byte{byte(i)}, size), Mode: 0o644}
		for j := range 256 {
			f.Means = append(f.Means, emitters.Meaning{Kind: emitters.Setting, Name: fmt.Sprintf("setting.%d", j), Value: strings.Repeat("v", 256)})
		}
		files = append(files, f)
	}
	out := filepath.Join(t.TempDir(), "layer")
	if err := write(t, out, false, files); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(out, manifest.Name))
	if err != nil || info.Size() < 4<<20 {
		t.Fatalf("%v, %v: the manifest is small", info, err)
	}
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	compare := func(same int) uint64 {
		before := allocated()
		c, err := Compare(out, files)
		if err != nil || c.Same != same {
			t.Fatalf("%d are the same: %v", c.Same, err)
		}
		return allocated() - before
	}
	equal := compare(count)
	if equal >= count*size+uint64(info.Size()) { // what each is read into is less
		t.Errorf("%d bytes were allocated to compare %d bytes of files and %d of the manifest", equal, count*size, info.Size())
	}
	files[7].Data = bytes.Repeat([]byte{'x'}, size)
	if changed := compare(count - 1); changed < equal+size {
		t.Errorf("a file that differs was not read: %d bytes, %d without it", changed, equal)
	}
}

// Contents that the folder holds leave the memory and return for a comparison that needs them.
func TestHeldContentsReturn(t *testing.T) {
	out := filepath.Join(t.TempDir(), "layer")
	if err := write(t, out, false, layer("same.txt", "x\n", "changed.txt", "old\n", "run.sh", "true\n", "recipe.bb", "A = \"1\"\n")); err != nil {
		t.Fatal(err)
	}
	emit := func(files []emitters.File) []emitters.File {
		hold, done := Hold(out)
		defer done()
		for i := range files {
			files[i].HoldContent(hold)
		}
		return files
	}
	files := emit(layer("same.txt", "x\n", "changed.txt", "old\n", "run.sh", "true\n", "recipe.bb", "A = \"1\"\n"))
	for _, f := range files {
		if held := f.Held != "" && f.Data == nil; held == (f.Path == "recipe.bb") {
			t.Errorf("%s: held: %v", f.Path, held)
		}
	}
	if c, err := Compare(out, files); err != nil || !c.Clean() || c.Same != 4 || files[0].Data != nil {
		t.Errorf("the same files: %+v, %v", c, err)
	}

	files = emit(layer("same.txt", "x\n", "changed.txt", "new\n", "run.sh", "true\n", "recipe.bb", "A = \"1\"\n"))
	files[2].Mode = 0o755 // of the same content
	c, err := Compare(out, files)
	if err != nil || len(c.Actions) != 3 { // with the manifest
		t.Fatalf("a changed file: %+v, %v", c, err)
	}
	for _, f := range append(c.EarlierFiles(), files...) {
		if len(f.Data) == 0 || f.Held != "" {
			t.Errorf("%s lacks its content", f.Path)
		}
	}
	if a := c.Actions[2]; a.Path != "run.sh" || string(a.Now) != "true\n" || string(a.Was) != "true\n" {
		t.Errorf("the file with another mode: %+v", a)
	}
	if err := c.Write(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if read(t, filepath.Join(out, "run.sh")) != "true\n" || read(t, filepath.Join(out, "changed.txt")) != "new\n" {
		t.Error("the folder lacks a content")
	}

	files = emit(layer("same.txt", "x\n", "changed.txt", "other\n"))
	if err := os.WriteFile(filepath.Join(out, "same.txt"), []byte("edited\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Compare(out, files); !errors.Is(err, errFolder) || !strings.Contains(err.Error(), "same.txt changed") {
		t.Errorf("a file that changes meanwhile: %v", err)
	}
	if hold, done := Hold(filepath.Join(out, "absent")); hold != nil {
		t.Error("an absent folder holds files")
	} else {
		done()
	}
}
