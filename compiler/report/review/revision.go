package review

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// maxSnapshot bounds the size of the configuration at a revision, in bytes.
const maxSnapshot = 256 << 20

// CheckOut writes the configuration in dir as it was at a revision of its git repository,
// with the .cue files of the module that it is in, to a temporary folder. It returns where
// the configuration is, and a function that removes the folder. It runs git, and nothing of
// the repository.
func CheckOut(ctx context.Context, dir, rev string) (config string, remove func() error, err error) {
	fail := func(err error) (string, func() error, error) { return "", nil, err }
	in := dir
	git := func(args ...string) ([]byte, error) {
		var stderr bytes.Buffer
		c := exec.CommandContext(ctx, "git", append([]string{"-C", in}, args...)...)
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil {
			if message := strings.TrimSpace(stderr.String()); message != "" {
				err = errors.New(message)
			}
			return nil, fmt.Errorf("git: %w", err)
		}
		return out, nil
	}
	hash, err := git("rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		if _, again := git("rev-parse", "--git-dir"); again != nil {
			return fail(again)
		}
		return fail(errors.New("no such revision in the repository; fetch it, or check the spelling"))
	}
	prefix, err := git("rev-parse", "--show-prefix")
	if err != nil {
		return fail(err)
	}
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return fail(err)
	}
	in = strings.TrimSuffix(string(top), "\n") // below it, archive looks for the folder twice
	commit := strings.TrimSpace(string(hash))
	folder := path.Clean(strings.TrimSuffix(string(prefix), "\n"))
	module, files := folder, []string{"."}
	for at := folder; ; at = path.Dir(at) {
		if _, err := git("cat-file", "-e", commit+":"+path.Join(at, "cue.mod/module.cue")); err == nil {
			module = at
			break
		}
		if at == "." {
			break
		}
	}
	below, err := filepath.Rel(module, folder)
	if err != nil {
		return fail(err)
	}
	if below != "." {
		files = []string{below, ":(glob)**/*.cue"}
	}
	root := commit + ":" + strings.TrimPrefix(module+"/", "./")
	var archive []byte
	// archive refuses a folder that the revision does not have.
	if present, err := git("ls-tree", "-r", "--name-only", root, "--", files[0]); err == nil && len(present) > 0 {
		if archive, err = git(append([]string{"archive", "--format=tar", root, "--"}, files...)...); err != nil {
			return fail(err)
		}
	}
	out, err := os.MkdirTemp("", "yoctune-review-*")
	if err != nil {
		return fail(err)
	}
	err = os.MkdirAll(filepath.Join(out, below), 0o755)
	if err == nil {
		err = unpack(archive, out)
	}
	if err != nil {
		return fail(errors.Join(err, os.RemoveAll(out)))
	}
	return filepath.Join(out, below), func() error { return os.RemoveAll(out) }, nil
}

// unpack writes the regular files of an archive below a folder, and nothing else.
func unpack(archive []byte, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var total int64
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if total += h.Size; total > maxSnapshot {
			return fmt.Errorf("the folder holds more than %d MiB", maxSnapshot>>20)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(filepath.Dir(h.Name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(h.Name, data, 0o600); err != nil {
			return err
		}
	}
}
