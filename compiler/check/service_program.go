package check

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/system"
)

func programRules() []Rule {
	return []Rule{{
		ID: "service-program", Severity: diag.Warning,
		Title: "nothing brings a program of a service or pipeline to the device",
		Cause: "The layer writes the unit of a service or pipeline, and a package brings the program that it starts, or the plug-in that it loads. No package of the configuration can be the one, and the program is not part of every image: the unit would fail at each boot.",
		Fix:   "name the package that has the program with package, or set external: true if the image gets it by other means",
		Wrong: `services: "a.service": exec: ["/usr/bin/a"]`,
		Right: `services: "a.service": {exec: ["/usr/bin/a"], package: "a"}`,
		See:   "yoctune schema Service",
		run:   checkServiceProgram,
	}, {
		ID: "service-chrt", Severity: diag.Error,
		Title: "the unit's sandbox forbids real-time scheduling",
		Cause: "The unit of a service with an exec has RestrictRealtime=yes unless scheduling is \"fifo\" or \"rr\". chrt then fails with EPERM, and the service does not start.",
		Fix:   `write scheduling: "fifo" or "rr" and priority instead of chrt`,
		Wrong: `services: "a.service": {exec: ["/usr/bin/chrt", "-f", "50", "/bin/sleep", "1"]}`,
		Right: `services: "a.service": {exec: ["/bin/sleep", "1"], scheduling: "fifo", priority: 50}`,
		See:   "systemd.exec(5): RestrictRealtime=; chrt(1)",
		run:   checkServiceChrt,
	}, {
		ID: "user-name", Severity: diag.Error,
		Title: "misspelt user or group",
		Cause: "No recipe of the release creates a user or group of that name, and one creates one with nearly the same. systemd does not start a program as a user or group that does not exist (217/USER, 216/GROUP).",
		Fix:   "write the name, or {value: NAME, external: true} if a layer of yours creates it",
		Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], user: "deamon"}`,
		Right: `services: "a.service": {exec: ["/usr/bin/yes"], user: "daemon"}`,
		See:   "openembedded-core meta/classes/useradd.bbclass",
		run:   checkUserName,
	}, {
		ID: "service-user", Severity: diag.Warning,
		Title: "nothing creates the service's user or group",
		Cause: "systemd does not start a program as a user or group that does not exist (217/USER, 216/GROUP). An image has those of base-passwd, of systemd and of its packages, and no package of the configuration can create this one.",
		Fix:   "name the package that creates it with package, write {value: NAME, external: true} if the image gets it by other means, or choose one that exists",
		Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], user: "robot"}`,
		Right: `services: "a.service": {exec: ["/usr/bin/yes"], user: "daemon"}`,
		See:   "openembedded-core meta/classes/useradd.bbclass",
		run:   checkServiceUser,
	}}
}

func checkServiceChrt(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		if !isSandboxed(svc) || isRealtimePolicy(svc.Scheduling.Text) {
			continue
		}
		for _, c := range commandsOf(svc) {
			for i, word := range c.Items {
				if path.Base(word.Text) == "chrt" && isRealtimeRequest(config.Texts(c.List)[i+1:]) || i > 0 && isRealtimeScript(c.Items[i-1].Text, word.Text) {
					s.reportAt(word, word.Show(), "", "chrt cannot make %s a real-time task", svc.Key())
				}
			}
		}
	}
}

// isRealtimeRequest reports whether arguments of chrt choose a real-time policy.
func isRealtimeRequest(options []string) bool {
	return len(options) == 0 || !slices.Contains([]string{"-o", "--other", "-b", "--batch", "-i", "--idle"}, options[0])
}

// isRealtimeScript reports whether a text, after an option such as -c, is a script that runs chrt for
// a real-time policy.
func isRealtimeScript(option, text string) bool {
	if !strings.HasPrefix(option, "-") || !strings.HasSuffix(option, "c") {
		return false
	}
	words := strings.Fields(text)
	i := slices.IndexFunc(words, func(w string) bool { return path.Base(w) == "chrt" })
	return i >= 0 && len(words) > i+1 && isRealtimeRequest(words[i+1:])
}

// account is a user or group that a service names.
type account struct {
	config.NamedScalar
	kind system.Kind
	of   *config.Service
}

// accounts lists the users and groups that services name and that systemd looks up by name.
func (s *subject) accounts() []account {
	var all []account
	for _, svc := range s.Config.Services.Entries {
		section := svc.Unit.Get("Service")
		add := func(kind system.Kind, names ...config.NamedScalar) {
			for _, name := range names {
				if _, err := strconv.Atoi(name.Text); name.IsSet() && name.Text != "" && err != nil && !name.External.On && !s.isOwnAccount(svc, name.Text) {
					all = append(all, account{name, kind, svc})
				}
			}
		}
		named := map[string]system.Kind{"SupplementaryGroups": system.Group}
		if dynamic := section.Get("DynamicUser"); !dynamic.IsSet() || resolve.DirectiveValue(dynamic.Scalar) != "yes" { // systemd creates them
			add(system.User, svc.User)
			add(system.Group, svc.Group)
			named["User"], named["Group"] = system.User, system.Group
		}
		add(system.Group, svc.SupplementaryGroups.Items...)
		for name, kind := range named {
			for _, v := range section.Get(name).Elements() {
				for word := range strings.FieldsSeq(v.Text) {
					add(kind, config.NamedScalar{Scalar: config.Scalar{Place: v.Place, Text: word}, External: section.Get(name).External})
				}
			}
		}
	}
	return all
}

