package rootfs

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// MountsFile lists the mounts that this process has (proc_pid_mountinfo(5)).
const MountsFile = "/proc/self/mountinfo"

// TmpfsSize returns the largest size of the file system in memory that is mounted on a folder.
// The error is fs.ErrNotExist where there is none.
func TmpfsSize(dev FS, folder string) (int64, error) {
	b, err := dev.ReadFile(MountsFile, 4<<20)
	if err != nil {
		return 0, err
	}
	size, found := int64(0), false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		end := slices.Index(f, "-")
		if len(f) < 5 || end < 0 || len(f) < end+4 || f[4] != folder {
			continue
		}
		// The last mount hides earlier ones.
		size, found = 0, f[end+1] == "tmpfs"
		for option := range strings.SplitSeq(f[end+3], ",") {
			text, ok := strings.CutPrefix(option, "size=")
			if kib, err := strconv.ParseInt(strings.TrimSuffix(text, "k"), 10, 53); ok && err == nil {
				size = kib << 10
			}
		}
	}
	if !found {
		return 0, &PathError{Op: "find", Path: folder, Err: fs.ErrNotExist}
	}
	return size, nil
}
