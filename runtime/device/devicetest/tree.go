// Package devicetest makes devices for tests. [Kernel] imitates the most common effects that
// plain files lack. The others need a real kernel.
package devicetest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/yoctune/yoctune/internal/synthetic"
	"github.com/yoctune/yoctune/schema/plan"
)

// BootID is the boot id of every synthetic tree.
const BootID = synthetic.BootID

// Boards lists the boards that tests use: one of each generation that is still sold.
func Boards() []string { return []string{"agx-orin-64gb", "agx-xavier", "orin-nano-8gb"} }

// Build writes the tree of a freshly started board into dir, which must be empty or absent.
func Build(dir, board string) error {
	t, err := synthetic.New(board)
	if err != nil {
		return err
	}
	return t.Write(dir)
}

// InstallPlan changes a tree to the state after the boot of an image that was built from the
// plan's layer.
func InstallPlan(dir string, p *plan.Plan) error {
	t, err := synthetic.Load(dir)
	if err != nil {
		return err
	}
	if err := t.Install(p); err != nil {
		return err
	}
	return t.Save(dir)
}

// SimulateLoad writes CPU times on which the given number of cores are busy, each with a load
// that grows from one sample to the next. look numbers the samples from 0.
func SimulateLoad(dir string, cores, look int64) error {
	stat := "cpu 0 0 0 0\n"
	for c := range cores {
		stat += fmt.Sprintf("cpu%d %d 0 0 %d\n", c, look*look*(c+1), 100*look)
	}
	return os.WriteFile(filepath.Join(dir, "proc/stat"), []byte(stat), 0o644)
}
