package check

import (
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
)

// The rules of this file are about data in memory, and the environment of pipelines.
func transientRules() []Rule {
	return []Rule{
		{
			ID: "tmpfs-path", Severity: diag.Error, Firm: true,
			Title: "file system in memory over a folder that the system needs",
			Cause: "A mount hides what its folder contains. The system would lose its programs, its configuration or its state, or systemd mounts the folder itself. A path below a link is not mounted: the mount unit fails at boot.",
			Fix:   "mount it on a folder of its own, such as /var/cache/frames",
			Wrong: `tmpfs: "/etc": size: "16MiB"`, Right: `tmpfs: "/var/cache/frames": size: "16MiB"`,
			See: "systemd.mount(5); file-hierarchy(7)",
			run: checkTmpfsPath,
		},
		{
			ID: "tmpfs-size", Severity: diag.Error,
			Title: "a file system in memory is too large",
			Cause: "Its files are memory that nothing can reclaim without swap. A full one as large as the memory makes the kernel end processes.",
			Fix:   "give it less than the memory of the module, such as 256MiB",
			Wrong: `tmpfs: "/var/cache/frames": size: "16GiB"`, Right: `tmpfs: "/var/cache/frames": size: "256MiB"`,
			See: "Documentation/filesystems/tmpfs.rst",
			run: checkTmpfsSize,
		},
		{
			ID: "environment-reserved", Severity: diag.Error,
			Title: "environment variable that systemd or yoctuned sets",
			Cause: "systemd tells a service its folders, its sockets and its watchdog in these variables, and yoctuned its own processes. Another value breaks both.",
			Fix:   "remove it",
			Wrong: `pipelines: p: {source: {kind: "synthetic", format: "nv12", width: 64, height: 64, fps: 5}, stages: a: {kind: "preprocess", input: "source", width: 32, height: 32}, environment: NOTIFY_SOCKET: "/x"}`,
			Right: `pipelines: p: {source: {kind: "synthetic", format: "nv12", width: 64, height: 64, fps: 5}, stages: a: {kind: "preprocess", input: "source", width: 32, height: 32}, environment: MALLOC_ARENA_MAX: "1"}`,
			See:   "systemd.exec(5), environment variables in spawned processes",
			run:   checkEnvironmentReserved,
		},
	}
}

// ownMounts are folders that must keep their content, and those that systemd mounts itself. What
// is below the first group is needed, too.
var (
	neededTrees   = []string{"/proc", "/sys", "/dev", "/etc", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/boot", "/var/lib/yoctune", "/var/lib/nvpmodel", "/run/yoctune", "/run/systemd"}
	neededFolders = []string{"/var", "/var/lib", "/run", "/tmp", "/home", "/root", "/opt", "/srv", "/media", "/mnt"}
)

// imageLinks are the links that base-files of every release makes below /var, and their targets.
// The variables of the build turn those of the logs and of /var/tmp into folders.
var imageLinks = []struct {
	path, target string
	variables    []string
}{
	{"/var/log", "/var/volatile/log", []string{"VOLATILE_LOG_DIR", "FILESYSTEM_PERMS_TABLES"}},
	{"/var/tmp", "/var/volatile/tmp", []string{"VOLATILE_TMP_DIR", "FILESYSTEM_PERMS_TABLES"}},
	{"/var/run", "/run", nil},
	{"/var/lock", "/run/lock", nil},
}

// checkImageLink reports a path at or below a link of the default image: systemd mounts nothing
// on a path that is not canonical. It also reports the folder that the image's fstab mounts.
func (s *subject) checkImageLink(m *config.Tmpfs) {
	if m.Key() == "/var/volatile" {
		s.reportKey(m, "leave it out, or mount a folder below it", "the image mounts /var/volatile in memory by itself (/etc/fstab of base-files)")
		return
	}
	for _, link := range imageLinks {
		rest, below := strings.CutPrefix(m.Key()+"/", link.path+"/")
		if !below || slices.ContainsFunc(link.variables, func(name string) bool { return s.build.Variables.Has(name) }) {
			continue
		}
		if rest == "" {
			s.reportKey(m, "leave it out", "%s is a link to %s in the image, which is in memory already", link.path, link.target)
			return
		}
		s.reportKey(m, "write "+link.target+"/"+strings.TrimSuffix(rest, "/"), "%s is a link to %s in the image, and systemd mounts nothing below a link", link.path, link.target)
		return
	}
}

func checkTmpfsPath(s *subject) {
	for _, m := range s.Config.Tmpfs.Entries {
		folder := m.Key()
		below := slices.ContainsFunc(neededTrees, func(tree string) bool { return folder == tree || strings.HasPrefix(folder, tree+"/") })
		switch {
		case folder == "/tmp":
			s.reportKey(m, "leave it out: systemd mounts /tmp in memory by itself (tmp.mount)", "systemd mounts /tmp")
		case below || slices.Contains(neededFolders, folder):
			s.reportKey(m, "", "a file system on %s hides what the system needs there", folder)
		default:
			s.checkImageLink(m)
		}
	}
}

func checkTmpfsSize(s *subject) {
	for _, m := range s.Tmpfs {
		size := s.Config.Tmpfs.Get(m.Path).Size
		switch {
		case m.Bytes == 0:
			s.reportAt(size, size.Show(), "write a size", "a file system of size 0 has no limit")
		case m.Bytes > s.Board.RAMBytes/2:
			s.refuse(s.memorySize(), size, size.Show(), "", "%s may take %d MiB of the module's %d MiB", m.Path, m.Bytes>>20, s.Board.RAMBytes>>20)
		}
	}
}

// reservedVariables are those of systemd and of yoctuned, by name or by prefix.
var reservedVariables = []string{
	"NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_", "INVOCATION_ID", "JOURNAL_STREAM", "MAINPID", "MANAGERPID", "CREDENTIALS_DIRECTORY", "STATE_DIRECTORY", "RUNTIME_DIRECTORY",
	"CACHE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY", "SYSTEMD_", "EXIT_", "SERVICE_RESULT", "YOCTUNE_", "GOMAXPROCS", "GODEBUG", "GOTRACEBACK",
}

func checkEnvironmentReserved(s *subject) {
	for _, p := range s.Config.Pipelines.Entries {
		for _, v := range p.Environment.Entries {
			if slices.ContainsFunc(reservedVariables, func(name string) bool {
				return v.Key() == name || strings.HasSuffix(name, "_") && strings.HasPrefix(v.Key(), name)
			}) {
				s.reportKey(v, "", "%s is set by systemd or yoctuned", v.Key())
			}
		}
	}
}