// isOwnAccount reports whether a user or group has the name of its service or of the service's
// package, which the facts lack: that package creates it.
func (s *subject) isOwnAccount(svc *config.Service, name string) bool {
	return s.hasOwnPackage(svc) && (name == svc.Package.Text || name == strings.TrimSuffix(svc.Key(), ".service"))
}

// hasOwnPackage reports whether a service comes from a package that the facts lack, or from
// elsewhere: it may create users and groups, and need any other package.
func (s *subject) hasOwnPackage(svc *config.Service) bool {
	return svc.External.On || svc.Package.IsSet() && s.isUnread(svc.Package.Text)
}

// isUnread reports whether no recipe that was read makes a package, or it stands for others.
func (s *subject) isUnread(name string) bool {
	known, _ := s.findPackage(name)
	return !known || strings.HasPrefix(name, "packagegroup-")
}

// mayCreate reports whether a package that the facts lack may create a service's user or group.
func (s *subject) mayCreate(a account) bool {
	return s.hasOwnPackage(a.of) ||
		slices.ContainsFunc(s.Config.Packages.Entries, func(p *config.NamedString) bool { return p.Text == "install" && s.isUnread(p.Key()) }) ||
		slices.ContainsFunc(s.build.Optional.Entries, func(o *config.List[config.String]) bool { return slices.ContainsFunc(config.Texts(*o), s.isUnread) })
}

func checkUserName(s *subject) {
	for _, a := range s.accounts() {
		if _, known := system.Find(s.Release.Name, a.kind, a.Text); known {
			continue
		}
		if near := system.Nearest(s.Release.Name, a.kind, a.Text); near != "" {
			s.reportAt(a, a.Show(), fmt.Sprintf("did you mean %q? Otherwise write {value: %q, external: true}", near, a.Text), "no recipe of %s creates the %s %s of %s", s.Release.Name, a.kind, a.Text, a.of.Key()).propose(a, a.Text, near).unlessShort(a.Text)
		}
	}
}

func checkServiceUser(s *subject) {
	for _, a := range s.accounts() {
		from, known := system.Find(s.Release.Name, a.kind, a.Text)
		missing := s.missingWords(from)
		switch {
		case known && (len(missing) == 0 && (system.IsInEveryImage(from.Package) || s.mayInstall(from.Package)) || s.hasOwnPackage(a.of)):
		case known && len(missing) > 0:
			s.reportAt(a, a.Show(), fmt.Sprintf("add build: packageConfig: %q: append: [%s], write {value: %q, external: true} if a layer of yours sets it, or choose a user that exists", from.Recipe, quotedWords(missing), a.Text),
				"%s creates the %s %s of %s with %s in its PACKAGECONFIG only", from.Recipe, a.kind, a.Text, a.of.Key(), strings.Join(missing, " "))
		case known:
			s.reportAt(a, a.Show(), fmt.Sprintf(`add packages: %q: "install", which creates it, or write {value: %q, external: true} if the image has it`, from.Package, a.Text),
				"no package of the configuration creates the %s %s of %s", a.kind, a.Text, a.of.Key())
		case system.Nearest(s.Release.Name, a.kind, a.Text) == "" && !s.mayCreate(a):
			s.reportAt(a, a.Show(), "", "no package of the configuration creates the %s %s of %s", a.kind, a.Text, a.of.Key())
		}
	}
}

// mayInstall reports whether the configuration installs a package, or a group of packages that
// may have it.
func (s *subject) mayInstall(name string) bool {
	has := func(p string) bool {
		return p == name || strings.HasPrefix(p, name+"-") || strings.HasPrefix(name, p+"-") || strings.HasPrefix(p, "packagegroup-")
	}
	return slices.ContainsFunc(s.Config.Packages.Entries, func(p *config.NamedString) bool { return p.Text == "install" && has(p.Key()) }) ||
		slices.ContainsFunc(s.Config.Services.Entries, func(svc *config.Service) bool { return svc.Package.IsSet() && has(svc.Package.Text) })
}

// pipelineHelp replaces the rule's help for pipelines, which have no field for a package.
const pipelineHelp = `install the package that has it: packages: NAME: "install"`

