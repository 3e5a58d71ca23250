package checklayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockName is the lock file of a work folder. It also marks a folder whose content may be
// deleted.
const lockName = ".yoctune-check-layer"

// rig is a prepared work folder.
type rig struct {
	opt    Options
	src    sources
	layer  *layer
	work   string
	logs   string
	pseudo string // PSEUDO_SYSROOT made of the host's pseudo, "" when there is none
	owner  *syscall.Credential
	lock   *os.File

	standIns map[string]*standIns         // by build folder
	values   map[string]map[string]string // by recipe, of the quick build folder
	badValue error                        // of [rig.assign]
}

// openRig prepares a work folder; the caller closes the rig. The error wraps [ErrSetup], or
// is the context's cause.
func openRig(ctx context.Context, o Options) (*rig, error) {
	if o.Threads <= 0 {
		o.Threads = runtime.NumCPU()
	}
	g, err := prepare(ctx, o)
	switch {
	case err == nil:
		return g, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("%w: %w", ErrSetup, err)
}

// finish completes the summary and removes a temporary work folder, unless a step failed:
// its logs are kept.
func (g *rig) finish(ctx context.Context, s *Summary, began time.Time) error {
	s.Seconds = roundSeconds(time.Since(began))
	if g.opt.WorkDir != "" || s.Failed > 0 && ctx.Err() == nil {
		s.WorkDir = g.work
		return context.Cause(ctx)
	}
	if err := os.RemoveAll(g.work); err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("removing the temporary work folder: %w", err))
	}
	return context.Cause(ctx)
}

// prepare checks everything that can be checked without bitbake, and creates the work
// folder.
func prepare(ctx context.Context, o Options) (_ *rig, err error) {
	src, err := findSources(o)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(src.missingTools(), locale()); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(o.Layer, "conf", "layer.conf")); err != nil {
		return nil, fmt.Errorf("%s is not a layer: %w", o.Layer, err)
	}
	g := &rig{opt: o, src: src, standIns: map[string]*standIns{}, values: map[string]map[string]string{}}
	if err := g.chooseUser(); err != nil {
		return nil, err
	}
	if err := g.makeWorkDir(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			g.close()
			if o.WorkDir == "" {
				err = errors.Join(err, os.RemoveAll(g.work))
			}
		}
	}()
	// yocto-check-layer calls the layer by the name of its folder.
	name := filepath.Base(o.Layer)
	if !word.MatchString(name) || usablePath("", name) != nil {
		name = "layer"
	}
	dir := filepath.Join(g.work, "layer", name)
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if err := snapshot(o.Layer, dir); err != nil {
		return nil, fmt.Errorf("copying the layer: %w", err)
	}
	if g.layer, err = readLayer(dir, o.Layer, o.Machine); err != nil {
		return nil, err
	}
	if o.MetaTegra == "" && g.layer.NeedsTegra {
		return nil, fmt.Errorf("the layer depends on meta-tegra: give its folder with --meta-tegra")
	}
	for _, a := range g.layer.Appends {
		if !word.MatchString(a.Name) {
			return nil, fmt.Errorf("%s: %q is not a recipe name", a.File, a.Name)
		}
	}
	if g.pseudo, err = g.makePseudoSysroot(); err != nil {
		return nil, err
	}
	return g, g.checkAccountAccess(ctx)
}

