// Package forecast predicts the values of all options of a target's kernel, and caches the
// predictions.
//
// Evaluating a kernel takes longer than all other steps of a build. It is therefore done only
// on demand and once for targets with the same request, and the result is kept in the user's
// cache. If the cache cannot be read, the kernel is evaluated again.
package forecast

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/internal/cache"
	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// Book holds the kernels used in one run of the program. It is safe for concurrent use.
type Book struct {
	cache   cache.Store
	mu      sync.Mutex
	kernels map[string]*Kernel
	facts   map[string]*kconfig.Facts
}

// NewBook returns a book that caches predictions in the folder dir, or not at all if dir is "".
func NewBook(dir string) *Book {
	return &Book{cache: cache.Store{Dir: dir}, kernels: map[string]*Kernel{}, facts: map[string]*kconfig.Facts{}}
}

// Kernel is a kernel line such as "5.15" with the requested options on top of its base
// configuration.
type Kernel struct {
	// Set is the kernel tree that the facts were read from.
	Set kernel.Set

	book    *Book
	lines   []kconfig.Line
	key     string
	results results
	read    bool           // the cache was read
	facts   *kconfig.Facts // nil until the kernel had to be evaluated
	full    *kconfig.Report
	fresh   bool // the cache lacks some values
}

// results holds the predictions for a kernel, in the form stored in the cache.
type results struct {
	Evaluated   bool                 `json:"evaluated"`
	Predictions []kconfig.Prediction `json:"predictions"`
	Effects     []kconfig.Effect     `json:"effects"`
	// Values has the line of .config by symbol: "" when it has none, absent when
	// the kernel has no such symbol.
	Values map[string]string `json:"values"`
}

// absent marks a symbol that the kernel does not have.
const absent = "-"

// Open returns a kernel by its version line, with the requested options. The error is
// [kernel.ErrUnknown] for a line without facts.
func (b *Book) Open(line string, requested []kconfig.Line) (*Kernel, error) {
	set, ok := kernel.Find(line)
	if !ok {
		return nil, fmt.Errorf("%w: %q", kernel.ErrUnknown, line)
	}
	return b.open(set, keyOf(line, requested), requested)
}

// OpenUpstream returns the kernel of a recipe that is not the BSP's. Its facts are those of the
// upstream tree of its version line, and it starts from another configuration, so that no answer
// is exact. The error is [kernel.ErrUnknown] where only a BSP's tree was read.
func (b *Book) OpenUpstream(line, recipe string, requested []kconfig.Line) (*Kernel, error) {
	set, ok := kernel.Find(line)
	if !ok || set.L4T != "" {
		return nil, fmt.Errorf("%w: %q", kernel.ErrUnknown, line)
	}
	set.Exactness = kernel.BaseOnly
	set.Caveat = "the facts are of " + set.Source + " with " + set.Base + "; " + recipe + " starts from another configuration"
	return b.open(set, keyOf(line+" "+recipe, requested), requested)
}

func (b *Book) open(set kernel.Set, key string, requested []kconfig.Line) (*Kernel, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.kernels[key]; k != nil {
		return k, nil
	}
	k := &Kernel{Set: set, book: b, lines: requested, key: key}
	b.kernels[key] = k
	return k, nil
}

