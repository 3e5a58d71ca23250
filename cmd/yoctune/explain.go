package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/knob"
)

func newExplainCommand() *cobra.Command {
	var dir string
	var list bool
	cmd := &cobra.Command{
		Use:   "explain ID|PATH|FILE:LINE",
		Short: "Explain a diagnostic, a rule, or a field of the configuration",
		Long: `Explain one of
  a diagnostic or a rule   such as YT0103 or tcp-cc-bbr
  a field                  such as targets.cam.sysctl."vm.swappiness": its value and the
                           line that set it, what it replaced, the range the kernel
                           accepts, side effects, and the settings and files made from it
  a line                   such as config.cue:12: the fields that are set there
  a name of the facts      such as vm.swappiness, where the configuration does not set it

Fields are looked up in the configuration of --dir. Lines are looked up in the folder of
FILE, or with --dir in a configuration that imports FILE from its module.

With --list the command lists what can be explained: all of it, or only the diagnostics,
the rules, or the paths of the fields that the configuration sets.`,
		Example: `  yoctune explain YT0105
  yoctune explain targets.line-camera.sysctl.vm.swappiness --dir examples/video-analytics
  yoctune explain examples/video-analytics/config.cue:22
  yoctune explain --list rules`,
		ValidArgsFunction: func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			ids := compiler.PageIDs()
			return slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, toComplete) }), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return listTopics(cmd, args, dir)
			}
			if page, ok := compiler.Page(args[0]); ok {
				showPage(cmd, page)
				return nil
			}
			if looksLikeID(args[0]) && !hasFacts(args[0]) {
				return newUnknownTopic(args[0], compiler.PageIDs())
			}
			if m := placePattern().FindStringSubmatch(args[0]); m != nil {
				return explainLine(cmd, dir, m[1], m[2], args[0])
			}
			folder, err := folderOf(dir)
			if err != nil {
				return err
			}
			return explainField(cmd, folder, args[0])
		},
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case !list && len(args) == 0:
				return errors.New("missing argument: ID|PATH|FILE:LINE; --list shows what can be explained")
			case len(args) > 1:
				return fmt.Errorf("unexpected argument %q", args[1])
			case list && len(args) == 1 && !slices.Contains(topicKinds(), args[0]):
				return fmt.Errorf("--list %s: choose one of %s", args[0], strings.Join(topicKinds(), ", "))
			}
			return nil
		},
	}
	addVariableFlag(cmd)
	cmd.Flags().StringVar(&dir, "dir", ".", "`DIR` folder of the configuration")
	cmd.Flags().BoolVar(&list, "list", false, "list what can be explained: diagnostics, rules or paths")
	return cmd
}

// topicKinds are the lists of --list.
func topicKinds() []string { return []string{"diagnostics", "rules", "paths"} }

// topic is a line of --list.
type topic struct {
	Type  string `json:"type"` // diagnostic, rule, path
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
}

// listTopics lists what can be explained. The paths are those of the configuration in
// dir; without a configuration, the list of all topics omits them.
func listTopics(cmd *cobra.Command, kinds []string, dir string) error {
	all := len(kinds) == 0
	if all {
		kinds = topicKinds()
	}
	var topics []topic
	for _, id := range compiler.PageIDs() {
		kind := "rule"
		if strings.HasPrefix(id, "YT") {
			kind = "diagnostic"
		}
		if page, ok := compiler.Page(id); ok && slices.Contains(kinds, kind+"s") {
			topics = append(topics, topic{kind, id, page.Title})
		}
	}
	if slices.Contains(kinds, "paths") {
		p, err := openProject(cmd, dir)
		if err != nil && !all {
			return err
		}
		if err == nil {
			for _, path := range p.Paths() {
				topics = append(topics, topic{"path", path, ""})
			}
		}
	}
	p := cli.NewPrinter(cmd)
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, t := range topics {
		switch {
		case p.JSON:
			p.Encode(t)
		case t.Title == "":
			printable.Fprintf(w, "%s\n", t.ID)
		default:
			printable.Fprintf(w, "%s\t%s\n", t.ID, t.Title)
		}
	}
	if p.JSON {
		p.Summary(cmd.Name())
	}
	return w.Flush()
}