// chooseUser selects the account that runs bitbake, which refuses root.
func (g *rig) chooseUser() error {
	if os.Geteuid() != 0 {
		if g.opt.User != "" {
			return fmt.Errorf("--user %s: only root can run bitbake as another user", g.opt.User)
		}
		return nil
	}
	name := g.opt.User
	if name == "" {
		name = "nobody"
	}
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("bitbake refuses to run as root, and the user %q cannot be used: %w; choose another with --user", name, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	if uid == 0 {
		return fmt.Errorf("--user %s: bitbake refuses to run as root", name)
	}
	g.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return nil
}

func (g *rig) makeWorkDir() error {
	var err error
	if g.opt.WorkDir == "" {
		g.work, err = os.MkdirTemp("", "yoctune-check-layer-")
	} else if g.work, err = filepath.Abs(g.opt.WorkDir); err == nil {
		err = os.MkdirAll(g.work, 0o755)
	}
	if err == nil {
		g.work, err = filepath.EvalSymlinks(g.work)
	}
	if err != nil {
		return fmt.Errorf("creating the work folder: %w", err)
	}
	if err := usablePath("work folder", g.work); err != nil {
		return err
	}
	if g.owner != nil {
		if err := os.Chmod(g.work, 0o755); err != nil {
			return err
		}
	}
	if err := g.lockWorkDir(); err != nil {
		return err
	}
	g.logs = filepath.Join(g.work, "logs")
	// Remove the results of earlier runs.
	for _, dir := range []string{"logs", "home", "build", "downloads", "sstate", "stand-ins"} {
		dir = filepath.Join(g.work, dir)
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"home", "build", "downloads", "sstate"} {
		if err := g.chown(filepath.Join(g.work, dir)); err != nil {
			return err
		}
	}
	// Otherwise git refuses to read a checkout that belongs to another user, and the log
	// fills with errors.
	return os.WriteFile(filepath.Join(g.work, "home", ".gitconfig"), []byte("[safe]\n\tdirectory = *\n"), 0o644)
}

// lockWorkDir locks the work folder. It refuses a folder that is in use or has files that
// check-layer did not create.
func (g *rig) lockWorkDir() error {
	lock := filepath.Join(g.work, lockName)
	if entries, err := os.ReadDir(g.work); err != nil {
		return err
	} else if _, err := os.Stat(lock); err != nil && len(entries) > 0 {
		return fmt.Errorf("work folder %s is not empty and was not created by check-layer: its content would be deleted; choose another", g.work)
	}
	var err error
	if g.lock, err = os.OpenFile(lock, os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return fmt.Errorf("work folder: %w", err)
	}
	if err := syscall.Flock(int(g.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("work folder %s is in use by another run: %w", g.work, err)
	}
	return nil
}

// chown makes path belong to the account that runs bitbake.
func (g *rig) chown(path string) error {
	if g.owner == nil {
		return nil
	}
	return os.Lchown(path, int(g.owner.Uid), int(g.owner.Gid))
}

func (g *rig) close() {
	if g.lock != nil {
		g.lock.Close()
		g.lock = nil
	}
}

// checkAccountAccess makes sure that the account which runs bitbake can read everything.
func (g *rig) checkAccountAccess(ctx context.Context) error {
	if g.owner == nil {
		return nil
	}
	files := []string{filepath.Join(g.src.BitBake, "bin", "bitbake")}
	for _, dir := range append(g.src.layers(), g.layer.Dir) {
		files = append(files, filepath.Join(dir, "conf", "layer.conf"))
	}
	for _, f := range files {
		cmd := exec.CommandContext(ctx, "test", "-r", f)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: g.owner}
		cmd.Dir = "/"
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("bitbake must run as an unprivileged user (uid %d), which cannot read %s: choose another with --user, or make the folders above it readable (chmod a+rx)", g.owner.Uid, f)
		}
	}
	return nil
}

// makePseudoSysroot arranges the host's pseudo as openembedded-core expects the one
// it would build first. Without it, tasks that install files cannot run.
func (g *rig) makePseudoSysroot() (string, error) {
	program, err := exec.LookPath("pseudo")
	if err != nil {
		return "", nil
	}
	libs, err := filepath.Glob("/usr/lib*/*/pseudo/libpseudo.so")
	if err != nil {
		return "", err
	}
	more, err := filepath.Glob("/usr/lib*/pseudo/lib*/libpseudo.so")
	if err != nil {
		return "", err
	}
	if libs = append(libs, more...); len(libs) == 0 {
		return "", nil
	}
	root := filepath.Join(g.work, "pseudo")
	if err := os.RemoveAll(root); err != nil {
		return "", err
	}
	for _, dir := range []string{"usr/bin", "usr/lib/pseudo", "etc", "var"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return "", err
		}
	}
	links := map[string]string{
		"usr/bin/pseudo": program, "usr/bin/pseudodb": filepath.Join(filepath.Dir(program), "pseudodb"),
		"usr/lib/pseudo/lib": filepath.Dir(libs[0]), "usr/lib/pseudo/lib64": filepath.Dir(libs[0]),
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"passwd", "group"} {
		from := filepath.Join(g.src.Meta, "recipes-devtools", "pseudo", "files", "fallback-"+name)
		if err := copyFile(from, filepath.Join(root, "etc", name), 0o644); err != nil {
			return "", fmt.Errorf("pseudo's fallback files: %w", err)
		}
	}
	return root, nil
}