func checkServiceProgram(s *subject) {
	s.checkPipelinePrograms()
	for _, svc := range s.Config.Services.Entries {
		if svc.Package.IsSet() || svc.External.On {
			continue
		}
		for _, c := range commandsOf(svc) {
			if program := c.program(); strings.HasPrefix(program, "/") && !isInEveryImage(program) && !s.mayProvide(path.Base(program)) {
				s.reportAt(c.Items[0], c.Items[0].Show(), "", "no package of the configuration provides %s of %s", program, svc.Key())
			}
		}
	}
}

// checkPipelinePrograms checks what the sources, stages and sinks of pipelines start or load.
func (s *subject) checkPipelinePrograms() {
	for c := range s.pipelines() {
		check := func(where string, file config.String) {
			name := file.Text
			if !strings.Contains(name, "/") {
				name = "/usr/bin/" + name // found by PATH
			}
			if file.IsSet() && !isInEveryImage(name) && !s.mayProvide(path.Base(name)) {
				s.reportAt(file, file.Show(), pipelineHelp, "no package of the configuration provides %s of %s of pipeline %s", file.Text, where, c.Key())
			}
		}
		program := func(where string, exec config.List[config.String]) {
			if len(exec.Items) > 0 {
				check(where, exec.Items[0])
			}
		}
		program("the source", c.Source.Exec)
		for _, st := range c.Stages.Sorted() {
			program("stage "+st.Key(), st.Exec)
			check("stage "+st.Key(), st.Plugin)
		}
		program("the sink", c.Sink.Exec)
	}
}

// mayProvide reports whether a package of the configuration may have a program. Only of
// well-known packages it is known that they do not.
func (s *subject) mayProvide(program string) bool {
	may := func(name string) bool {
		programs, known := programsOf()[name]
		return !known && !strings.HasPrefix(name, "kernel-module-") && !strings.HasPrefix(name, "linux-firmware") || slices.Contains(programs, program)
	}
	if slices.ContainsFunc(s.Config.Packages.Entries, func(p *config.NamedString) bool { return p.Text == "install" && may(p.Key()) }) {
		return true
	}
	return slices.ContainsFunc(s.build.Optional.Entries, func(o *config.List[config.String]) bool { return slices.ContainsFunc(config.Texts(*o), may) })
}

// programsOf lists programs of well-known packages of openembedded-core and meta-oe.
func programsOf() map[string][]string {
	return map[string][]string{
		"ethtool":   {"ethtool"},
		"gdb":       {"gdb"},
		"htop":      {"htop"},
		"iproute2":  {"ip", "tc", "bridge", "ss"},
		"jq":        {"jq"},
		"perf":      {"perf", "trace"},
		"rt-tests":  {"cyclictest", "cyclicdeadline", "deadline_test", "hackbench", "oslat", "pi_stress", "pip_stress", "pmqtest", "ptsematest", "queuelat", "rt-migrate-test", "signaltest", "sigwaittest", "ssdd", "svsematest"},
		"strace":    {"strace"},
		"stress-ng": {"stress-ng"},
		"tcpdump":   {"tcpdump"},
		"valgrind":  {"valgrind"},
	}
}

// isInEveryImage reports whether a program belongs to systemd, to the base system
// (busybox, coreutils, util-linux, kmod), to the BSP or to yoctune.
func isInEveryImage(program string) bool {
	dir, name := path.Split(program)
	switch dir {
	case "/lib/systemd/", "/usr/lib/systemd/", "/usr/lib/yoctune/":
		return true
	case "/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/":
		return strings.HasPrefix(name, "systemd-") || slices.Contains(strings.Fields(basePrograms), name)
	}
	return false
}

// basePrograms are the applets of oe-core's busybox (recipes-core/busybox) that a unit may
// start, with the programs of systemd, the shells, the BSP and yoctune.
const basePrograms = `
	systemctl journalctl loginctl udevadm busctl networkctl resolvectl timedatectl hostnamectl
	sh ash bash busybox
	[ awk basename blkid cat chgrp chmod chown chroot chrt chvt cp crond cut date dd depmod devmem df dirname dmesg
	dnsd du echo egrep env expr false fdisk fgrep find flock free fsck fuser getopt getty grep gunzip gzip head hexdump
	hostname httpd hwclock id ifconfig ifdown ifup insmod ionice ip kill killall klogd less ln logger login logread
	losetup ls lsmod md5sum mdev microcom mkdir mkfifo mknod mkswap mktemp modprobe more mount mountpoint mv nc
	netstat nice nohup nproc nslookup ntpd od openvt passwd patch pgrep pidof ping pivot_root pkill poweroff printf ps
	pwd rdate readlink realpath reboot renice reset rfkill rm rmdir rmmod route run-parts sed seq setconsole setsid
	sha256sum sleep sort start-stop-daemon stat strings stty su sulogin swapoff swapon switch_root sync sysctl syslogd
	tail tar taskset tee telnetd test tftp time timeout top touch tr true tty udhcpc udhcpd umount uname uniq unzip uptime
	usleep users vi watch watchdog wc wget which who whoami xargs yes zcat
	jetson_clocks jetson_clocks.sh nvfancontrol nvpmodel tegrastats
	yoctuned yoctuned-serve`
