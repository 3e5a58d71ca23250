package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/yoctune/yoctune/schema/knob"
	"golang.org/x/sys/unix"
)

// yoctuned is the adapter of yoctuned.
type yoctuned struct {
	o    options
	work string
}

func (*yoctuned) name() string { return "yoctuned" }

func (y *yoctuned) version() string { return output(y.o.yoctuned, "version") }

func (y *yoctuned) plan() string { return filepath.Join(y.work, "plan.json") }

func (y *yoctuned) prepare(ks knobs) error {
	var table strings.Builder
	for _, k := range ks {
		fmt.Fprintf(&table, "%s\t%s\n", k.path, k.want)
	}
	name := filepath.Join(y.work, "table.tsv")
	if err := os.WriteFile(name, []byte(table.String()), 0o644); err != nil {
		return err
	}
	if out, err := exec.Command(y.o.yoctune, "plan", "--knobs", name, "-o", y.plan()).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (y *yoctuned) apply() *exec.Cmd     { return exec.Command(y.o.yoctuned, "apply", y.plan()) }
func (y *yoctuned) verify() *exec.Cmd    { return exec.Command(y.o.yoctuned, "verify", y.plan()) }
func (y *yoctuned) verifying(bool) error { return nil }

func (y *yoctuned) daemon() (*exec.Cmd, func() bool) {
	return logged(exec.Command(y.o.yoctuned, "enforce", y.plan()), filepath.Join(y.work, "enforce.log"), "applied:")
}

func (y *yoctuned) recover(func() (*exec.Cmd, error)) error { return y.forget() }

func (y *yoctuned) forget() error {
	if out, err := exec.Command(y.o.yoctuned, "rollback").CombinedOutput(); err != nil {
		return fmt.Errorf("rollback: %w: %s", err, out)
	}
	return nil
}

// tuned is the adapter of TuneD, as described in its manual: one profile with only the
// plug-ins that the knobs need.
type tuned struct {
	work   string
	served *exec.Cmd
	bus    string
}

func (*tuned) name() string { return "tuned" }

func (*tuned) version() string { return output("tuned", "--version") }

func (t *tuned) log() string { return filepath.Join(t.work, "tuned.log") }

func (t *tuned) prepare(ks knobs) error {
	var sysctl, sysfs strings.Builder
	for _, k := range ks {
		if key, ok := knob.SysctlKey(k.path); ok {
			fmt.Fprintf(&sysctl, "%s=%s\n", key, k.want)
		} else {
			fmt.Fprintf(&sysfs, "%s=%s\n", k.path, k.want)
		}
	}
	if err := os.MkdirAll("/etc/tuned/bench", 0o755); err != nil {
		return err
	}
	profile := "[main]\nsummary=bench\n[sysctl]\n" + sysctl.String() + "[sysfs]\n" + sysfs.String()
	if err := os.WriteFile("/etc/tuned/bench/tuned.conf", []byte(profile), 0o644); err != nil {
		return err
	}
	return t.setDaemonMode(1)
}

// setDaemonMode configures whether tuned runs as a daemon. Dynamic tuning is off, which makes idling
// cheapest.
func (*tuned) setDaemonMode(daemon int) error {
	return os.WriteFile("/etc/tuned/tuned-main.conf", fmt.Appendf(nil,
		"daemon = %d\ndynamic_tuning = 0\nreapply_sysctl = 0\nsleep_interval = 1\nupdate_interval = 10\nenable_dbus = 1\n", daemon), 0o644)
}

func (t *tuned) command(args ...string) *exec.Cmd {
	return exec.Command("tuned", append([]string{"--profile", "bench", "-l", t.log()}, args...)...)
}

func (t *tuned) apply() *exec.Cmd {
	if err := t.setDaemonMode(0); err != nil {
		return exec.Command("false") // the knobs will not have the wanted values
	}
	return t.command("--no-dbus")
}

func (t *tuned) daemon() (*exec.Cmd, func() bool) {
	_ = t.setDaemonMode(1) // cannot fail: it was written before
	_ = os.Remove(t.log())
	return t.command("--no-dbus"), contains(t.log(), "static tuning from profile")
}

func (t *tuned) verify() *exec.Cmd {
	cmd := exec.Command("tuned-adm", "verify")
	cmd.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+t.bus)
	return cmd
}

// verifying runs tuned on a private bus, through which tuned-adm communicates with it.
func (t *tuned) verifying(start bool) error {
	if !start {
		return end(t.served)
	}
	socket := filepath.Join(t.work, "bus")
	t.bus = "unix:path=" + socket
	config := filepath.Join(t.work, "bus.conf")
	if err := os.WriteFile(config, []byte(`<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>`+t.bus+`</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
`), 0o644); err != nil {
		return err
	}
	bus := exec.Command("dbus-daemon", "--config-file="+config, "--nofork")
	bus.SysProcAttr = dieWithParent()
	if err := bus.Start(); err != nil {
		return err
	}
	for late := time.Now().Add(startPatience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		} else if time.Now().After(late) {
			return err
		}
	}
	_ = os.Remove(t.log())
	_ = t.setDaemonMode(1)
	t.served = t.command()
	t.served.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+t.bus)
	t.served.SysProcAttr = dieWithParent()
	if err := t.served.Start(); err != nil {
		return err
	}
	ready := contains(t.log(), "static tuning from profile")
	for late := time.Now().Add(startPatience); !ready(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			return fmt.Errorf("tuned does not start on a private bus")
		}
	}
	time.Sleep(time.Second) // it acquires its bus name after tuning
	return nil
}

// recover starts tuned, which finds the state of the killed process, and stops it, which
// restores the knobs.
func (t *tuned) recover(start func() (*exec.Cmd, error)) error {
	cmd, err := start()
	if err != nil {
		return err
	}
	return end(cmd)
}

func (t *tuned) forget() error { return nil }

// logged redirects a command to a log file and returns a function that searches it for a
// text.
func logged(cmd *exec.Cmd, name, text string) (*exec.Cmd, func() bool) {
	f, err := os.Create(name)
	if err == nil {
		cmd.Stdout, cmd.Stderr = f, f
	}
	cmd.SysProcAttr = dieWithParent()
	return cmd, contains(name, text)
}

func contains(name, text string) func() bool {
	return func() bool {
		b, err := os.ReadFile(name)
		return err == nil && strings.Contains(string(b), text)
	}
}

func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL} }

func output(argv ...string) string {
	b, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

// end sends SIGTERM to a daemon and waits for it.
func end(cmd *exec.Cmd) error {
	_ = cmd.Process.Signal(unix.SIGTERM) // it may have ended by itself
	return wait(cmd)
}

// runLimited runs a command. Its exit code is ignored: some kernels refuse one of the knobs.
func runLimited(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	return wait(cmd)
}

// wait waits until a process has ended, whatever its exit code, and kills it after endPatience.
func wait(cmd *exec.Cmd) error {
	late := time.AfterFunc(endPatience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() {
		return fmt.Errorf("%s did not end within %v", filepath.Base(cmd.Path), endPatience)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
