package review

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnifiedDiffFormat(t *testing.T) {
	from := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n"
	to := "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\n"
	want := `--- old
+++ new
@@ -1,5 +1,5 @@
 a
-b
+B
 c
 d
 e
@@ -11,3 +11,4 @@
 k
 l
 m
+n
`
	if got := UnifiedDiff([]byte(from), []byte(to), "old", "new"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := UnifiedDiff([]byte(from), []byte(from), "old", "new"); got != "" {
		t.Errorf("equal texts differ: %s", got)
	}
}

// patch(1) is the reader that people will use.
func TestUnifiedDiffApplies(t *testing.T) {
	patch, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("patch(1) is not installed")
	}
	rng := rand.New(rand.NewSource(1))
	for i := range 60 {
		from, to := text(rng), text(rng)
		dir := t.TempDir()
		file := filepath.Join(dir, "f")
		if err := os.WriteFile(file, []byte(from), 0o644); err != nil {
			t.Fatal(err)
		}
		diff := UnifiedDiff([]byte(from), []byte(to), "f", "f")
		if diff == "" {
			continue
		}
		cmd := exec.Command(patch, "-s", "-p0", "f")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("case %d: %v\n%s\n%s", i, err, out, diff)
		}
		got, err := os.ReadFile(file)
		if err != nil && to != "" {
			t.Fatal(err)
		}
		if string(got) != to {
			t.Fatalf("case %d: patched text differs\n%s", i, diff)
		}
	}
}

func text(rng *rand.Rand) string {
	var b strings.Builder
	n := 5 + rng.Intn(40)
	for i := range n {
		if rng.Intn(6) == 0 {
			fmt.Fprintf(&b, "new %d\n", rng.Intn(9))
		} else if rng.Intn(8) != 0 {
			fmt.Fprintf(&b, "line %d\n", i)
		}
	}
	if rng.Intn(4) == 0 {
		return strings.TrimSuffix(b.String(), "\n")
	}
	return b.String()
}
