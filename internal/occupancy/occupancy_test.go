package occupancy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// referee builds NVIDIA's calculator from the header of the CUDA toolkit.
func referee(t *testing.T) string {
	t.Helper()
	const install = "scripts/setup.sh python"
	found, err := filepath.Glob("../../build/cuda-venv/lib/python3*/site-packages/nvidia/cu*/include/cuda_occupancy.h")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		if os.Getenv("YOCTUNE_REQUIRE_CUDA") != "" {
			t.Fatalf("no cuda_occupancy.h: %s", install)
		}
		t.Skipf("no cuda_occupancy.h: %s", install)
	}
	bin := filepath.Join(t.TempDir(), "referee")
	out, err := exec.Command("g++", "-std=c++17", "-O1", "-w", "-isystem", filepath.Dir(found[0]), "-o", bin, "testdata/referee.cc").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

type launch struct {
	d                Device
	k                Kernel
	threads, dynamic int
}

// query returns the reference calculator's input line for a launch.
func (l launch) query() string {
	maxThreads, optIn, maxDynamic := l.k.MaxThreads, 1, l.k.MaxDynamic
	if maxThreads == 0 {
		maxThreads = l.d.ThreadsPerBlock
	}
	if maxDynamic < 0 {
		optIn, maxDynamic = 0, 0
	}
	return fmt.Sprintln(l.d.Major, l.d.Minor, l.d.ThreadsPerBlock, l.d.ThreadsPerSM, l.d.RegistersPerBlock, l.d.RegistersPerSM, l.d.Warp,
		l.d.SharedPerBlock, l.d.SharedPerSM, l.d.SharedPerBlockOptIn, l.d.SharedReserved,
		maxThreads, l.k.Registers, l.k.Shared, optIn, maxDynamic, l.k.Barriers, l.k.Carveout, l.threads, l.dynamic)
}

// answer is the expected output of the referee.
func (l launch) answer() string {
	o, err := l.d.Occupancy(l.k, l.threads, l.dynamic)
	if err != nil {
		return "error"
	}
	// NVIDIA also names what would limit if there were no barriers.
	bits, others := 0, min(o.By[Warps], o.By[Registers], o.By[Shared], o.By[Blocks])
	for limit, bit := range map[Limit]int{Warps: 1, Registers: 2, Shared: 4, Blocks: 8} {
		if o.By[limit] == others {
			bits |= bit
		}
	}
	if slices.Contains(o.Limits, Barriers) {
		bits |= 16
	}
	return fmt.Sprintf("%d %d %d %d %d %d %d %d %d", o.Blocks, bits, o.By[Warps], o.By[Registers], o.By[Shared], o.By[Blocks], o.By[Barriers],
		o.RegistersPerBlock, o.SharedPerBlock)
}

func TestOccupancyMatchesNVIDIAsCalculator(t *testing.T) {
	bin := referee(t)
	r := rand.New(rand.NewPCG(1, 2))
	var all []launch
	for _, d := range Devices() {
		for range 2000 {
			l := launch{d: d, threads: 1 + r.IntN(1100), k: Kernel{Registers: r.IntN(260), MaxDynamic: -1, Carveout: -1, Barriers: r.IntN(3)}}
			if r.IntN(2) == 0 {
				l.k.MaxThreads = 32 * (1 + r.IntN(32))
			}
			if r.IntN(3) > 0 {
				l.k.Shared = r.IntN(50 << 10)
			}
			switch r.IntN(4) {
			case 0: // asked for more, and used up to what was asked for, or beyond
				l.k.MaxDynamic = r.IntN(d.SharedPerBlockOptIn + 2048)
				l.dynamic = r.IntN(l.k.MaxDynamic + 512)
			case 1:
				l.dynamic = r.IntN(60 << 10)
			}
			if r.IntN(4) == 0 {
				l.k.Carveout = r.IntN(101)
			}
			if r.IntN(8) == 0 { // at the edges
				l.threads, l.dynamic = []int{1, 31, 32, 33, 1023, 1024}[r.IntN(6)], []int{0, 1, 48 << 10, 48<<10 + 1}[r.IntN(4)]
			}
			all = append(all, l)
		}
	}
	var in bytes.Buffer
	for _, l := range all {
		in.WriteString(l.query())
	}
	cmd := exec.Command(bin)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines, wrong, running := bufio.NewScanner(bytes.NewReader(out)), 0, 0
	for i, l := range all {
		if !lines.Scan() {
			t.Fatalf("the referee gave %d answers to %d questions", i, len(all))
		}
		want, got := lines.Text(), l.answer()
		if want != got {
			if wrong++; wrong <= 5 {
				t.Errorf("%d.%d %+v, %d threads, %d bytes:\nNVIDIA %s\nwe     %s", l.d.Major, l.d.Minor, l.k, l.threads, l.dynamic, want, got)
			}
		}
		if want[0] != '0' && want != "error" {
			running++
		}
	}
	t.Logf("%d of %d launches differ; %d can run", wrong, len(all), running)
	if running < len(all)/4 {
		t.Errorf("only %d of %d launches can run: the cases are poor", running, len(all))
	}
}

// The figures of the modules, from their data sheets' point of view.
func TestOrinHoldsSixBlocksOf256Threads(t *testing.T) {
	d, err := Lookup(87)
	if err != nil {
		t.Fatal(err)
	}
	o, err := d.Occupancy(Kernel{Registers: 40, MaxDynamic: -1, Carveout: -1}, 256, 0)
	if err != nil || o.Blocks != 6 || o.Warps != 48 || o.Share != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = d.Occupancy(Kernel{Registers: 64, MaxDynamic: -1, Carveout: -1}, 256, 0); err != nil || o.Blocks != 4 || len(o.Limits) != 1 || o.Limits[0] != Registers {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestInvalidLaunchesAreErrors(t *testing.T) {
	if _, err := Lookup(42); !errors.Is(err, errUnknown) {
		t.Errorf("%v", err)
	}
	d, err := Lookup(90)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []Kernel{{Registers: -1}, {Shared: -1}, {MaxDynamic: -2}, {Carveout: 101}} {
		if _, err := d.Occupancy(k, 128, 0); !errors.Is(err, errInvalid) {
			t.Errorf("%+v: %v", k, err)
		}
	}
	if _, err := d.Occupancy(Kernel{}, 0, 0); !errors.Is(err, errInvalid) {
		t.Errorf("no threads: %v", err)
	}
}
