package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/importer"
	"github.com/yoctune/yoctune/compiler/language/scaffold"
	"github.com/yoctune/yoctune/internal/version"
)

func newInitCommand() *cobra.Command {
	var o scaffold.Options
	var force bool
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Start a project that builds at once",
		Long: `Write a small configuration, a README, checks for GitHub and GitLab, and the
language's definitions below cue.mod, so that cue and editors understand the
configuration without a network. A project in Jsonnet gets yoctune.libsonnet
instead, with units and helpers.

The folder must be empty. With --force it need not be: files that are yours by now
are kept, and the definitions are brought up to date.

Exit status: 0 done, 1 the folder is not empty, 2 usage.`,
		Example: `  yoctune init meta-camera --board orin-nano-8gb --release scarthgap
  yoctune init meta-camera --language jsonnet
  yoctune init . --force`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runInit(cmd, args[0], o, force)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Board, "board", "orin-nano-8gb", "`BOARD`: a module")
	f.StringVar(&o.Release, "release", "scarthgap", "`RELEASE`: a meta-tegra branch")
	f.StringVar(&o.Name, "name", "", "`NAME` for layer.name; the folder's when absent")
	f.StringVar(&o.Maintainer, "maintainer", importer.Nobody, "layer.maintainer: `PERSON`, as \"Name <mail>\"")
	f.StringVar(&o.Language, "language", "cue", "`LANGUAGE`: cue, hcl or jsonnet")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("language", cobra.FixedCompletions(scaffold.Languages(), cobra.ShellCompDirectiveNoFileComp)))
	f.BoolVar(&force, "force", false, "write into a folder that is not empty")
	return cmd
}

func runInit(cmd *cobra.Command, dir string, o scaffold.Options, force bool) error {
	format, err := formatOf(cmd)
	if err != nil {
		return err
	}
	if o.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("the project's folder: %w", err)
		}
		o.Name = importer.LayerName(strings.TrimPrefix(filepath.Base(abs), "meta-"))
	}
	if importer.LayerName(o.Name) != o.Name {
		return usageError{fmt.Errorf("--name %s: a layer's name is lower-case letters, digits and -, beginning with a letter", o.Name)}
	}
	if o.Maintainer == "" || strings.ContainsFunc(o.Maintainer, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return usageError{fmt.Errorf("--maintainer %q: write it as \"Name <mail>\"", o.Maintainer)}
	}
	o.Version = "v" + version.Version
	files, err := scaffold.Files(o)
	if err != nil {
		if errors.Is(err, scaffold.ErrUnknown) {
			return usageError{err}
		}
		return err
	}
	written, err := scaffold.Write(dir, files, force)
	if err != nil {
		if errors.Is(err, scaffold.ErrNotEmpty) {
			return fmt.Errorf("%w; choose another folder, or write into it with --force", err)
		}
		return err
	}
	if format == "json" {
		for _, name := range written {
			writeJSONLine(cmd.OutOrStdout(), struct {
				Type string `json:"type"`
				Path string `json:"path"`
			}{"written", name})
		}
		writeJSONLine(cmd.OutOrStdout(), struct {
			Type    string `json:"type"`
			Command string `json:"command"`
			Dir     string `json:"dir"`
			Written int    `json:"written"`
		}{"summary", "init", dir, len(written)})
		return nil
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s for %s on %s written\nnext: yoctune build %s -o %s\n",
		dir, count(len(written), "file"), o.Board, o.Release, dir, filepath.Join(dir, "layer"))
	return nil
}
