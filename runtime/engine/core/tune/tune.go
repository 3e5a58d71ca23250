// Package tune finds and caches the fastest launch configuration of a kernel for a device
// and a shape.
//
// Candidates are the valid configurations of the kernel. Hopeless ones are pruned: on a GPU
// by occupancy, on the CPU by cache size and shape. The others are measured in turn, so that
// a change of clocks affects all equally. Results are stored in the cache of compiled
// kernels. Their key contains the device, its driver, the digest of the kernel sources and
// the shape's bucket, so that a second start measures nothing.
package tune

import (
	"cmp"
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

// From is the origin of a choice.
type From string

const (
	Measured From = "measured" // by this start
	Kept     From = "kept"     // by an earlier start
	Model    From = "model"    // predicted from occupancy or cache size
	BuiltIn  From = "built-in" // the only configuration of the kernel
)

// Choice is the configuration chosen for a kernel and a shape.
type Choice struct {
	Config     core.KernelConfig `json:"-"`
	From       From              `json:"from"`
	Candidates int               `json:"candidates"` // valid configurations of the kernel
	Pruned     int               `json:"pruned"`     // candidates that were not measured
	Time       time.Duration     `json:"time_ns"`    // of the chosen configuration; 0: not measured
	BuiltIn    time.Duration     `json:"built_in_ns"`
	Runs       int               `json:"runs"` // measurements of this start
}

// Task is a kernel with a shape.
type Task struct {
	Kernel string // "gemm", "preprocess", …
	Shape  []int  // sizes that affect the choice, in the kernel's order; gemm: m, n, k
	// Run runs the kernel once with a configuration and returns the device time. If it is
	// nil and the cache has no choice, the model decides.
	Run func(context.Context, core.KernelConfig) (time.Duration, error)
}

// rounds is the number of measurements of each candidate.
const rounds = 5

// margin is the relative advantage over the built-in configuration that a candidate needs,
// so that noise does not decide.
const margin = 0.03

// Tuner chooses configurations for one device. It may be used from several goroutines.
type Tuner struct {
	dev   *core.Device
	info  core.Info
	key   core.CacheKey // common to all entries
	cache *core.Cache

	mu   sync.Mutex // held while choosing, so that measurements do not overlap
	runs int
}

// New returns a tuner that stores its choices in kept.
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
		Capability: strings.Join([]string{info.Backend, info.Name, formatKnown(info.Capability), fmt.Sprint(formatKnown(info.Cores))}, "\x00"),
		Driver:     strings.Join([]string{formatKnown(info.Driver), info.Build}, "\x00"),
	}
	return t, nil
}

func formatKnown[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// Runs returns the number of measurements so far; 0 if the cache had all choices.
func (t *Tuner) Runs() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runs
}

// Bucket rounds each size up to a power of two. Shapes in one bucket share a choice.
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

// entry is a choice in the cache.
type entry struct {
	Block      int   `json:"block"`
	Tile       int   `json:"tile,omitempty"`
	Candidates int   `json:"candidates"`
	Pruned     int   `json:"pruned"`
	Time       int64 `json:"time_ns"`
	BuiltIn    int64 `json:"built_in_ns"`
}

// Choose returns the configuration for a task. It measures the candidates if the cache has
// no choice. To apply the choice use List.Configure or Device.Configure.
func (t *Tuner) Choose(ctx context.Context, task Task) (Choice, error) {
	limits := t.limits(task.Kernel)
	if limits.Name == "" {
		return Choice{Config: core.KernelConfig{Kernel: task.Kernel}, From: BuiltIn}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	cacheKey := t.key
	cacheKey.Options = fmt.Sprint("tune/1 ", task.Kernel, Bucket(task.Shape))
	key := cacheKey.ID()

	list := candidates(limits)
	left := t.prune(limits, list, task.Shape)
	choice := Choice{From: Kept, Candidates: len(list), Pruned: len(list) - len(left)}
	errModel := errors.New("not measured")
	build := func() ([]byte, error) {
		if task.Run == nil {
			return nil, errModel
		}
		best, err := t.measure(ctx, task, list[0], left, &choice)
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
	// The entry is intact but invalid: measure again.
	t.cache.Drop(key)
	if _, _, err = t.cache.Get(key, build); errors.Is(err, errModel) {
		choice.From, choice.Config, err = Model, left[0], nil
	}
	return choice, err
}

// candidates returns the valid configurations of a kernel, the built-in one first.
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

// prune removes hopeless candidates and orders the others by the model. At least one
// remains.
func (t *Tuner) prune(l core.KernelLimits, all []core.KernelConfig, shape []int) []core.KernelConfig {
	if t.info.Backend != core.CUDA {
		return pruneByCache(all, shape)
	}
	d, err := occupancy.Lookup(capability(t.info))
	if err != nil {
		return all
	}
	return pruneByOccupancy(d, l.Name, all)
}

// pruneByCache keeps blocks of the second matrix that fit the second-level cache together
// with the data that streams over them, and that do not exceed the matrix.
func pruneByCache(all []core.KernelConfig, shape []int) []core.KernelConfig {
	const share = 192 << 10 // bytes, of the 256 KiB per core of Orin's Cortex-A78AE
	n, k := shape[min(1, len(shape)-1)], shape[len(shape)-1]
	narrow := func(size, most, unit int) bool { return size <= max(unit, Bucket([]int{most})[0]) }
	out := slices.DeleteFunc(slices.Clone(all), func(c core.KernelConfig) bool {
		return 4*c.Block*c.Tile > share || !narrow(c.Tile, n, 32) || !narrow(c.Block, k, 64)
	})
	if len(out) == 0 {
		return all[:1]
	}
	// The built-in configuration stays first if it remains; otherwise the largest block.
	if out[0] != all[0] {
		slices.SortStableFunc(out, func(a, b core.KernelConfig) int { return b.Block*b.Tile - a.Block*a.Tile })
	}
	return out
}

// pruneByOccupancy keeps block sizes with at least three quarters of the highest number of
// resident warps, in descending order of warps, then of size.
func pruneByOccupancy(d occupancy.Device, kernel string, all []core.KernelConfig) []core.KernelConfig {
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
	slices.SortStableFunc(out, func(a, b core.KernelConfig) int { return cmp.Or(warps[b]-warps[a], b.Block-a.Block) })
	return out
}

// capability returns 87 for compute capability "8.7", or 0 if it is unknown.
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

// measure runs the candidates in turn, rounds times after one warm-up, and compares their
// fastest runs, because only other load makes a run slower. A candidate replaces the
// built-in configuration, first, if it is faster by margin.
func (t *Tuner) measure(ctx context.Context, task Task, first core.KernelConfig, left []core.KernelConfig, choice *Choice) (core.KernelConfig, error) {
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
				return core.KernelConfig{}, fmt.Errorf("block %d, tile %d: %w", c.Block, c.Tile, err)
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

// limits returns the limits of a kernel, without a name if it has only one configuration.
func (t *Tuner) limits(kernel string) core.KernelLimits {
	all := t.dev.Tunable()
	i := slices.IndexFunc(all, func(l core.KernelLimits) bool { return l.Name == kernel })
	if i < 0 {
		return core.KernelLimits{}
	}
	return all[i]
}
