// Package tune finds the launch configuration with which a kernel is quickest on this
// device for a shape, and keeps it.
//
// Candidates come from what the kernel takes; those that cannot win are left out: on a
// GPU by occupancy, on the CPU by what its cache holds and the shape needs. The rest is
// measured in turn, so that a change of clocks meets all alike. What was found is kept in
// the cache of compiled kernels under the device, its driver, the digest of the kernel
// sources and the shape's bucket: a second start measures nothing.
package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yoctune/yoctune/internal/occupancy"
	"github.com/yoctune/yoctune/runtime/engine/core"
)

// From says where a choice comes from.
type From string

const (
	Measured From = "measured" // now
	Kept     From = "kept"     // measured by an earlier start
	Model    From = "model"    // not measured: by occupancy, or the cache's size
	BuiltIn  From = "built-in" // the kernel takes only one
)

// Choice is the configuration for a kernel and a shape.
type Choice struct {
	Config     core.KernelConfig `json:"-"`
	From       From              `json:"from"`
	Candidates int               `json:"candidates"` // that the kernel takes
	Pruned     int               `json:"pruned"`     // of them, not measured
	Time       time.Duration     `json:"time_ns"`    // of the chosen one, 0: not measured
	BuiltIn    time.Duration     `json:"built_in_ns"`
	Runs       int               `json:"runs"` // measured now
}

// Task is a kernel at work on a shape.
type Task struct {
	Kernel string // "gemm", "preprocess", …
	Shape  []int  // the sizes that decide, in the kernel's own order; gemm: m, n, k
	// Run does it once with a configuration and returns the device's time. nil: the
	// model decides, unless something is kept.
	Run func(context.Context, core.KernelConfig) (time.Duration, error)
}

// rounds is how often each candidate is measured.
const rounds = 5

// margin is how much quicker than what is built in a candidate must be, so that noise
// does not choose.
const margin = 0.03

// Tuner chooses configurations for one device. It may be used from several goroutines.
type Tuner struct {
	dev   *core.Device
	info  core.Info
	key   core.CacheKey // what all its entries have in common
	cache *core.Cache

	mu   sync.Mutex // choosing: measurements must not meet
	runs int
}

// New makes a tuner that keeps what it finds in kept.
func New(dev *core.Device, kept *core.Cache) (*Tuner, error) {
	info, err := dev.Info()
	if err != nil {
		return nil, err
	}
	sources, err := dev.Sources()
	if err != nil {
		return nil, err
	}
	t := &Tuner{dev: dev, info: info, cache: kept}
	t.key = core.CacheKey{
		Source:     []byte("tuning " + sources),
		Capability: strings.Join([]string{info.Backend, info.Name, known(info.Capability), fmt.Sprint(known(info.Cores))}, "\x00"),
		Driver:     strings.Join([]string{known(info.Driver), info.Build}, "\x00"),
	}
	return t, nil
}

func known[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// Runs is how many measurements the tuner has made; 0 when everything was kept.
func (t *Tuner) Runs() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runs
}

// Bucket is what shapes share that are tuned together: each size up to the next power
// of two.
func Bucket(shape []int) []int {
	out := make([]int, len(shape))
	for i, v := range shape {
		out[i] = 1
		if v > 1 {
			out[i] = 1 << bits.Len(uint(v-1))
		}
	}
	return out
}

// entry is what is kept of a choice.
type entry struct {
	Block      int   `json:"block"`
	Tile       int   `json:"tile,omitempty"`
	Candidates int   `json:"candidates"`
	Pruned     int   `json:"pruned"`
	Time       int64 `json:"time_ns"`
	BuiltIn    int64 `json:"built_in_ns"`
}

// Choose gives the configuration for a task, which it measures when nothing is kept.
// The device is not changed: use List.Configure, or Device.Configure.
func (t *Tuner) Choose(ctx context.Context, task Task) (Choice, error) {
	all := t.dev.Tunable()
	i := slices.IndexFunc(all, func(l core.KernelLimits) bool { return l.Name == task.Kernel })
	if i < 0 {
		return Choice{Config: core.KernelConfig{Kernel: task.Kernel}, From: BuiltIn}, nil
	}
	limits := all[i]
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.key
	of.Options = fmt.Sprint("tune/1 ", task.Kernel, Bucket(task.Shape))
	key := of.ID()

	list := candidates(limits)
	left := t.prune(limits, list, task.Shape)
	choice := Choice{From: Kept, Candidates: len(list), Pruned: len(list) - len(left)}
	errModel := errors.New("not measured")
	build := func() ([]byte, error) {
		if task.Run == nil {
			return nil, errModel
		}
		best, err := t.measure(ctx, task, left, &choice)
		if err != nil {
			return nil, err
		}
		choice.From, choice.Config = Measured, best
		return json.Marshal(entry{
			Block: best.Block, Tile: best.Tile, Candidates: choice.Candidates, Pruned: choice.Pruned,
			Time: int64(choice.Time), BuiltIn: int64(choice.BuiltIn),
		})
	}
	raw, hit, err := t.cache.Get(key, build)
	if errors.Is(err, errModel) {
		choice.From, choice.Config = Model, left[0]
		return choice, nil
	}
	if err != nil {
		return Choice{}, fmt.Errorf("tune %s %v: %w", task.Kernel, task.Shape, err)
	}
	if !hit {
		return choice, nil
	}
	var e entry
	if json.Unmarshal(raw, &e) == nil && slices.Contains(list, core.KernelConfig{Kernel: task.Kernel, Block: e.Block, Tile: e.Tile}) {
		choice.Config = core.KernelConfig{Kernel: task.Kernel, Block: e.Block, Tile: e.Tile}
		choice.Time, choice.BuiltIn = time.Duration(e.Time), time.Duration(e.BuiltIn)
		return choice, nil
	}
	// Whole, and not what this program writes: again, from the start.
	t.cache.Drop(key)
	if _, _, err = t.cache.Get(key, build); errors.Is(err, errModel) {
		choice.From, choice.Config, err = Model, left[0], nil
	}
	return choice, err
}