// newUnknownTopic returns the error about a word that names no topic.
func newUnknownTopic(word string, known []string) error {
	if key, ok := sysctl.Nearest(word); ok && strings.HasSuffix(key, "."+word) {
		return fmt.Errorf("no diagnostic, rule or field is called %q; did you mean the sysctl %q? 'yoctune facts show %s' describes it", word, key, key)
	}
	if near := diag.Nearest(word, known); near != "" {
		return fmt.Errorf("no diagnostic, rule or field is called %q; did you mean %q?", word, near)
	}
	return fmt.Errorf("no diagnostic, rule or field is called %q; 'yoctune explain --list' lists them", word)
}

// looksLikeID distinguishes a mistyped id from the path of a field.
func looksLikeID(s string) bool {
	return regexp.MustCompile(`^(YT[0-9]*|[a-z0-9]+(-[a-z0-9]+)+)$`).MatchString(s)
}

// placePattern matches FILE:LINE and FILE:LINE:COLUMN.
func placePattern() *regexp.Regexp {
	return regexp.MustCompile(`^(.+\.(?:cue|hcl|jsonnet|libsonnet)):([0-9]+)(?::[0-9]+)?$`)
}

func showPage(cmd *cobra.Command, page diag.Explanation) {
	w := cli.NewPrinter(cmd)
	if w.JSON {
		w.Line("explanation", page)
		w.Summary(cmd.Name())
		return
	}
	fmt.Fprintf(w, "%s: %s\n", page.ID, page.Title)
	if page.Severity != "" {
		fmt.Fprintf(w, "severity: %s\n", page.Severity)
	}
	fmt.Fprintf(w, "\n%s\n\nWhat to do: %s\n", page.Cause, page.Fix)
	for _, example := range []struct{ label, text string }{{"Wrong", page.Wrong}, {"Right", page.Right}} {
		if example.text != "" {
			fmt.Fprintf(w, "\n%s:\n    %s\n", example.label, strings.ReplaceAll(example.text, "\n", "\n    "))
		}
	}
	if page.See != "" {
		fmt.Fprintf(w, "\nSee: %s\n", page.See)
	}
}

// explainLine explains the fields that are set on a line of a file. arg is the argument as
// the user wrote it.
func explainLine(cmd *cobra.Command, dir, file, line, arg string) error {
	folders := []string{dir}
	if !cmd.Flags().Changed("dir") {
		// The file may be of a package that the configuration in the current folder imports.
		folders = []string{filepath.Dir(file), dir}
	}
	first := error(nil)
	for i, folder := range folders {
		name := file
		if rel, err := filepath.Rel(folder, file); err == nil && (filepath.IsLocal(rel) || exists(file)) {
			name = filepath.ToSlash(rel)
		}
		folder, err := folderOf(folder)
		if err != nil {
			return err
		}
		p, err := openProject(cmd, folder)
		if err == nil {
			if paths := p.PathsAt(name + ":" + line); len(paths) > 0 {
				return explainPaths(cmd, p, folder, paths)
			}
			err = fmt.Errorf("no field of the configuration is set at %s%s", arg, describeNearLines(p, name, line))
		}
		if i == 0 {
			first = err
		}
	}
	return first
}

// describeNearLines names the lines around one on which fields are set.
func describeNearLines(p *compiler.Project, file, line string) string {
	number, err := strconv.Atoi(line)
	lines := p.LinesOf(file)
	if err != nil || len(lines) == 0 {
		return ""
	}
	i, _ := slices.BinarySearch(lines, number)
	var near []string
	for _, at := range lines[max(i-1, 0):min(i+1, len(lines))] {
		near = append(near, strconv.Itoa(at))
	}
	return "; the nearest lines that set one: " + strings.Join(near, " and ")
}

// hasFacts reports whether there are facts about a name.
func hasFacts(name string) bool {
	_, isBoard := board.Lookup(name)
	_, isRelease := release.Lookup(name)
	_, isSysctl := sysctl.Lookup(name)
	return isBoard || isRelease || isSysctl
}

