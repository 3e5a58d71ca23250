package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/internal/outfile"
)

type reviewOptions struct {
	compiler.Selection
	rev, against, html string
	exitCode           bool
}

func newReviewCommand() *cobra.Command {
	var o reviewOptions
	cmd := &cobra.Command{
		Use:         "review DIR [LAYER]",
		Annotations: map[string]string{moreFormats: "markdown"},
		Short:       "Explain what a change of the configuration means for the devices",
		Long: `Compare the layer that the configuration in DIR gives with an earlier one, and
say for each target what changes on the device, which recipes are built again,
whether the device needs a reboot or a new image, what can go wrong, and which
line of the configuration caused it.

The earlier layer is the folder LAYER, or --rev, the configuration as it was in a
revision of git, or --against, another target of the same configuration.`,
		Example: `  yoctune review . build/meta-vision
  yoctune review . --rev origin/main --format markdown
  yoctune review . --target lab --against factory --html review.html`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := formatOf(cmd)
			if err != nil {
				return err
			}
			r, err := reviewed(cmd, args, format, o)
			if err != nil {
				return err
			}
			return showReview(cmd, r, format, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Target, "target", "", "only this `TARGET`")
	f.StringVar(&o.Release, "release", "", "only the targets of this `RELEASE`")
	variables(cmd)
	f.StringVar(&o.html, "html", "", "write one page with everything to `FILE`")
	comparisonFlags(cmd, &o)
	return cmd
}

// comparisonFlags say what to compare with.
func comparisonFlags(cmd *cobra.Command, o *reviewOptions) {
	f := cmd.Flags()
	f.StringVar(&o.rev, "rev", "", "compare with the configuration in `REVISION` of git")
	f.StringVar(&o.against, "against", "", "compare with `TARGET` of the same configuration")
	f.BoolVar(&o.exitCode, "exit-code", false, "exit with 3 when there are differences")
}

var errNothingToCompare = errors.New("give what to compare with: the folder of a layer, --rev or --against")

func showReview(cmd *cobra.Command, r *review.Review, format string, o reviewOptions) error {
	if o.html != "" {
		var page bytes.Buffer
		if err := r.WriteHTML(&page); err != nil {
			return err
		}
		if err := outfile.Write(o.html, page.Bytes()); err != nil {
			return err
		}
	}
	write := r.WriteText
	switch format {
	case "json":
		write = r.WriteJSON
	case "markdown":
		write = r.WriteMarkdown
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if o.exitCode && !r.Clean() {
		return errDifferent
	}
	return nil
}

func reviewed(cmd *cobra.Command, args []string, format string, o reviewOptions) (*review.Review, error) {
	given := 0
	for _, set := range []bool{len(args) == 2, o.rev != "", o.against != ""} {
		if set {
			given++
		}
	}
	if given != 1 {
		return nil, usageError{errNothingToCompare}
	}
	if o.against != "" && o.Target == "" {
		return nil, usageError{errors.New("--against compares two targets: name the other with --target")}
	}
	now, err := openOne(cmd, args[0], format, o.Selection)
	if err != nil {
		return nil, err
	}
	switch {
	case o.rev != "":
		dir, err := atRevision(cmd, args[0], o.rev)
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		was, err := openOne(cmd, dir, format, o.Selection)
		if err != nil {
			return nil, fmt.Errorf("the configuration at %s: %w", o.rev, err)
		}
		return review.Compare(sideOf(was, o.rev), sideOf(now, args[0]), false)
	case o.against != "":
		was, err := openOne(cmd, args[0], format, compiler.Selection{Target: o.against})
		if err != nil {
			return nil, err
		}
		return review.Compare(sideOf(was, "target "+o.against), sideOf(now, "target "+o.Target), true)
	}
	c, err := earlier(args[1], now)
	if err != nil {
		return nil, err
	}
	return review.Compare(committed(c), sideOf(now, args[0]), false)
}

// earlier compares a layer with the folder of an earlier one. A folder of something
// else, such as the configuration's, would look like a layer that is all new.
func earlier(dir string, now compiler.Layer) (*tree.Comparison, error) {
	c, err := tree.Compare(dir, now.Files)
	if err == nil && c.Strange {
		err = fmt.Errorf("%s holds no %s, so no layer of yoctune; name the folder that `yoctune build` wrote, or one that is not there yet", dir, manifest.Name)
	}
	return c, err
}

// openOne makes the one layer of a selection.
func openOne(cmd *cobra.Command, dir, format string, sel compiler.Selection) (compiler.Layer, error) {
	_, layers, err := open(cmd, dir, format, sel)
	if err != nil {
		return compiler.Layer{}, err
	}
	return layers[0], nil
}

func sideOf(l compiler.Layer, label string) review.Side {
	return review.Side{Label: label, Files: l.Files, Origins: l.Origins}
}

// committed is the layer as it lies in a folder.
func committed(c *tree.Comparison) review.Side {
	return review.Side{Label: c.Out, Files: c.Before()}
}

// maxSnapshot bounds what a revision's configuration may hold, in bytes.
const maxSnapshot = 256 << 20

// atRevision puts the folder as it was in a revision into a temporary one.
func atRevision(cmd *cobra.Command, dir, rev string) (string, error) {
	in := dir
	git := func(args ...string) ([]byte, error) {
		var stderr bytes.Buffer
		c := exec.CommandContext(cmd.Context(), "git", append([]string{"-C", in}, args...)...)
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil {
			if said := strings.TrimSpace(stderr.String()); said != "" {
				err = errors.New(said)
			}
			return nil, fmt.Errorf("--rev %s: git: %w", rev, err)
		}
		return out, nil
	}
	hash, err := git("rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		if _, again := git("rev-parse", "--git-dir"); again != nil {
			return "", again
		}
		return "", fmt.Errorf("--rev %s: the repository has no such revision; fetch it, or check the spelling", rev)
	}
	prefix, err := git("rev-parse", "--show-prefix")
	if err != nil {
		return "", err
	}
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	in = strings.TrimSuffix(string(top), "\n") // below it, archive looks for the folder twice
	archive, err := git("archive", "--format=tar", strings.TrimSpace(string(hash))+":"+strings.TrimSuffix(string(prefix), "\n"))
	if err != nil {
		return "", err
	}
	out, err := os.MkdirTemp("", "yoctune-review-*")
	if err != nil {
		return "", err
	}
	if err := unpack(archive, out); err != nil {
		return "", errors.Join(fmt.Errorf("--rev %s: %w", rev, err), os.RemoveAll(out))
	}
	return out, nil
}

// unpack writes the plain files of an archive below a folder, and nothing else.
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