// candidates are the configurations a kernel takes, what is built in first.
func candidates(l core.KernelLimits) []core.KernelConfig {
	first := core.KernelConfig{Kernel: l.Name, Block: l.Block, Tile: l.Tile}
	if l.Tile != 0 {
		first.Block, first.Tile = l.CPUBlock, l.CPUTile
	}
	out := []core.KernelConfig{first}
	for b := l.BlockMin; b <= l.BlockMax; b += l.BlockStep {
		for tile := l.TileMin; tile <= l.TileMax; tile *= 2 {
			k := core.KernelConfig{Kernel: l.Name, Block: b, Tile: tile}
			if k != first {
				out = append(out, k)
			}
			if tile == 0 {
				break
			}
		}
	}
	return out
}

// prune leaves out what cannot win, the best guess first. It never leaves nothing.
func (t *Tuner) prune(l core.KernelLimits, all []core.KernelConfig, shape []int) []core.KernelConfig {
	if t.info.Backend == core.CPU {
		return forCache(all, shape)
	}
	d, err := occupancy.Lookup(capability(t.info))
	if err != nil {
		return all
	}
	return byOccupancy(d, l.Name, all)
}

// forCache: a block of the second matrix has to stay in the second-level cache beside
// what runs over it, and is not wider or deeper than the matrix.
func forCache(all []core.KernelConfig, shape []int) []core.KernelConfig {
	const share = 192 << 10 // bytes, of 256 KiB a core in an Orin's A78AE
	n, k := shape[min(1, len(shape)-1)], shape[len(shape)-1]
	narrow := func(size, most, unit int) bool { return size <= max(unit, Bucket([]int{most})[0]) }
	out := slices.DeleteFunc(slices.Clone(all), func(c core.KernelConfig) bool {
		return 4*c.Block*c.Tile > share || !narrow(c.Tile, n, 32) || !narrow(c.Block, k, 64)
	})
	if len(out) == 0 {
		return all[:1]
	}
	// What is built in first, where it is left; else the largest block.
	if out[0] != all[0] {
		slices.SortStableFunc(out, func(a, b core.KernelConfig) int { return b.Block*b.Tile - a.Block*a.Tile })
	}
	return out
}

// byOccupancy keeps block sizes that hold at least three quarters of the most warps
// any holds, the fullest first and of those the largest.
func byOccupancy(d occupancy.Device, kernel string, all []core.KernelConfig) []core.KernelConfig {
	need, ok := occupancy.BuiltIn(d.SM(), kernel)
	if !ok {
		return all
	}
	warps := map[core.KernelConfig]int{}
	most := 0
	for _, c := range all {
		o, err := d.Occupancy(need, c.Block, 0)
		if err != nil {
			return all
		}
		warps[c] = o.Warps
		most = max(most, o.Warps)
	}
	out := slices.DeleteFunc(slices.Clone(all), func(c core.KernelConfig) bool { return 4*warps[c] < 3*most })
	slices.SortStableFunc(out, func(a, b core.KernelConfig) int {
		if warps[a] != warps[b] {
			return warps[b] - warps[a]
		}
		return b.Block - a.Block
	})
	return out
}

// capability is 87 for "8.7", 0 where it is not known.
func capability(info core.Info) int {
	var major, minor int
	if info.Capability == nil {
		return 0
	}
	if _, err := fmt.Sscanf(*info.Capability, "%d.%d", &major, &minor); err != nil {
		return 0
	}
	return 10*major + minor
}

// measure runs what is left in turn, rounds times after one to warm up, and takes the
// quickest by its quickest run: what slows a run down is never the kernel. What is built
// in stays unless another is quicker by margin.
func (t *Tuner) measure(ctx context.Context, task Task, left []core.KernelConfig, choice *Choice) (core.KernelConfig, error) {
	first := candidates(t.limits(task.Kernel))[0]
	if !slices.Contains(left, first) {
		left = append([]core.KernelConfig{first}, left...)
	}
	best := make([]time.Duration, len(left))
	for round := range rounds + 1 {
		for i, c := range left {
			if err := ctx.Err(); err != nil {
				return core.KernelConfig{}, err
			}
			took, err := task.Run(ctx, c)
			if err != nil {
				return core.KernelConfig{}, fmt.Errorf("with blocks of %d and tiles of %d: %w", c.Block, c.Tile, err)
			}
			t.runs++
			choice.Runs++
			if round == 1 || (round > 1 && took < best[i]) {
				best[i] = took
			}
		}
	}
	at := slices.Index(left, first)
	choice.BuiltIn = best[at]
	for i, took := range best {
		if float64(took) < float64(choice.BuiltIn)*(1-margin) && took < best[at] {
			at = i
		}
	}
	choice.Time = best[at]
	return left[at], nil
}

func (t *Tuner) limits(kernel string) core.KernelLimits {
	for _, l := range t.dev.Tunable() {
		if l.Name == kernel {
			return l
		}
	}
	return core.KernelLimits{}
}
