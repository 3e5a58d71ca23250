// Package tegrastats parses the output of NVIDIA's tegrastats, from L4T R31 to R39, into
// samples.
//
// The lines have no version, and their fields depend on the board, the release and the rights
// of the caller. Missing fields and fields in an unsupported form are unknown and never 0;
// the latter are listed.
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

// ErrLine is wrapped by errors about a line that tegrastats has not printed.
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
	Unknown []string // words that could not be parsed
}

// Parse parses a line. The error is ErrLine.
func Parse(line string) (*Line, error) {
	if len(line) > maxLine {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrLine, maxLine)
	}
	p := &parser{words: strings.Fields(line), out: &Line{Sample: monitor.NewSample()}}
	p.out.Sample.Source = "tegrastats"
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

// Read parses text line by line. It skips empty lines and calls each with the line's number and
// either the parsed line or an error.
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

// group removes and returns the words up to the closing bracket, nil if there is none.
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

// timestamp parses "06-18-2025 11:25:24", with which newer releases begin. It is the board's
// local time, stored as if it were UTC.
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
		s.Memory.Used, s.Memory.Total = p.usage(mib, "MB")
		if strings.HasPrefix(p.peek(), "(lfb") {
			p.largestBlock()
		}
	case w == "SWAP":
		s.Memory.SwapUsed, s.Memory.SwapTotal = p.usage(mib, "MB")
		if strings.HasPrefix(p.peek(), "(cached") {
			p.group(")")
		}
	case w == "IRAM": // on-chip memory of TX1 and Nano, not tunable
		p.usage(kib, "kB")
		if strings.HasPrefix(p.peek(), "(lfb") {
			p.group(")")
		}
	case w == "CPU" && strings.HasPrefix(p.peek(), "["):
		p.cpus()
	case w == "EMC_FREQ":
		p.emc()
	case w == "GR3D_FREQ":
		p.gpu()
	case strings.HasPrefix(w, "GR3D"): // GR3D2_FREQ: another cluster of the same GPU
		p.next()
	case w == "MTS":
		p.skipMTS()
	default:
		p.namedField(w)
	}
}

// usage parses "534/3964MB".
func (p *parser) usage(unit int64, suffix string) (used, total *int64) {
	w := p.next()
	// "0/252kB(lfb" is one word
	if i := strings.Index(w, "("); i >= 0 {
		p.words = append([]string{w[i:]}, p.words...)
		w = w[:i]
	}
	a, b, ok := strings.Cut(strings.TrimSuffix(w, suffix), "/")
	used, total = parseCount(a, unit), parseCount(b, unit)
	if !ok || !strings.HasSuffix(w, suffix) || used == nil || total == nil {
		p.unknown(w)
		return nil, nil
	}
	return used, total
}

// largestBlock parses "(lfb 98x4MB)".
func (p *parser) largestBlock() {
	g := p.group(")")
	text := strings.TrimSuffix(strings.Join(g, " "), ")")
	n, size, ok := strings.Cut(strings.TrimPrefix(text, "(lfb "), "x")
	bytes := (*int64)(nil)
	switch {
	case strings.HasSuffix(size, "MB"):
		bytes = parseCount(strings.TrimSuffix(size, "MB"), mib)
	case strings.HasSuffix(size, "kB"):
		bytes = parseCount(strings.TrimSuffix(size, "kB"), kib)
	}
	blocks := parseCount(n, 1)
	if !ok || bytes == nil || blocks == nil {
		p.unknown(text)
		return
	}
	p.out.Sample.Memory.Largest, p.out.Sample.Memory.LargestN = bytes, blocks
}

// cpus parses "[2%@1190,off,…]".
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
			c.Load, c.Freq = parsePercent(load), parseCount(freq, mega)
			if c.Load == nil {
				p.unknown("CPU " + part)
			}
		}
		p.out.Sample.CPUs = append(p.out.Sample.CPUs, c)
	}
}