// build is a build folder.
func (g *rig) build(name string) string { return filepath.Join(g.work, "build", name) }

// configure writes the configuration of a build folder.
func (g *rig) configure(name string, c conf) error {
	dir := g.build(name)
	if g.badValue != nil {
		return g.badValue
	}
	if err := c.write(dir); err != nil {
		return err
	}
	for _, p := range []string{dir, filepath.Join(dir, "conf"), filepath.Join(dir, "conf", "local.conf"), filepath.Join(dir, "conf", "bblayers.conf")} {
		if err := g.chown(p); err != nil {
			return err
		}
	}
	return nil
}

// bitbake runs a program of bitbake or openembedded-core, or one that uses them, in a
// build folder and without a shell. It returns the output and appends it to the log. The
// error is that of the process. A cancelled context ends the process group and bitbake's
// server, which has its own session.
func (g *rig) bitbake(ctx context.Context, build, log string, argv ...string) (string, error) {
	dir := g.build(build)
	program := argv[0]
	for _, p := range []string{filepath.Join(g.src.OECore, "scripts", argv[0]), filepath.Join(g.src.BitBake, "bin", argv[0])} {
		if _, err := os.Stat(p); err == nil {
			program = p
		}
	}
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Dir = dir
	cmd.Env = g.environment(dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: g.owner}
	cmd.Cancel = func() error {
		group := -cmd.Process.Pid
		err := syscall.Kill(group, syscall.SIGINT)
		stopAll(dir)
		_ = syscall.Kill(group, syscall.SIGKILL) // those that ignored the interrupt, if any
		return err
	}
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if logErr := appendLog(log, argv, out.Bytes()); logErr != nil {
		return out.String(), errors.Join(err, logErr)
	}
	return out.String(), err
}

func (g *rig) environment(dir string) []string {
	path := []string{filepath.Join(g.src.BitBake, "bin"), filepath.Join(g.src.OECore, "scripts")}
	for _, p := range filepath.SplitList(os.Getenv("PATH")) {
		// oe-core refuses relative entries.
		if filepath.IsAbs(p) {
			path = append(path, p)
		}
	}
	name := "yoctune"
	if u, err := user.Current(); err == nil && g.owner == nil {
		name = u.Username
	}
	return []string{
		"PATH=" + strings.Join(path, ":"),
		"HOME=" + filepath.Join(g.work, "home"),
		"USER=" + name, "LOGNAME=" + name, "TERM=dumb", "LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8",
		"BUILDDIR=" + dir, "BBPATH=" + dir,
		"PYTHONPATH=" + filepath.Join(g.src.BitBake, "lib") + ":" + filepath.Join(g.src.Meta, "lib"),
		"PYTHONDONTWRITEBYTECODE=1", // checkouts are not ours to write to
	}
}

func appendLog(file string, argv []string, out []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "$ %s\n%s\n", strings.Join(argv, " "), out)
	return errors.Join(err, f.Close())
}

// stopAll ends what bitbake left behind for a build folder: its server lives in
// a session of its own, with parser processes that outlive it, and tasks run
// below workers.
func stopAll(dir string) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for range 20 {
			left := processesOf(dir)
			if len(left) == 0 {
				return
			}
			for _, pid := range left {
				// Each may have ended by itself, and not each leads a group.
				_ = syscall.Kill(-pid, signal)
				_ = syscall.Kill(pid, signal)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// processesOf lists the processes of bitbake that work in a build folder. Only
// programs of bitbake count: a user may well look at the folder in a shell.
func processesOf(dir string) []int {
	programs := []string{"bitbake", "read.py", "bitbake-layers", "bitbake-server", "bitbake-worker", "yocto-check-layer"}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		argv := strings.Split(string(cmdline), "\x00")
		ours := slices.ContainsFunc(argv[:min(3, len(argv))], func(arg string) bool {
			return slices.Contains(programs, filepath.Base(arg))
		})
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil {
			cwd = ""
		}
		if ours && (strings.HasPrefix(cwd+"/", dir+"/") || strings.Contains(string(cmdline), dir+"/")) {
			found = append(found, pid)
		}
	}
	return found
}