// keyOf returns the cache key: a digest of kernel, facts, program and requested options.
func keyOf(line string, requested []kconfig.Line) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", cache.Program(), line)
	for _, l := range requested {
		fmt.Fprintf(h, "%s=%s\n", l.Symbol, l.Value)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// IsExact reports whether the facts are those of the tree that is built.
func (k *Kernel) IsExact() bool { return k.Set.Exactness == kernel.Exact }

// Predictions returns the outcome of each requested option, in order.
func (k *Kernel) Predictions() []kconfig.Prediction {
	return k.findResults().Predictions
}

// Effects lists changes to symbols that were not requested.
func (k *Kernel) Effects() []kconfig.Effect {
	return k.findResults().Effects
}

// findResults returns the predictions from the cache, or evaluates the kernel.
func (k *Kernel) findResults() results {
	k.book.mu.Lock()
	defer k.book.mu.Unlock()
	k.loadCache()
	if !k.results.Evaluated {
		k.evaluate()
	}
	return k.results
}

// Value is an option's predicted value in .config: "y", "m", "n", a number or quoted text;
// "" when .config will have no line for it. known is false when the kernel has no such
// option, or cannot be evaluated.
func (k *Kernel) Value(symbol string) (value string, known bool) {
	k.book.mu.Lock()
	defer k.book.mu.Unlock()
	k.loadCache()
	v, ok := k.results.Values[symbol]
	if !ok {
		if k.full == nil {
			k.evaluate()
		}
		if k.full == nil {
			return "", false
		}
		v = absent
		if _, known := k.facts.Lookup(symbol); known {
			v, _ = k.full.Result.Get(symbol)
		}
		k.results.Values[symbol] = v
		k.fresh = true
	}
	if v == absent {
		return "", false
	}
	return v, true
}

// IsEnabled reports whether an option will be y or m.
func (k *Kernel) IsEnabled(symbol string) bool {
	v, _ := k.Value(symbol)
	return v == "y" || v == "m"
}

// Enable finds the lines that, added to the requested options, give an option a value. Its own
// line comes first. It returns nil if that is impossible without breaking another request.
func (k *Kernel) Enable(symbol, value string) []kconfig.Line {
	own := kconfig.Line{Symbol: symbol, Value: value}
	requested := slices.DeleteFunc(slices.Clone(k.lines), func(l kconfig.Line) bool { return l.Symbol == symbol })
	with, err := k.book.Open(k.Set.Name, append(requested, own))
	if err != nil {
		return nil
	}
	for _, p := range with.Predictions() {
		if p.Symbol != symbol {
			continue
		}
		if p.Outcome == kconfig.Kept {
			return []kconfig.Line{own}
		}
		if len(p.Fix) == 0 {
			return nil
		}
		lines := []kconfig.Line{own}
		for _, text := range p.Fix {
			if l, _ := kconfig.ParseLine(text); l.Symbol == symbol {
				lines[0] = l
			} else {
				lines = append(lines, l)
			}
		}
		return lines
	}
	return nil
}

// loadCache reads the cached predictions, once.
func (k *Kernel) loadCache() {
	if k.read {
		return
	}
	k.read = true
	raw, err := k.book.cache.Get(k.key)
	if err != nil || json.Unmarshal(raw, &k.results) != nil {
		k.results = results{}
	}
	// The cache key does not include positions: the same line may have moved.
	for i := range k.results.Predictions {
		p := &k.results.Predictions[i]
		p.File, p.Line = "", 0
	}
	if k.results.Values == nil {
		k.results.Values = map[string]string{}
	}
}

// evaluate predicts all options, which is expensive. Facts that cannot be decoded are ignored: a
// test decodes those of every kernel.
func (k *Kernel) evaluate() {
	f := k.book.facts[k.Set.Name]
	if f == nil {
		var err error
		if f, err = kconfig.Open(k.Set.Name); err != nil {
			return
		}
		k.book.facts[k.Set.Name] = f
	}
	k.facts = f
	k.full = f.PredictFragments(&kconfig.Config{Lines: k.lines})
	k.results.Evaluated = true
	k.results.Predictions, k.results.Effects = k.full.Predictions, k.full.Effects
	k.fresh = true
}

// Save caches new results for the next run. Errors are ignored: they do not affect this
// run's result.
func (b *Book) Save() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.kernels {
		if !k.fresh {
			continue
		}
		if raw, err := json.Marshal(k.results); err == nil {
			_ = b.cache.Put(k.key, raw) // after a failure the next run computes it again
			k.fresh = false
		}
	}
}
