package rootfs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func TestProcessHasItsCommandLine(t *testing.T) {
	p := rootfs.NameProcess(os.Getpid())
	if p.Command == "" || !strings.Contains(p.Args, "-test.") {
		t.Errorf("%+v", p)
	}
	if !strings.HasPrefix(p.String(), p.Command+" (pid ") {
		t.Error(p.String())
	}
}

func TestExitedProcessKeepsItsPID(t *testing.T) {
	// Above the largest pid_max there is.
	if got := rootfs.NameProcess(1 << 23).String(); got != "pid 8388608, which has ended" {
		t.Error(got)
	}
}

func TestUnitIsTheInnermostService(t *testing.T) {
	for cgroup, want := range map[string]string{
		"0::/system.slice/tuned.service\n":                             "tuned.service",
		"0::/user.slice/user-0.slice/session-3.scope\n":                "session-3.scope",
		"0::/system.slice/docker.service/child\n":                      "docker.service",
		"12:cpu:/\n1:name=systemd:/system.slice/cron.service\n0::/x\n": "cron.service",
		"0::/\n": "", "": "", "garbage": "", "0::\n": "",
	} {
		if got := rootfs.UnitOf(cgroup); got != want {
			t.Errorf("%q: %q, want %q", cgroup, got, want)
		}
	}
}

func TestLastMountWins(t *testing.T) {
	const mounts = `22 25 0:20 / /proc rw,nosuid - proc proc rw
23 22 0:21 / /proc/sys/fs/binfmt_misc rw - binfmt_misc binfmt_misc rw
24 25 0:36 / /proc rw,nosuid shared:5 - proc proc rw
short
`
	for dir, want := range map[string]string{"/proc": "0:36", "/proc/sys/fs/binfmt_misc": "0:21", "/sys": ""} {
		if got := rootfs.MountedAt(mounts, dir); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

func TestTreeWithoutProc(t *testing.T) {
	dev, err := rootfs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.SharesProc(); err != nil {
		t.Error(err)
	}
}
