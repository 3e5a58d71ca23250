package occupancy

import (
	"strings"
	"testing"
)

func TestCompiledKernelFiguresAreParsed(t *testing.T) {
	lines := 0
	for line := range strings.Lines(figures) {
		lines++
		if strings.Count(line, "\t") != 4 {
			t.Errorf("line %d: %q", lines, line)
		}
	}
	seen := 0
	for _, d := range Devices() {
		for _, f := range figuresOf(d.SM()) {
			seen++
			o, err := d.Occupancy(Kernel{Registers: f.Registers, Shared: f.Shared, MaxDynamic: -1, Carveout: -1}, 256, 0)
			if err != nil || o.Blocks == 0 || f.Registers == 0 {
				t.Errorf("%+v in blocks of 256: %+v, %v", f, o, err)
			}
		}
	}
	if seen != lines || seen == 0 {
		t.Errorf("%d of %d lines are of a known device", seen, lines)
	}
	for _, l := range Launchable() {
		if _, ok := BuiltIn(87, l.Kernel); !ok {
			t.Errorf("no figures of %s for Orin", l.Kernel)
		}
	}
}

func TestFullestBlockSizeHasMostWarps(t *testing.T) {
	l, ok := LimitsOf("preprocess")
	if !ok || l.Allows(100) || l.Allows(0) || !l.Allows(128) || l.Allows(512) {
		t.Errorf("%+v", l)
	}
	if _, ok := LimitsOf("record"); ok {
		t.Error("record is not a kernel")
	}
	d, err := Lookup(87)
	if err != nil {
		t.Fatal(err)
	}
	// 80 registers: 24 warps fit 64 Ki registers in parts of 16 Ki, 6 a part; of 8 warps
	// a block 3 blocks.
	block, o, err := l.BestBlock(d, Kernel{Registers: 80, MaxDynamic: -1, Carveout: -1})
	if err != nil || block != 256 || o.Warps != 24 {
		t.Errorf("%d, %+v, %v", block, o, err)
	}
}
