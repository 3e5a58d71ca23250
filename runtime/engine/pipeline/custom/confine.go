package custom

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Parts of <linux/filter.h> and <linux/seccomp.h>.
const (
	loadWord  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	answerK   = unix.BPF_RET | unix.BPF_K

	dataNumber, dataArch, dataArguments = 0, 4, 16 // offsets in struct seccomp_data
)

// SpareParent makes the kernel refuse signals of this process, and of those it starts, to the
// pipeline that started it, so that an error such as kill(getppid()) or kill(-1) costs frames of its own stage
// only. It does not stop hostile code, which runs with the pipeline's rights. Kernels
// without CONFIG_SECCOMP_FILTER do not have it.
func SpareParent() {
	parent := os.Getppid()
	group, err := unix.Getpgid(parent)
	if err != nil {
		group = parent
	}
	filter := parentFilter(uint32(parent), uint32(-group))
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	set := func() syscall.Errno {
		_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
		return e
	}
	// Without CAP_SYS_ADMIN, a filter needs the promise to gain no rights by set-user-id programs.
	if set() == unix.EACCES && unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == nil {
		set()
	}
	runtime.KeepAlive(filter)
}

// parentFilter refuses calls whose argument is the process parent, all processes, or the process
// group of parent as a negative number.
func parentFilter(parent, group uint32) []unix.SockFilter {
	byFirst := []uint32{
		unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
		unix.SYS_PIDFD_OPEN, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PRLIMIT64,
	}
	f := []unix.SockFilter{
		{Code: loadWord, K: dataArch},
		{Code: jumpEqual, K: nativeArch, Jt: 1},
		{Code: answerK, K: unix.SECCOMP_RET_ALLOW},
		{Code: loadWord, K: dataNumber},
	}
	n := len(byFirst)
	for i, call := range byFirst {
		f = append(f, unix.SockFilter{Code: jumpEqual, K: call, Jt: uint8(n - i + 1)})
	}
	f = append(f,
		unix.SockFilter{Code: jumpEqual, K: unix.SYS_PTRACE, Jt: 3},
		unix.SockFilter{Code: answerK, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: loadWord, K: dataArguments}, // the first argument
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: 1},
		unix.SockFilter{Code: loadWord, K: dataArguments + 8}, // the second
		unix.SockFilter{Code: jumpEqual, K: parent, Jt: 3},
		unix.SockFilter{Code: jumpEqual, K: ^uint32(0), Jt: 2},
		unix.SockFilter{Code: jumpEqual, K: group, Jt: 1},
		unix.SockFilter{Code: answerK, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: answerK, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	)
	return f
}

// nativeArch is the architecture in struct seccomp_data of the calls of a program like this one.
var nativeArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// Names of the hidden commands that host a plug-in and start a program.
const (
	Command     = "stage-host"
	ExecCommand = "stage-exec"
)

// Exec replaces this process by the program of a stage, which cannot signal the pipeline.
func Exec(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	SpareParent()
	return unix.Exec(path, argv, os.Environ())
}
