package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func mirrorDevice(t *testing.T) (*Device, *Stream) {
	t.Helper()
	d, err := Open(Options{Backend: CPU, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := d.NewStream(0)
	if err != nil {
		t.Fatal(err)
	}
	return d, s
}

func newMirror(t *testing.T, d *Device, n int) *Mirror {
	t.Helper()
	m, err := d.NewMirror(n)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func checkStale(t *testing.T, what string, err error, wantText string) {
	t.Helper()
	if !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), wantText) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestStaleMirrorIsAnError(t *testing.T) {
	ctx := context.Background()
	d, s := mirrorDevice(t)
	m, out := newMirror(t, d, 256), newMirror(t, d, 256)

	_, err := m.Read()
	checkStale(t, "read of nothing", err, "valid data")
	checkStale(t, "upload of nothing", s.List().Upload(m).Submit(), "valid data")

	w, err := m.Write()
	if err != nil {
		t.Fatal(err)
	}
	w[0] = 7
	checkStale(t, "device's side before the upload", s.List().Copy(out.OnDevice(), m.OnDevice()).Submit(), "upload it first")
	if err := s.List().Upload(m).Copy(out.OnDevice(), m.OnDevice()).Submit(); err != nil {
		t.Fatal(err)
	}
	_, err = out.Read()
	checkStale(t, "read before the download", err, "download it first")
	if _, err := m.Write(); !errors.Is(err, ErrBusy) {
		t.Errorf("written while a stream copies it: %v", err)
	}
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = out.Read()
	checkStale(t, "read before the download", err, "download it first")
	if err := s.List().Download(out).Submit(); err != nil {
		t.Fatal(err)
	}
	_, err = out.Read()
	checkStale(t, "read before the wait", err, "wait for the stream")
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := out.Read()
	if err != nil || r[0] != 7 {
		t.Errorf("%v, %v", r[:1], err)
	}

	// The CPU writes again: what the device has is old.
	if w, err = m.Write(); err != nil {
		t.Fatal(err)
	}
	w[0] = 8
	checkStale(t, "device's side after a write", s.List().Copy(out.OnDevice(), m.OnDevice()).Submit(), "upload it first")
	checkStale(t, "download over newer data", s.List().Download(m).Submit(), "upload it first")
	checkStale(t, "a part of a stale side", s.List().Memset(m.dev.At(0, 8), 1).Submit(), "copy the other side first")
	if r, err = m.Read(); err != nil || r[0] != 8 {
		t.Errorf("what the CPU wrote is gone: %v, %v", r[:1], err)
	}
	// And the device: what the CPU has is old.
	if err := s.List().Memset(m.OnDevice(), 9).Submit(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = m.Read()
	checkStale(t, "read after the device wrote", err, "download it first")
	checkStale(t, "upload of what is old", s.List().Upload(m).Submit(), "download it first")
}

func TestRefusedListLeavesMirrorsUnchanged(t *testing.T) {
	d, s := mirrorDevice(t)
	m := newMirror(t, d, 64)
	if _, err := m.Write(); err != nil {
		t.Fatal(err)
	}
	if err := s.List().Upload(m).Memset(m.dev.At(60, 8), 1).Submit(); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	checkStale(t, "the upload did not happen", s.List().Copy(m.OnHost(), m.OnDevice()).Submit(), "upload it first")
	if _, err := m.Write(); err != nil {
		t.Errorf("nothing copies it: %v", err)
	}
}

func TestOtherStreamsWaitForACopy(t *testing.T) {
	ctx := context.Background()
	d, s := mirrorDevice(t)
	other, err := d.NewStream(0)
	if err != nil {
		t.Fatal(err)
	}
	m, out := newMirror(t, d, 64), newMirror(t, d, 64)
	if _, err := m.Write(); err != nil {
		t.Fatal(err)
	}
	done, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.List().Upload(m).Record(done).Submit(); err != nil {
		t.Fatal(err)
	}
	use := other.List().Copy(out.OnDevice(), m.OnDevice())
	checkStale(t, "used by a stream that does not wait", use.Submit(), "another stream")
	if err := other.List().Wait(done).Copy(out.OnDevice(), m.OnDevice()).Submit(); err != nil {
		t.Errorf("used after an event: %v", err)
	}
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := use.Submit(); err != nil {
		t.Errorf("used after the wait: %v", err)
	}
	if _, err := s.Record(func() error { return s.List().Upload(m).Submit() }); !errors.Is(err, ErrInvalid) {
		t.Errorf("in a graph: %v", err)
	}
}

func TestFailedWorkInvalidatesMirrors(t *testing.T) {
	d, s := mirrorDevice(t)
	m := newMirror(t, d, 64)
	if _, err := m.Write(); err != nil {
		t.Fatal(err)
	}
	if err := s.List().Upload(m).Submit(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := d.InjectFaults("launch:fault"); err != nil {
		t.Fatal(err)
	}
	err := s.List().Memset(m.OnDevice(), 3).Download(m).Submit()
	if err == nil {
		err = s.Wait(context.Background())
	}
	if !errors.Is(err, ErrKernelFault) {
		t.Fatal(err)
	}
	_, err = m.Read()
	checkStale(t, "read after a fault", err, "valid data")
}

// Whatever a program does, what Read returns is what was written last.
func TestMirrorReadsTheLatestWrite(t *testing.T) {
	ctx := context.Background()
	d, s := mirrorDevice(t)
	m := newMirror(t, d, 64)
	rng := rand.New(rand.NewPCG(1, 2))
	var last byte
	reads := 0
	for range 5000 {
		v := byte(rng.Uint32())
		var err error
		switch rng.IntN(6) {
		case 0:
			var w []byte
			if w, err = m.Write(); err == nil {
				last = v
				for i := range w {
					w[i] = v
				}
			}
		case 1:
			if err = s.List().Memset(m.OnDevice(), v).Submit(); err == nil {
				last = v
			}
		case 2:
			err = s.List().Upload(m).Submit()
		case 3:
			err = s.List().Download(m).Submit()
		case 4:
			err = s.Wait(ctx)
		case 5:
			var r []byte
			if r, err = m.Read(); err == nil {
				reads++
				if r[0] != last || r[63] != last {
					t.Fatalf("read %d, written last was %d", r[0], last)
				}
			}
		}
		if err != nil && !errors.Is(err, ErrStale) && !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
	}
	if reads < 100 {
		t.Errorf("%d reads only", reads)
	}
}

func TestMirrorReleasesItsMemory(t *testing.T) {
	d, s := mirrorDevice(t)
	m := newMirror(t, d, 64)
	if err := m.Release(); err != nil {
		t.Fatal(err)
	}
	if d.mirrored.Load() || len(d.mirrors) != 0 {
		t.Error("the mirror is still tracked")
	}
	if err := s.List().Upload(m).Submit(); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}