// emc parses "0%", "0%@1600".
func (p *parser) emc() {
	w := p.next()
	load, freq, _ := strings.Cut(w, "@")
	e := &monitor.Memclock{Load: parsePercent(load), Freq: parseCount(freq, mega)}
	if e.Load == nil && e.Freq == nil {
		p.unknown("EMC_FREQ " + w)
	}
	p.out.Sample.EMC = e
}

// gpu parses "99%", "0%@318", "0%@[305,305]", and Thor's "@[314,314,314]".
func (p *parser) gpu() {
	w := p.next()
	g := monitor.GPU{Name: "GR3D"}
	load, freq, at := strings.Cut(w, "@")
	g.Load = parsePercent(load)
	understood := g.Load != nil || at && load == ""
	if list, ok := strings.CutPrefix(freq, "["); ok && strings.HasSuffix(list, "]") {
		for part := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
			f := parseCount(part, mega)
			if f == nil {
				understood = false
				break
			}
			g.Clusters = append(g.Clusters, *f)
			// The clock of a GPU with several clusters is that of the fastest.
			if g.Freq == nil || *f > *g.Freq {
				g.Freq = f
			}
		}
	} else if at {
		if g.Freq = parseCount(freq, mega); g.Freq == nil {
			understood = false
		}
	}
	if !understood {
		p.unknown("GR3D_FREQ " + w)
	}
	p.out.Sample.GPUs = append(p.out.Sample.GPUs, g)
}

// skipMTS skips "MTS fg 1% bg 1%" of Denver and Carmel cores, the time spent on code
// translation, which is not tunable.
func (p *parser) skipMTS() {
	for p.peek() == "fg" || p.peek() == "bg" {
		p.next()
		p.next()
	}
}

// namedField parses fields that start with a name: "AO@39.5C", "cpu@52.9C/52.9C",
// "VDD_IN 4067/4067", "VDD_IN 5299mW/5299mW/5299mW", "APE 174", "NVENC off",
// "NVENC0_FREQ @314", "VIC_FREQ 729". On Xavier a zone and a rail may both be
// called CPU; they are distinguished by value.
func (p *parser) namedField(w string) {
	s := p.out.Sample
	if name, temp, ok := strings.Cut(w, "@"); ok {
		z := monitor.Zone{Name: name, Placeholder: name == "PMIC"}
		now, _, _ := strings.Cut(temp, "/")
		c, err := strconv.ParseFloat(strings.TrimSuffix(now, "C"), 64)
		if name == "" || !strings.HasSuffix(now, "C") || err != nil || c != c {
			p.unknown(w)
			return
		}
		// An unpowered unit reads -256 °C.
		if c > -100 && c < 250 {
			z.Temp = new(toMilli(c))
		}
		s.Zones = append(s.Zones, z)
		return
	}
	value := p.peek()
	switch {
	case strings.Contains(value, "/"):
		p.next()
		now, _, _ := strings.Cut(value, "/")
		r := monitor.Rail{Label: w, Power: parseCount(strings.TrimSuffix(now, "mW"), 1)}
		switch {
		case r.Power == nil:
			p.unknown(w, value)
		case w == monitor.NotConnected:
			r.Power = nil // a channel of the power monitor that nothing is wired to reads 0
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
		e := monitor.Engine{Name: strings.TrimSuffix(w, "_FREQ"), On: true, Load: parsePercent(load), Freq: parseCount(freq, mega)}
		if e.Freq == nil {
			p.unknown(w)
			return
		}
		p.next()
		s.Engines = append(s.Engines, e)
	}
}

// toMilli converts to thousandths. The text has at most three decimals.
func toMilli(c float64) int64 {
	if c < 0 {
		return -toMilli(-c)
	}
	return int64(c*1000 + 0.5)
}

// parseCount parses a number and multiplies it by unit. It returns nil for other text and
// implausible numbers.
func parseCount(s string, unit int64) *int64 {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return nil
	}
	return new(int64(n) * unit)
}

// parsePercent parses "16%" into permille.
func parsePercent(s string) *int64 {
	digits, ok := strings.CutSuffix(s, "%")
	n, err := strconv.ParseUint(digits, 10, 8)
	if !ok || err != nil || n > 100 {
		return nil
	}
	return new(int64(n) * 10)
}
