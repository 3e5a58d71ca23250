package devicetest

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// LockMachine gives t exclusive access to the kernel of this machine until it ends, since
// packages are tested in parallel.
func LockMachine(t testing.TB) {
	t.Helper()
	// A fixed path, since all users share one machine.
	f, err := os.OpenFile("/tmp/yoctune-machine-test.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); { // Go's own signals interrupt the wait
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}
