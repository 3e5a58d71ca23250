package watch

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func TestPollWaitsForEventsAndForATime(t *testing.T) {
	p, err := openPoll()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := p.add(p.wakeFD); err != nil {
		t.Fatal(err)
	}
	wait := func(until time.Duration, want ...int) {
		t.Helper()
		fds, err := p.wait(until)
		if err != nil || !slices.Equal(fds, want) {
			t.Fatalf("%v, %v; want %v", fds, err, want)
		}
	}
	const far = time.Hour
	for range 3 {
		begin := rootfs.BootTime()
		wait(begin + 5*time.Millisecond)
		if now := rootfs.BootTime(); now < begin+5*time.Millisecond {
			t.Fatalf("it waited %v", now-begin)
		}
		wait(begin) // a time that has passed
		wait(0)
		p.wake()
		wait(begin+far, p.wakeFD)
		wait(begin+far, p.wakeFD) // until it is read
		p.clearWake()
		go p.wake()
		wait(begin+far, p.wakeFD)
		p.clearWake()
	}
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.add(fd); err != nil {
		t.Fatal(err)
	}
	wait(rootfs.BootTime()+far, fd)
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	wait(rootfs.BootTime() + time.Millisecond)
}
