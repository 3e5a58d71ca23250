// Package tegrastats reads the lines that NVIDIA's tegrastats prints, from L4T
// R31 to R39, into samples.
//
// The line has no version and its fields come and go: with the board, with the
// release, and with the rights of the caller. A field that is absent is unknown,
// and so is one in a form that is not known here: what cannot be understood is
// listed, and never becomes a 0.
package tegrastats

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/monitor"
)

// ErrLine says that a line is not one of tegrastats.
var ErrLine = errors.New("not a line of tegrastats")

// maxLine bounds a line, in bytes.
const maxLine = 16 << 10

const (
	mega = 1_000_000
	kib  = 1 << 10
	mib  = 1 << 20
)

// Line is a parsed line.
type Line struct {
	Sample  *monitor.Sample
	Unknown []string // words that were not understood
}

// Parse reads one line. The error is ErrLine.
func Parse(line string) (*Line, error) {
	if len(line) > maxLine {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrLine, maxLine)
	}
	p := &parser{words: strings.Fields(line), out: &Line{Sample: &monitor.Sample{
		Type: "sample", Source: "tegrastats", CPUs: []monitor.CPU{}, GPUs: []monitor.GPU{}, Engines: []monitor.Engine{},
		Rails: []monitor.Rail{}, Zones: []monitor.Zone{}, Fans: []monitor.Fan{}, Cooling: []monitor.Cooling{},
		Alarms: []monitor.Alarm{}, Stale: []monitor.Stale{},
	}}}
	p.timestamp()
	if p.peek() != "RAM" {
		return nil, fmt.Errorf("%w: it does not begin with RAM", ErrLine)
	}
	for len(p.words) > 0 {
		p.field()
	}
	if p.out.Sample.Memory.Total == nil {
		return nil, fmt.Errorf("%w: RAM has no numbers", ErrLine)
	}
	return p.out, nil
}

