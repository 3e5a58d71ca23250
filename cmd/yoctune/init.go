package main

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/importer"
	"github.com/yoctune/yoctune/compiler/language/scaffold"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
)

func newInitCommand() *cobra.Command {
	var o scaffold.Options
	var own scaffold.Own
	var boardFile string
	var force bool
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a project that builds",
		Long: `Create a project in DIR (default: the current folder): a small configuration, a README,
checks for GitHub and GitLab, and the definitions of the language below cue.mod, which
cue and editors need to understand the configuration without a network. A Jsonnet project
has yoctune.libsonnet instead, with units and helpers.

The checks install yoctune from the archive of a release. Give its address and SHA-256 with
--archive and --sha256, or set YOCTUNE_ARCHIVE and YOCTUNE_SHA256 as variables of the CI.

For a board without facts give the board file that "yoctuned probe --board-file" wrote on it, and its
MACHINE. The kernel is linux-yocto in the version that the device runs, unless --kernel and
--kernel-version name another.

In a subfolder of a git repository the checks go to the root of the repository, where CI
reads them, and name the subfolder. A file that is there already stays as it is; the
command then states where the checks are and how to include them.

The folder must be empty, unless --force is given: then existing files are kept, and only
the definitions are updated.

Exit status: 0 done, 1 the folder is not empty, 2 wrong usage.`,
		Example: `  yoctune init meta-camera --board orin-nano-8gb --release scarthgap
  yoctune init meta-camera --language jsonnet
  yoctune init meta-gateway --board-file gateway.json --machine acme-gateway
  yoctune init meta-camera --archive https://mirror.example.com/yoctune-0.2.0-linux-amd64.tar.gz --sha256 SUM
  yoctune init . --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if err := readOwnBoard(cmd, &o, &own, boardFile); err != nil {
				return err
			}
			return initProject(cmd, dir, o, force)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Board, "board", "orin-nano-8gb", "`BOARD` of the target: a Jetson module; 'yoctune facts list' shows them")
	f.StringVar(&boardFile, "board-file", "", "board `FILE` of a board of your own, in place of --board")
	f.StringVar(&own.Machine, "machine", "", "`MACHINE` of a board of your own")
	f.StringVar(&own.Recipe, "kernel", "", "`RECIPE` of its kernel (default: linux-yocto)")
	f.StringVar(&own.Version, "kernel-version", "", "`VERSION` of its kernel, such as 6.6 (default: that of the device)")
	f.StringVar(&o.Release, "release", "scarthgap", "`RELEASE` of meta-tegra: the name of a branch")
	f.StringVar(&o.Name, "name", "", "`NAME` for layer.name (default: that of the folder)")
	f.StringVar(&o.Maintainer, "maintainer", importer.Nobody, "`PERSON` for layer.maintainer, as \"Name <mail>\"")
	f.StringVar(&o.Language, "language", "cue", "`LANGUAGE` of the configuration: cue, hcl or jsonnet")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("language", cobra.FixedCompletions(scaffold.Languages(), cobra.ShellCompDirectiveNoFileComp)))
	f.StringVar(&o.Archive, "archive", "", "`ADDRESS` of the archive of yoctune that CI installs")
	f.StringVar(&o.SHA256, "sha256", "", "`SUM` of the archive: its SHA-256 in hexadecimal")
	f.BoolVar(&o.PreCommit, "pre-commit", false, "write hooks for pre-commit too")
	f.BoolVar(&force, "force", false, "write into a folder that is not empty")
	return cmd
}

// readOwnBoard reads the board file of a board of one's own.
func readOwnBoard(cmd *cobra.Command, o *scaffold.Options, own *scaffold.Own, file string) error {
	if file == "" {
		for _, flag := range []string{"machine", "kernel", "kernel-version"} {
			if cmd.Flags().Changed(flag) {
				return cli.UsageError(fmt.Errorf("--%s is for a board of your own: give its --board-file too", flag))
			}
		}
		return nil
	}
	if cmd.Flags().Changed("board") {
		return cli.UsageError(errors.New("--board and --board-file exclude each other"))
	}
	if own.Machine == "" {
		return cli.UsageError(errors.New("--board-file needs --machine: the MACHINE of the board in your BSP layer"))
	}
	data, err := infile.Read(file, boardfile.MaxSize)
	if err != nil {
		return err
	}
	own.Name, own.File = file, data
	o.Own, o.Board = own, scaffold.OwnBoard
	return nil
}

// adopt describes how the user adds a file of the checks to their own.
func adopt(f scaffold.File, below string) string {
	spare := path.Join(below, f.Spare)
	if f.Path == ".gitlab-ci.yml" {
		return "add to it: include: [{local: /" + spare + "}]"
	}
	return "add the hooks of " + spare + " to it"
}

func initProject(cmd *cobra.Command, dir string, o scaffold.Options, force bool) error {
	if o.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("finding the project's folder: %w", err)
		}
		o.Name = importer.LayerName(strings.TrimPrefix(filepath.Base(abs), "meta-"))
	}
	if valid := importer.LayerName(o.Name); valid != o.Name {
		return cli.UsageError(fmt.Errorf("--name %q: the name of a layer has lower-case letters, digits and -, and begins with a letter; for example --name %s", o.Name, valid))
	}
	if o.Maintainer == "" || strings.ContainsFunc(o.Maintainer, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return cli.UsageError(fmt.Errorf("--maintainer %q: write it as \"Name <mail>\"", o.Maintainer))
	}
	above, below := scaffold.Repository(dir)
	o.Below = below
	files, err := scaffold.Files(o)
	if err != nil {
		if errors.Is(err, scaffold.ErrUnknown) || errors.Is(err, scaffold.ErrSource) || errors.Is(err, scaffold.ErrFolder) {
			return cli.UsageError(err)
		}
		return err
	}
	written, err := scaffold.Write(dir, above, files, force)
	if err != nil {
		if errors.Is(err, scaffold.ErrNotEmpty) {
			return fmt.Errorf("%w; choose another folder, or add to it with --force", err)
		}
		return err
	}
	if lacking := o.LackingKernel(); lacking != "" {
		cli.Warn(cmd, "%s (--kernel-version, --kernel)", lacking)
	}
	p := cli.NewPrinter(cmd)
	if p.JSON {
		for _, name := range written.Files {
			p.Line("written", struct {
				Path string `json:"path"`
			}{name})
		}
		for _, f := range written.Taken {
			p.Line("taken", struct {
				Path  string `json:"path"`
				Spare string `json:"spare"`
			}{path.Join(filepath.ToSlash(above), f.Path), f.Spare})
		}
		p.Summary("init", struct {
			Dir     string `json:"dir"`
			Written int    `json:"written"`
		}{dir, len(written.Files)})
		return nil
	}
	p.Printf("%s: wrote %s for %s on %s\n", dir, count(len(written.Files), "file"), o.Board, o.Release)
	for _, name := range written.Files {
		if below != "" && strings.HasPrefix(name, "../") {
			p.Printf("checks: %s, at the root of the repository\n", filepath.Join(dir, filepath.FromSlash(name)))
		}
	}
	for _, f := range written.Taken {
		p.Printf("checks: %s is yours and unchanged; to have the checks, %s\n", filepath.Join(dir, above, f.Path), adopt(f, below))
	}
	p.Printf("next: yoctune build %s -o %s\n", shellWord(dir), shellWord(filepath.Join(dir, "layer")))
	return nil
}
