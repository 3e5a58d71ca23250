package devicetest

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// AloneOnThisMachine waits until no other test changes the kernel of this
// machine, and keeps others waiting until t ends: packages are tested side by
// side.
func AloneOnThisMachine(t testing.TB) {
	t.Helper()
	// Not below TMPDIR: there is one machine, whatever folders its users have.
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