// Read parses a text line by line. Empty lines are skipped; each is called with
// the line's number and either a parsed line or an error.
func Read(r io.Reader, each func(n int, line *Line, err error) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 4096), maxLine+1)
	n := 0
	for sc.Scan() {
		n++
		if strings.TrimSpace(sc.Text()) == "" {
			continue
		}
		l, err := Parse(sc.Text())
		if err := each(n, l, err); err != nil {
			return err
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

type parser struct {
	words []string
	out   *Line
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *parser) next() string {
	w := p.peek()
	if w != "" {
		p.words = p.words[1:]
	}
	return w
}

func (p *parser) unknown(words ...string) {
	p.out.Unknown = append(p.out.Unknown, strings.TrimSpace(strings.Join(words, " ")))
}

// group takes words up to the one that closes a bracket; nil when none does.
func (p *parser) group(end string) []string {
	for i, w := range p.words {
		if strings.HasSuffix(w, end) {
			g := p.words[:i+1]
			p.words = p.words[i+1:]
			return g
		}
	}
	return nil
}

// timestamp reads "06-18-2025 11:25:24", which newer releases print first. It
// has no zone: it is the board's local time, kept as if it were UTC.
func (p *parser) timestamp() {
	if len(p.words) < 2 {
		return
	}
	if t, err := time.Parse("01-02-2006 15:04:05", p.words[0]+" "+p.words[1]); err == nil {
		p.out.Sample.Time = t
		p.words = p.words[2:]
	}
}

func (p *parser) field() {
	w := p.next()
	s := p.out.Sample
	switch {
	case w == "RAM":
		s.Memory.Used, s.Memory.Total = p.of(mib, "MB")
		if strings.HasPrefix(p.peek(), "(lfb") {
			p.lfb()
		}
	case w == "SWAP":
		s.Memory.SwapUsed, s.Memory.SwapTotal = p.of(mib, "MB")
		if strings.HasPrefix(p.peek(), "(cached") {
			p.group(")")
		}
	case w == "IRAM": // on-chip memory of TX1 and Nano: nothing tunes it
		p.of(kib, "kB")
		if strings.HasPrefix(p.peek(), "(lfb") {
			p.group(")")
		}
	case w == "CPU" && strings.HasPrefix(p.peek(), "["):
		p.cpus()
	case w == "EMC_FREQ":
		p.emc()
	case w == "GR3D_FREQ":
		p.gpu()
	case strings.HasPrefix(w, "GR3D"): // GR3D2_FREQ: another cluster of the one GPU
		p.next()
	case w == "MTS":
		p.mts()
	default:
		p.named(w)
	}
}

// of reads "534/3964MB".
func (p *parser) of(unit int64, suffix string) (used, total *int64) {
	w := p.next()
	// "0/252kB(lfb" is one word
	if i := strings.Index(w, "("); i >= 0 {
		p.words = append([]string{w[i:]}, p.words...)
		w = w[:i]
	}
	a, b, ok := strings.Cut(strings.TrimSuffix(w, suffix), "/")
	used, total = count(a, unit), count(b, unit)
	if !ok || !strings.HasSuffix(w, suffix) || used == nil || total == nil {
		p.unknown(w)
		return nil, nil
	}
	return used, total
}

// lfb reads "(lfb 98x4MB)".
func (p *parser) lfb() {
	g := p.group(")")
	text := strings.TrimSuffix(strings.Join(g, " "), ")")
	n, size, ok := strings.Cut(strings.TrimPrefix(text, "(lfb "), "x")
	bytes := (*int64)(nil)
	switch {
	case strings.HasSuffix(size, "MB"):
		bytes = count(strings.TrimSuffix(size, "MB"), mib)
	case strings.HasSuffix(size, "kB"):
		bytes = count(strings.TrimSuffix(size, "kB"), kib)
	}
	blocks := count(n, 1)
	if !ok || bytes == nil || blocks == nil {
		p.unknown(text)
		return
	}
	p.out.Sample.Memory.Largest, p.out.Sample.Memory.LargestN = bytes, blocks
}

// cpus reads "[2%@1190,off,…]".
func (p *parser) cpus() {
	g := p.group("]")
	list := strings.Trim(strings.Join(g, ""), "[]")
	if g == nil || list == "" {
		p.unknown("CPU")
		return
	}
	for i, part := range strings.Split(list, ",") {
		c := monitor.CPU{Number: i}
		if part != "off" {
			c.Online = true
			load, freq, _ := strings.Cut(part, "@")
			c.Load, c.Freq = percent(load), count(freq, mega)
			if c.Load == nil {
				p.unknown("CPU " + part)
			}
		}
		p.out.Sample.CPUs = append(p.out.Sample.CPUs, c)
	}
}

// emc reads "0%", "0%@1600".
func (p *parser) emc() {
	w := p.next()
	load, freq, _ := strings.Cut(w, "@")
	e := &monitor.Memclock{Load: percent(load), Freq: count(freq, mega)}
	if e.Load == nil && e.Freq == nil {
		p.unknown("EMC_FREQ " + w)
	}
	p.out.Sample.EMC = e
}

// gpu reads "99%", "0%@318", "0%@[305,305]", and Thor's "@[314,314,314]".
func (p *parser) gpu() {
	w := p.next()
	g := monitor.GPU{Name: "GR3D"}
	load, freq, at := strings.Cut(w, "@")
	g.Load = percent(load)
	understood := g.Load != nil || at && load == ""
	if list, ok := strings.CutPrefix(freq, "["); ok && strings.HasSuffix(list, "]") {
		for part := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
			f := count(part, mega)
			if f == nil {
				understood = false
				break
			}
			g.Clusters = append(g.Clusters, *f)
			// One GPU with several clusters: the fastest is its clock.
			if g.Freq == nil || *f > *g.Freq {
				g.Freq = f
			}
		}
	} else if at {
		if g.Freq = count(freq, mega); g.Freq == nil {
			understood = false
		}
	}
	if !understood {
		p.unknown("GR3D_FREQ " + w)
	}
	p.out.Sample.GPUs = append(p.out.Sample.GPUs, g)
}

// mts reads "MTS fg 1% bg 1%" of Denver and Carmel cores: time spent translating
// code, which nothing here tunes.
func (p *parser) mts() {
	for p.peek() == "fg" || p.peek() == "bg" {
		p.next()
		p.next()
	}
}

// named reads what is called by its name: "AO@39.5C", "cpu@52.9C/52.9C",
// "VDD_IN 4067/4067", "VDD_IN 5299mW/5299mW/5299mW", "APE 174", "NVENC off",
// "NVENC0_FREQ @314", "VIC_FREQ 729". On Xavier a zone and a rail may both be
// called CPU, so that the value decides.
func (p *parser) named(w string) {
	s := p.out.Sample
	if name, temp, ok := strings.Cut(w, "@"); ok {
		z := monitor.Zone{Name: name, Placeholder: name == "PMIC"}
		now, _, _ := strings.Cut(temp, "/")
		c, err := strconv.ParseFloat(strings.TrimSuffix(now, "C"), 64)
		if name == "" || !strings.HasSuffix(now, "C") || err != nil || c != c {
			p.unknown(w)
			return
		}
		// -256 C is a unit without power.
		if c > -100 && c < 250 {
			z.Temp = new(milli(c))
		}
		s.Zones = append(s.Zones, z)
		return
	}
	value := p.peek()
	switch {
	case strings.Contains(value, "/"):
		p.next()
		now, _, _ := strings.Cut(value, "/")
		r := monitor.Rail{Label: w, Power: count(strings.TrimSuffix(now, "mW"), 1)}
		if r.Power == nil {
			p.unknown(w, value)
		}
		s.Rails = append(s.Rails, r)
	case value == "off":
		p.next()
		s.Engines = append(s.Engines, monitor.Engine{Name: strings.TrimSuffix(w, "_FREQ")})
	default:
		load, freq, at := strings.Cut(value, "@")
		if !at {
			load, freq = "", value
		}
		e := monitor.Engine{Name: strings.TrimSuffix(w, "_FREQ"), On: true, Load: percent(load), Freq: count(freq, mega)}
		if e.Freq == nil {
			p.unknown(w)
			return
		}
		p.next()
		s.Engines = append(s.Engines, e)
	}
}

// milli rounds degrees to thousandths; the text has at most three decimals.
func milli(c float64) int64 {
	if c < 0 {
		return -milli(-c)
	}
	return int64(c*1000 + 0.5)
}

// count reads digits in a unit; nil when it is something else, or beyond what
// any board has.
func count(s string, unit int64) *int64 {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return nil
	}
	return new(int64(n) * unit)
}

// percent reads "16%" into permille.
func percent(s string) *int64 {
	digits, ok := strings.CutSuffix(s, "%")
	n, err := strconv.ParseUint(digits, 10, 8)
	if !ok || err != nil || n > 100 {
		return nil
	}
	return new(int64(n) * 10)
}
