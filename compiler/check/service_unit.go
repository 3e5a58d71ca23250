package check

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/spelling"
)

func unitRules() []Rule {
	return []Rule{{
		ID: "unit-name", Severity: diag.Warning,
		Title: "misspelt unit",
		Cause: "Neither systemd, the BSP nor the configuration has a unit of that name, and one has nearly the same. systemd reads no drop-in of a unit that does not exist, and skips the name in after, wants and requires, or fails to start the service.",
		Fix:   "write the unit's name, or set external: true at a drop-in whose unit the image gets by other means",
		Wrong: `services: "systemd-tmpfile.service": nice: 5`, Right: `services: "systemd-tmpfiles-setup.service": nice: 5`,
		See: "systemd.unit(5)",
		run: checkUnitName,
	}}
}

// systemUnits are the units of systemd 250 to 258 that an image may have, dbus, and those of
// oe-core's packages that have nearly the name of one.
const systemUnits = `
	basic.target bluetooth.target boot-complete.target cryptsetup.target cryptsetup-pre.target ctrl-alt-del.target
	default.target emergency.target exit.target final.target first-boot-complete.target getty.target getty-pre.target
	graphical.target halt.target hibernate.target hybrid-sleep.target initrd.target initrd-fs.target
	initrd-root-device.target initrd-root-fs.target initrd-switch-root.target initrd-usr-fs.target
	integritysetup.target integritysetup-pre.target kexec.target local-fs.target local-fs-pre.target
	machines.target multi-user.target network.target network-online.target network-pre.target nss-lookup.target
	nss-user-lookup.target paths.target poweroff.target printer.target reboot.target remote-cryptsetup.target
	remote-fs.target remote-fs-pre.target remote-veritysetup.target rescue.target rpcbind.target runlevel0.target
	runlevel1.target runlevel2.target runlevel3.target runlevel4.target runlevel5.target runlevel6.target
	shutdown.target sigpwr.target sleep.target slices.target smartcard.target sockets.target soft-reboot.target
	sound.target ssh-access.target storage-target-mode.target suspend.target suspend-then-hibernate.target
	swap.target sysinit.target syslog.target system-update.target system-update-pre.target time-set.target
	time-sync.target timers.target tpm2.target umount.target usb-gadget.target veritysetup.target
	veritysetup-pre.target
	auditd.service autovt@.service console-getty.service container-getty@.service dbus.service dbus-broker.service
	debug-shell.service emergency.service getty@.service initrd-cleanup.service initrd-parse-etc.service
	initrd-switch-root.service initrd-udevadm-cleanup-db.service kmod-static-nodes.service ldconfig.service
	modprobe@.service quotaon.service quotaon-root.service quotaon@.service rc-local.service rescue.service
	serial-getty@.service syslog.service udev.service udevd.service user@.service user-runtime-dir@.service
	systemd-ask-password-console.service systemd-ask-password-plymouth.service systemd-ask-password-wall.service
	systemd-backlight@.service systemd-battery-check.service systemd-binfmt.service systemd-bless-boot.service
	systemd-boot-check-no-failures.service systemd-boot-random-seed.service systemd-boot-update.service
	systemd-bootctl@.service systemd-bsod.service systemd-confext.service systemd-coredump@.service
	systemd-creds@.service systemd-cryptsetup@.service systemd-exit.service systemd-firstboot.service
	systemd-fsck-root.service systemd-fsck@.service systemd-growfs-root.service systemd-growfs@.service
	systemd-halt.service systemd-hibernate.service systemd-hibernate-clear.service systemd-hibernate-resume.service
	systemd-homed.service systemd-homed-activate.service systemd-hostnamed.service systemd-hwdb-update.service
	systemd-hybrid-sleep.service systemd-importd.service systemd-initctl.service systemd-journal-catalog-update.service
	systemd-journal-flush.service systemd-journal-gatewayd.service systemd-journal-remote.service
	systemd-journal-upload.service systemd-journald.service systemd-journald@.service
	systemd-journald-sync@.service systemd-kexec.service systemd-localed.service systemd-logind.service
	systemd-loop@.service systemd-machine-id-commit.service systemd-machined.service systemd-modules-load.service
	systemd-mountfsd.service systemd-mute-console@.service systemd-network-generator.service
	systemd-networkd.service systemd-networkd-persistent-storage.service systemd-networkd-wait-online.service
	systemd-networkd-wait-online@.service systemd-nspawn@.service systemd-nsresourced.service systemd-oomd.service
	systemd-pcrextend@.service systemd-pcrfs-root.service systemd-pcrfs@.service systemd-pcrlock@.service
	systemd-pcrmachine.service systemd-pcrphase.service systemd-pcrphase-initrd.service
	systemd-pcrphase-sysinit.service systemd-portabled.service systemd-poweroff.service systemd-pstore.service
	systemd-quotacheck.service systemd-quotacheck-root.service systemd-quotacheck@.service systemd-random-seed.service
	systemd-reboot.service systemd-remount-fs.service systemd-repart.service systemd-resolved.service
	systemd-rfkill.service systemd-soft-reboot.service systemd-storagetm.service systemd-suspend.service
	systemd-suspend-then-hibernate.service systemd-sysctl.service systemd-sysext.service systemd-sysext@.service
	systemd-sysupdate.service systemd-sysupdate-reboot.service systemd-sysupdated.service systemd-sysusers.service
	systemd-time-wait-sync.service systemd-timedated.service systemd-timesyncd.service
	systemd-tmpfiles-clean.service systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service
	systemd-tmpfiles-setup-dev-early.service systemd-tpm2-clear.service systemd-tpm2-setup.service
	systemd-tpm2-setup-early.service systemd-udev-load-credentials.service systemd-udev-settle.service
	systemd-udev-trigger.service systemd-udevd.service systemd-update-done.service systemd-update-utmp.service
	systemd-update-utmp-runlevel.service systemd-user-sessions.service systemd-userdbd.service
	systemd-validatefs@.service systemd-vconsole-setup.service systemd-veritysetup@.service
	systemd-volatile-root.service yoctuned.service yoctuned-serve.service
	dbus.socket syslog.socket systemd-coredump.socket systemd-hostnamed.socket systemd-initctl.socket
	systemd-journal-remote.socket systemd-journal-gatewayd.socket systemd-journald.socket systemd-journald@.socket
	systemd-journald-audit.socket systemd-journald-dev-log.socket systemd-logind-varlink.socket
	systemd-networkd.socket systemd-networkd-varlink.socket systemd-oomd.socket systemd-resolved-monitor.socket
	systemd-resolved-varlink.socket systemd-rfkill.socket systemd-sysext.socket systemd-udevd-control.socket
	systemd-udevd-kernel.socket systemd-udevd-varlink.socket systemd-userdbd.socket udev.socket
	ssh.service sshd.service ssh@.service sshd@.service sshdgenkeys.service ssh.socket sshd.socket
	systemd-tmpfiles-clean.timer systemd-sysupdate.timer systemd-sysupdate-reboot.timer
	tmp.mount proc-sys-fs-binfmt_misc.mount dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount
	sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount
	system.slice user.slice machine.slice`

