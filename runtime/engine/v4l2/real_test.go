package v4l2_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/v4l2"
)

// realCameras are devices of the kernel's vivid driver, one of each half of the API:
// tests/qemu boots a kernel that has them and runs these tests there.
func realCameras(t *testing.T) map[string]string {
	t.Helper()
	list := os.Getenv("YOCTUNE_CAMERAS")
	if list == "" {
		t.Skip("YOCTUNE_CAMERAS names no camera; scripts/prove.sh camera boots a kernel with two")
	}
	one, two, _ := strings.Cut(list, ",")
	return map[string]string{"single": one, "multi": two}
}

// record records the driver's calls if YOCTUNE_CAMERA_RECORD is set.
func record(t *testing.T, name string) (v4l2.System, func()) {
	dir := os.Getenv("YOCTUNE_CAMERA_RECORD")
	if dir == "" {
		return v4l2.Kernel{}, func() {}
	}
	f, err := os.Create(filepath.Join(dir, name+".ioctls"))
	if err != nil {
		t.Fatal(err)
	}
	return &recorder{System: v4l2.Kernel{}, w: f}, func() { f.Close() }
}

// The driver draws eight bars, each darker than the one to its left: a picture whose
// planes or rows were mixed up would not have them. Stamps are of this process's
// clock.
func TestRealDriverDeliversItsPattern(t *testing.T) {
	for kind, path := range realCameras(t) {
		for _, want := range []v4l2.FourCC{v4l2.NV12, v4l2.NV12M, v4l2.I420, v4l2.I420M, v4l2.YUYV, v4l2.UYVY, v4l2.Grey} {
			t.Run(kind+"-"+want.String(), func(t *testing.T) {
				sys, done := record(t, kind+"-"+want.String())
				defer done()
				d, err := v4l2.Open(sys, path, v4l2.Want{Formats: []v4l2.FourCC{want}, Width: 320, Height: 180, Num: 30, Den: 1})
				if errors.Is(err, v4l2.ErrFormat) && kind == "single" && (want == v4l2.NV12M || want == v4l2.I420M) {
					return // planes in memories of their own are of the multi-planar half
				}
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				if err := errors.Join(d.Allocate(4), d.Start()); err != nil {
					t.Fatal(err)
				}
				format := d.Format()
				fmt.Printf("CAMERA %s %s: %d memories, rows of %d bytes, %d/%d fps, full range %v, BT.709 %v %v\n", kind, want, format.Planes, format.Pitch[0], format.Num, format.Den, format.Full, format.HD, format.Adjusted)
				last := int64(0)
				for n := range 8 {
					f, err := d.Next(long)
					if err != nil {
						t.Fatal(err)
					}
					var now unix.Timespec
					_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
					// The driver stamps the end of a frame before it has come.
					if age := now.Nano() - f.Captured; f.Captured <= last || age < -int64(time.Second) || age > int64(5*time.Second) {
						t.Errorf("frame %d is stamped %v ago, %v after the one before", n, time.Duration(age), time.Duration(f.Captured-last))
					}
					last = f.Captured
					planes, pitch, err := format.Image(&f)
					if err != nil {
						t.Fatal(err)
					}
					checkBars(t, format, planes[0], pitch[0])
					if n == 3 {
						checkExported(t, d, &f)
					}
					if err := d.Queue(f.Index); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// The driver captures into memory that this program also shares with others, and writes nowhere else.
func TestRealDriverCapturesIntoOurMemory(t *testing.T) {
	for kind, path := range realCameras(t) {
		t.Run(kind, func(t *testing.T) {
			d, err := v4l2.Open(v4l2.Kernel{}, path, v4l2.Want{Formats: []v4l2.FourCC{v4l2.NV12}, Width: 320, Height: 180, Num: 30, Den: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			var all []byte
			var areas [][]byte
			if err := d.AllocateOver(4, func(n, bytes int) ([][]byte, error) {
				each := (bytes + 4095) / 4096 * 4096
				fd, err := unix.MemfdCreate("frames", unix.MFD_CLOEXEC)
				if err != nil {
					return nil, err
				}
				defer unix.Close(fd)
				if err := unix.Ftruncate(fd, int64(n*each)); err != nil {
					return nil, err
				}
				if all, err = unix.Mmap(fd, 0, n*each, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
					return nil, err
				}
				for i := range n {
					areas = append(areas, all[i*each:][:bytes])
				}
				return areas, nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := d.Start(); err != nil {
				t.Fatal(err)
			}
			for range 8 {
				f, err := d.Next(long)
				if err != nil {
					t.Fatal(err)
				}
				if &f.Planes[0][0] != &areas[f.Index][0] {
					t.Fatalf("frame %d is elsewhere", f.Sequence)
				}
				format := d.Format()
				planes, pitch, err := format.Image(&f)
				if err != nil {
					t.Fatal(err)
				}
				checkBars(t, format, planes[0], pitch[0])
				clear(areas[f.Index])
				if err := d.Queue(f.Index); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(d.Close(), unix.Munmap(all)); err != nil {
				t.Fatal(err)
			}
			fmt.Printf("CAMERA %s captures into memory of the program\n", kind)
		})
	}
}

// checkBars looks at the luma in the middle of each bar, below the driver's text.
func checkBars(t *testing.T, f v4l2.Format, luma []byte, pitch int) {
	t.Helper()
	step, first := 1, 0
	switch f.Pixels {
	case v4l2.YUYV:
		step = 2
	case v4l2.UYVY:
		step, first = 2, 1
	}
	row := luma[(f.Height-2)*pitch:]
	var seen []byte
	for bar := range 8 {
		seen = append(seen, row[first+step*((2*bar+1)*f.Width/16)])
	}
	for n := 1; n < 8; n++ {
		if seen[n] >= seen[n-1] {
			t.Fatalf("bars of luma %d: each is to be darker than the one before", seen)
		}
	}
}

// checkExported compares what a DMA buffer holds with the mapping.
func checkExported(t *testing.T, d *v4l2.Device, f *v4l2.Frame) {
	t.Helper()
	fds, err := d.Export(f.Index)
	if err != nil {
		t.Fatal(err)
	}
	for n, fd := range fds {
		want := f.Planes[n]
		mem, err := unix.Mmap(fd, 0, len(want), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatalf("map the DMA buffer of memory %d: %v", n, err)
		}
		if !bytes.Equal(mem, want) {
			t.Errorf("the DMA buffer of memory %d has another content than its mapping", n)
		}
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	}
}

// If buffers are not returned, the driver drops frames and counts them.
func TestRealDriverCountsDroppedFrames(t *testing.T) {
	for kind, path := range realCameras(t) {
		t.Run(kind, func(t *testing.T) {
			d, err := v4l2.Open(v4l2.Kernel{}, path, v4l2.Want{Formats: []v4l2.FourCC{v4l2.Grey}, Width: 320, Height: 180, Num: 30, Den: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if err := errors.Join(d.Allocate(3), d.Start()); err != nil {
				t.Fatal(err)
			}
			var held []v4l2.Frame
			for range d.Buffers() {
				f, err := d.Next(long)
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, f)
			}
			if _, err := d.Next(300 * time.Millisecond); !errors.Is(err, v4l2.ErrStalled) {
				t.Errorf("without a buffer: %v", err)
			}
			for _, f := range held {
				if err := d.Queue(f.Index); err != nil {
					t.Fatal(err)
				}
			}
			if f, err := d.Next(long); err != nil || f.Lost == 0 {
				t.Errorf("after 300 ms without a buffer: lost %d, %v", f.Lost, err)
			}
		})
	}
}

func TestRealDriverAdjustsTheFormat(t *testing.T) {
	path := realCameras(t)["single"]
	d, err := v4l2.Open(v4l2.Kernel{}, path, v4l2.Want{Formats: []v4l2.FourCC{v4l2.YUYV}, Width: 1000, Height: 700, Num: 1000, Den: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	adjusted := strings.Join(d.Format().Adjusted, "; ")
	fmt.Println("CAMERA adjusted:", adjusted)
	if !strings.Contains(adjusted, "requested frames of 1000x700") || !strings.Contains(adjusted, "it offers 320x180") || !strings.Contains(adjusted, "requested 1000 frames per second") {
		t.Error(adjusted)
	}
	if _, err := v4l2.Open(v4l2.Kernel{}, path, v4l2.Want{Formats: []v4l2.FourCC{v4l2.MJPEG}, Width: 320, Height: 180}); !errors.Is(err, v4l2.ErrFormat) {
		t.Errorf("MJPG: %v", err)
	}
}

func TestRealDriverIsBusyForASecondReader(t *testing.T) {
	path := realCameras(t)["single"]
	want := v4l2.Want{Formats: []v4l2.FourCC{v4l2.YUYV}, Width: 320, Height: 180}
	a, err := v4l2.Open(v4l2.Kernel{}, path, want)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := errors.Join(a.Allocate(3), a.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := v4l2.Open(v4l2.Kernel{}, path, want); !errors.Is(err, v4l2.ErrBusy) {
		t.Errorf("%v", err)
	}
}

// controls sets vivid's own controls, by the names that the driver has for them.
type controls struct{ fd int }

func (c controls) ioctl(t *testing.T, request uintptr, b []byte) error {
	t.Helper()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.fd), request, uintptr(unsafe.Pointer(&b[0]))); errno != 0 {
		return errno
	}
	return nil
}

// set gives a control the value of the menu item of that name.
func (c controls) set(t *testing.T, name, item string) {
	t.Helper()
	const next, queryControl, queryMenu, setControl = 1 << 31, 0xc0445624, 0xc02c5625, 0xc008561c
	query := make([]byte, 68)
	named := func(b []byte) string { s, _, _ := strings.Cut(string(b), "\x00"); return s }
	for id := uint32(next); ; id = binary.NativeEndian.Uint32(query) | next {
		binary.NativeEndian.PutUint32(query, id)
		if err := c.ioctl(t, queryControl, query); err != nil {
			t.Fatalf("no control %q: %v", name, err)
		}
		if named(query[8:40]) == name {
			break
		}
	}
	for n := range binary.NativeEndian.Uint32(query[44:]) + 1 {
		menu, value := make([]byte, 44), make([]byte, 8)
		copy(menu, query[:4])
		binary.NativeEndian.PutUint32(menu[4:], n)
		if c.ioctl(t, queryMenu, menu) != nil || named(menu[8:40]) != item {
			continue
		}
		copy(value, query[:4])
		binary.NativeEndian.PutUint32(value[4:], n)
		if err := c.ioctl(t, setControl, value); err != nil {
			t.Fatalf("set %q: %v", name, err)
		}
		return
	}
	t.Fatalf("%q has no %q", name, item)
}

// setControls opens the camera again to set its controls.
func setControls(t *testing.T, path string) controls {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return controls{fd}
}

// An HDMI input whose source is switched off, on, and to another size.
func TestRealDriverReportsSignalChanges(t *testing.T) {
	path := os.Getenv("YOCTUNE_CAMERA_HDMI")
	if path == "" {
		t.Skip("YOCTUNE_CAMERA_HDMI names no HDMI input; scripts/prove.sh camera boots a kernel with one")
	}
	c := setControls(t, path)
	want := v4l2.Want{Formats: []v4l2.FourCC{v4l2.YUYV}, Width: 320, Height: 180}
	sys, done := record(t, "hdmi-changed")
	defer done()
	for _, step := range []struct {
		width, height int
		mode, size    string // what the source does then
	}{
		{1280, 720, "No Signal", ""},
		{1280, 720, "Selected DV Timings", "1920x1080p60"},
		{1920, 1080, "", ""},
	} {
		d, err := v4l2.Open(sys, path, want)
		if err != nil {
			t.Fatal(err)
		}
		f := d.Format()
		fmt.Printf("CAMERA hdmi: frames of %dx%d\n", f.Width, f.Height)
		if f.Width != step.width || f.Height != step.height {
			t.Errorf("frames of %dx%d, not %dx%d", f.Width, f.Height, step.width, step.height)
		}
		if err := errors.Join(d.Allocate(4), d.Start()); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			f, err := d.Next(long)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Queue(f.Index); err != nil {
				t.Fatal(err)
			}
		}
		if step.size != "" {
			c.set(t, "DV Timings", step.size)
		}
		if step.mode != "" {
			c.set(t, "DV Timings Signal Mode", step.mode)
			began := time.Now()
			for err = nil; err == nil; {
				var f v4l2.Frame
				if f, err = d.Next(long); err == nil {
					err = d.Queue(f.Index)
				}
			}
			fmt.Printf("CAMERA hdmi: %s, noticed after %v: %v\n", step.mode, time.Since(began).Round(time.Millisecond), err)
			if !errors.Is(err, v4l2.ErrChanged) {
				t.Error(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		sys = v4l2.Kernel{} // one life is recorded
		if step.mode == "No Signal" {
			if _, err := v4l2.Open(sys, path, want); !errors.Is(err, v4l2.ErrNoSignal) {
				t.Errorf("%v", err)
			}
			c.set(t, "DV Timings Signal Mode", "Current DV Timings")
		}
	}
}

// TestSwitchOfAnHDMISource checks nothing. A script uses it to switch an HDMI source.
func TestSwitchOfAnHDMISource(t *testing.T) {
	path, mode, _ := strings.Cut(os.Getenv("YOCTUNE_CAMERA_SIGNAL"), ",")
	if path == "" {
		t.Skip("YOCTUNE_CAMERA_SIGNAL has no input and signal")
	}
	setControls(t, path).set(t, "DV Timings Signal Mode", mode)
}

// The driver is unbound while it streams, as if a cable were pulled.
func TestRealDriverIsUnplugged(t *testing.T) {
	unbind := os.Getenv("YOCTUNE_CAMERA_UNBIND") // driver folder and device
	for kind, path := range realCameras(t) {
		if unbind == "" {
			t.Skip("YOCTUNE_CAMERA_UNBIND has no driver folder and device")
		}
		t.Run(kind, func(t *testing.T) {
			driver, device, _ := strings.Cut(unbind, " ")
			sys, done := record(t, kind+"-unplugged")
			defer done()
			d, err := v4l2.Open(sys, path, v4l2.Want{Formats: []v4l2.FourCC{v4l2.NV12, v4l2.NV12M}, Width: 320, Height: 180, Num: 30, Den: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if err := errors.Join(d.Allocate(4), d.Start()); err != nil {
				t.Fatal(err)
			}
			var held v4l2.Frame
			for n := range 5 {
				if held, err = d.Next(long); err != nil {
					t.Fatal(err)
				}
				if n == 4 {
					break
				}
				if err := d.Queue(held.Index); err != nil {
					t.Fatal(err)
				}
			}
			before := bytes.Clone(held.Planes[0])
			write := func(file string) {
				if err := os.WriteFile(filepath.Join(driver, file), []byte(device), 0); err != nil {
					t.Fatal(err)
				}
			}
			write("unbind")
			began := time.Now()
			for {
				var f v4l2.Frame
				if f, err = d.Next(long); err != nil {
					break
				}
				_ = d.Queue(f.Index)
			}
			if !errors.Is(err, v4l2.ErrGone) {
				t.Errorf("%v", err)
			}
			fmt.Printf("CAMERA %s unplugged, noticed after %v: %v\n", kind, time.Since(began).Round(time.Millisecond), err)
			// A frame that is still being read stays valid.
			if err := d.Stop(); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(before, held.Planes[0]) {
				t.Error("the frame that was held has changed")
			}
			// The mapping holds the node: without it the camera gets another number.
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			write("bind")
			deadline := time.Now().Add(long)
			for {
				if f, err := os.Open(path); err == nil {
					f.Close()
					break
				} else if time.Now().After(deadline) {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}
