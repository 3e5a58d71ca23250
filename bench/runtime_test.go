package bench

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkVerify measures `yoctuned verify` of the example's plan on a
// synthetic device tree, process start included.
func BenchmarkVerify(b *testing.B) {
	yoctuned := tool(b, "./cmd/yoctuned", "-ldflags=-s -w")
	yoctune := tool(b, "./cmd/yoctune")
	dir := b.TempDir()
	root, file := filepath.Join(dir, "root"), filepath.Join(dir, "plan.json")
	example := filepath.Join(repo(b), "examples", "video-analytics")
	run(b, "", []int{0}, yoctune, "plan", example, "--target", "line-camera", "-o", file)
	run(b, "", []int{0}, yoctune, "facts", "tree", "orin-nano-8gb", "-o", root)
	run(b, "", []int{0, 3}, yoctuned, "apply", "--root", root, file)

	if info, err := os.Stat(yoctuned); err == nil {
		b.ReportMetric(float64(info.Size())/1e6, "binary-MB")
	}
	var all []usage
	for b.Loop() {
		all = append(all, run(b, "", []int{0, 3}, yoctuned, "verify", "--root", root, "--format", "json", file))
	}
	i := 0
	u := median(len(all), func() usage { u := all[i]; i++; return u })
	b.ReportMetric(float64(u.wall)/1e6, "wall-ms")
	b.ReportMetric(float64(u.cpu)/1e6, "cpu-ms")
	b.ReportMetric(float64(u.rss)/1e6, "peak-MB")
}
