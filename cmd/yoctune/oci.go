package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/layer/oci"
	"github.com/yoctune/yoctune/compiler/layer/sign"
	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/signature"
)

func newPushCommand() *cobra.Command {
	var o oci.Options
	cmd := &cobra.Command{
		Use:   "push LAYER REFERENCE",
		Short: "Publish a layer to an OCI registry",
		Long: `Publish the layer in the folder LAYER as an OCI artifact, with the signatures of its
plans. A file that was edited by hand stops the upload. The command prints the reference
with its digest, which identifies the content; the same layer has the same digest.

Credentials are those of docker ('docker login', or $DOCKER_CONFIG/config.json).`,
		Example: `  yoctune push build/meta-vision registry.example.com/layers/meta-vision:1.4`,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := tree.Read(args[0])
			if err != nil {
				return err
			}
			plans, err := sign.Find(args[0])
			if err != nil {
				return err
			}
			for _, p := range plans {
				if len(p.Keys) == 0 {
					continue
				}
				if _, err := p.Verify(nil); err != nil {
					cli.Warn(cmd, "%v; the devices of target %s will refuse it", err, p.Doc.Target)
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			doc := plans[0].Doc
			pinned, err := oci.Push(ctx, oci.Layer{Name: doc.Layer, Release: doc.Release, Files: files}, args[1], o)
			if err != nil {
				return err
			}
			showArtifact(cmd, pinned, len(files))
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.PlainHTTP, "plain-http", false, "use HTTP without TLS, even to another machine")
	return cmd
}

func newPullCommand() *cobra.Command {
	var o oci.Options
	cmd := &cobra.Command{
		Use:   "pull REFERENCE DIR",
		Short: "Fetch a layer from an OCI registry",
		Long: `Fetch a layer that "yoctune push" published, and write it to the folder DIR. Before
anything is written, the command checks digests, paths, and every file against the
manifest of the layer. As with build, files that yoctune did not write are kept, and a
file that was edited by hand stops the command.

A reference with a digest (name@sha256:…) always gives the same layer; a tag may move.
Plan signatures prove who published the layer: yoctune sign DIR --verify --public KEY.`,
		Example: `  yoctune pull registry.example.com/layers/meta-vision@sha256:… meta-vision`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			l, pinned, err := oci.Pull(ctx, args[0], o)
			if err != nil {
				return err
			}
			var files, signatures []emitters.File
			for _, f := range l.Files {
				if strings.HasSuffix(f.Path, signature.Extension) {
					signatures = append(signatures, f)
				} else {
					files = append(files, f)
				}
			}
			c, err := tree.Compare(args[1], files)
			if err != nil {
				return err
			}
			if len(c.Conflicts) > 0 {
				var all []error
				for _, k := range c.Conflicts {
					all = append(all, k)
				}
				return fmt.Errorf("%s: %w", args[1], errors.Join(all...))
			}
			if err := c.Write(ctx, false); err != nil {
				return err
			}
			for _, f := range signatures {
				if err := tree.WriteFile(filepath.Join(args[1], filepath.FromSlash(f.Path)), f.Data); err != nil {
					return err
				}
			}
			showArtifact(cmd, pinned, len(l.Files))
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.PlainHTTP, "plain-http", false, "use HTTP without TLS, even to another machine")
	return cmd
}

func showArtifact(cmd *cobra.Command, pinned string, files int) {
	p := cli.NewPrinter(cmd)
	if !p.JSON {
		p.Printf("%s (%s)\n", pinned, count(files, "file"))
		return
	}
	p.Summary(cmd.Name(), struct {
		Reference string `json:"reference"`
		Files     int    `json:"files"`
	}{pinned, files})
}