// knownUnits are the units of systemd, of the BSP, and of the configuration.
func (s *subject) knownUnits() map[string]bool {
	known := map[string]bool{}
	for _, name := range strings.Fields(systemUnits) {
		known[name] = true
	}
	for _, u := range s.Release.Units() {
		known[u.Name] = true
	}
	for _, svc := range s.Config.Services.Entries {
		if resolve.IsWholeUnit(svc) || svc.Package.IsSet() || svc.External.On {
			known[svc.Key()] = true
		}
	}
	return known
}

func checkUnitName(s *subject) {
	known := s.knownUnits()
	for _, svc := range s.Config.Services.Sorted() {
		if near := nearestUnit(svc.Key(), known); near != "" {
			s.reportKey(svc, fmt.Sprintf("did you mean %q?", near), "no unit %s is known, and a drop-in of it changes nothing", svc.Key())
		}
		for _, names := range [][]config.String{svc.After.Items, svc.Wants.Items, svc.Requires.Items, verbatimUnits(svc)} {
			for _, name := range names {
				if near := nearestUnit(name.Text, known); near != "" {
					s.reportAt(name, name.Show(), fmt.Sprintf("did you mean %q?", near), "no unit %s is known, which %s names", name.Text, svc.Key())
				}
			}
		}
	}
}

// verbatimUnits lists the units that a service's unit names.
func verbatimUnits(svc *config.Service) []config.String {
	var all []config.String
	for _, name := range []string{"After", "Before", "Wants", "Requires", "Requisite", "BindsTo", "PartOf", "Conflicts"} {
		for _, v := range svc.Unit.Get("Unit").Get(name).Elements() {
			for unit := range strings.FieldsSeq(v.Text) {
				all = append(all, config.String{Place: v.Place, Text: unit})
			}
		}
	}
	return all
}

// nearestUnit returns the known unit of the same type that an unknown one was probably meant to
// be, or "". Names that differ in digits alone are of a series, such as cam1 and cam2.
func nearestUnit(name string, known map[string]bool) string {
	template := name
	if before, after, ok := strings.Cut(name, "@"); ok {
		template = before + "@" + path.Ext(after)
	}
	if known[name] || known[template] || strings.HasPrefix(name, "yoctune") {
		return ""
	}
	kind := path.Ext(template)
	stem := strings.TrimSuffix(template, kind)
	var stems []string
	for _, unit := range slices.Sorted(maps.Keys(known)) {
		if s, ok := strings.CutSuffix(unit, kind); ok && withoutDigits(s) != withoutDigits(stem) {
			stems = append(stems, s)
		}
	}
	near := spelling.Nearest(stem, stems)
	const letters = 2
	switch {
	case near != "" && spelling.Distance(stem, near) <= letters:
		return near + kind
	case !strings.HasPrefix(stem, "systemd-"):
		return ""
	}
	// Part of the name of several units, such as systemd-tmpfile of systemd-tmpfiles-setup.
	for _, unit := range strings.Fields(systemUnits) {
		if strings.HasPrefix(unit, stem) && strings.HasSuffix(unit, kind) {
			return unit
		}
	}
	return ""
}

func withoutDigits(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}