// explainFacts explains a name that the configuration in dir does not have, from the facts.
func explainFacts(cmd *cobra.Command, dir, name string) error {
	p := cli.NewPrinter(cmd)
	if err := showFacts(p, name); err != nil || p.JSON {
		return err
	}
	if _, isSysctl := sysctl.Lookup(name); isSysctl {
		p.Printf("\nThe configuration in %s does not set it; sysctl: %q: VALUE of a target or a profile would.\n", dir, name)
	}
	return nil
}

// explainField explains a field by its path.
func explainField(cmd *cobra.Command, dir, path string) error {
	p, err := openProject(cmd, dir)
	if err != nil && hasFacts(path) {
		return showFacts(cli.NewPrinter(cmd), path)
	}
	if err != nil {
		if key, ok := sysctl.Nearest(path); ok && strings.Contains(path, ".") && !cmd.Flags().Changed("dir") {
			return fmt.Errorf("%w; did you mean the sysctl %q?", err, key)
		}
		if !strings.ContainsAny(path, ".:") { // a word alone is a valid path, but is rarely meant as one
			return newUnknownTopic(path, compiler.PageIDs())
		}
		return err
	}
	err = explainPaths(cmd, p, dir, []string{path})
	if errors.Is(err, compiler.ErrNoField) && hasFacts(path) {
		return explainFacts(cmd, dir, path)
	}
	if errors.Is(err, compiler.ErrNoField) && strings.Contains(path, ".") {
		if key, ok := sysctl.Nearest(path); ok {
			return fmt.Errorf("%w; did you mean the sysctl %q?", err, key)
		}
	}
	if errors.Is(err, compiler.ErrNoField) && !strings.ContainsAny(path, ".:") {
		known := compiler.PageIDs()
		for _, path := range p.Paths() {
			field, _, _ := strings.Cut(path, ".")
			known = append(known, field)
		}
		return newUnknownTopic(path, known)
	}
	return err
}

func explainPaths(cmd *cobra.Command, p *compiler.Project, dir string, paths []string) error {
	w := cli.NewPrinter(cmd)
	for i, path := range paths {
		a, err := p.Explain(path)
		if err != nil {
			return err
		}
		if a.Pos != nil { // relative to the current folder, so that an editor opens it
			*a.Pos = diag.PrefixPath(pathFromCurrentDir(dir), *a.Pos)
		}
		if w.JSON {
			w.Line("account", a)
			continue
		}
		if i > 0 {
			w.Printf("\n")
		}
		showAccount(w, a)
	}
	if w.JSON {
		w.Summary(cmd.Name())
	}
	return nil
}

func showAccount(w cli.Printer, a compiler.Account) {
	w.Printf("%s\n", a.Path)
	line := func(label, text string) {
		if text != "" {
			w.Printf("  %-10s %s\n", label, text)
		}
	}
	line("", a.Doc)
	line("takes", a.Expected)
	line("value", a.Value)
	if a.Pos != nil {
		place := compiler.FormatPosition(*a.Pos)
		if a.Profile != "" {
			place += ", profile " + a.Profile
		}
		line("set at", place)
	} else {
		line("set at", "nowhere in this configuration")
	}
	for _, list := range []struct {
		label string
		texts []string
	}{{"replaces", a.Replaced}, {"facts", a.Notes}, {"implies", a.Implies}, {"touches", a.Touches}} {
		for _, text := range list.texts {
			line(list.label, text)
		}
	}
	line("kernel", a.Kernel)
	for _, s := range a.Settings {
		where := s.Select.Path
		if where == "" {
			where = strings.Join(strings.Fields(s.Select.Class+" "+s.Select.Name+s.Select.OFNode+" "+s.Select.Attr), " ")
		}
		line("setting", fmt.Sprintf("%s = %s (%s, %s)", where, knob.Show(s.Type, s.Want), s.Policy, s.ID))
	}
	for _, f := range a.Files {
		line("file", f)
	}
	line("see", a.See)
	for _, r := range a.Rules {
		line("findings", r)
	}
}
