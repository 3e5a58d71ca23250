// Package scaffold makes the files of a new project: a configuration that builds
// at once, the definitions that editors need, and the checks for CI.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"cuelang.org/go/cue/literal"

	"github.com/yoctune/yoctune/compiler/language/jsonnet"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/schema"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
)

//go:embed project/*.tmpl project/yoctune.libsonnet
var templates embed.FS

// ErrNotEmpty is returned when the folder of a new project is not empty.
var ErrNotEmpty = errors.New("the folder is not empty")

// ErrUnknown is returned for an unknown board or release.
var ErrUnknown = errors.New("not known")

// Options describe a new project.
type Options struct {
	Board      string
	Release    string
	Name       string // of the layer
	Maintainer string // "Name <mail>"
	Language   string // "cue" when empty, "hcl" or "jsonnet"

	// Where CI installs yoctune from: the address of a release's archive and its digest.
	// Empty: variables of the CI give them.
	Archive, SHA256 string
	PreCommit       bool // also hooks for pre-commit
}

var (
	// The address is written into YAML and into an expression of GitHub, in quotes.
	archiveAddress = regexp.MustCompile(`^[A-Za-z0-9._~:/?@!$&()*+,;=%-]+$`)
	digest         = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// ErrSource is returned for an archive that CI cannot install from.
var ErrSource = errors.New("not an archive with its digest")

func (o Options) checkSource() error {
	switch {
	case o.Archive == "" && o.SHA256 == "":
		return nil
	case !archiveAddress.MatchString(o.Archive):
		return fmt.Errorf("%w: %q is not an https address", ErrSource, o.Archive)
	case !digest.MatchString(o.SHA256):
		return fmt.Errorf("%w: %q is not a SHA-256 in hexadecimal", ErrSource, o.SHA256)
	}
	return nil
}

// Languages lists what a project can be written in, the usual one first.
func Languages() []string { return []string{"cue", "hcl", "jsonnet"} }

// File is a file of a project.
type File struct {
	Path string // with slashes, below the project's folder
	Text []byte
	Keep bool // the user's own once it exists
}

// Files makes the files of a project. The error wraps [ErrUnknown] when board and
// release do not exist or do not go together.
func Files(o Options) ([]File, error) {
	b, ok := board.Lookup(o.Board)
	if !ok {
		return nil, fmt.Errorf("board %q is %w: choose one of %s", o.Board, ErrUnknown, strings.Join(board.IDs(), ", "))
	}
	r, ok := release.Lookup(o.Release)
	if !ok {
		return nil, fmt.Errorf("release %q is %w: choose one of %s", o.Release, ErrUnknown, strings.Join(release.Names(), ", "))
	}
	if _, ok := b.Releases[r.Name]; !ok {
		can := slices.Sorted(maps.Keys(b.Releases))
		return nil, fmt.Errorf("board %s on release %s is %w: it runs on %s", b.ID, r.Name, ErrUnknown, strings.Join(can, ", "))
	}
	if o.Language == "" {
		o.Language = "cue"
	}
	if !slices.Contains(Languages(), o.Language) {
		return nil, fmt.Errorf("language %q is %w: choose one of %s", o.Language, ErrUnknown, strings.Join(Languages(), ", "))
	}
	if err := o.checkSource(); err != nil {
		return nil, err
	}
	data := struct {
		Options
		Package, Module, Enable string
	}{o, packageName(o.Name), "example.com/" + o.Name + "@v0", "require conf/yoctune/" + o.Name + ".conf        (in conf/local.conf)"}
	if r.Fragments {
		data.Enable = fmt.Sprintf("bitbake-config-build enable-fragment %s/%s", o.Name, o.Name)
	}
	t, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{"quote": literal.String.Quote, "quoteHCL": quoteHCL, "quoteJsonnet": quoteJsonnet}).ParseFS(templates, "project/*")
	if err != nil {
		return nil, fmt.Errorf("making the project: %w", err)
	}
	type made struct {
		path, template string
		keep           bool
	}
	own := []made{{"config.cue", "config.cue.tmpl", true}, {"cue.mod/module.cue", "module.cue.tmpl", true}}
	switch o.Language {
	case "hcl":
		own = []made{{"config.hcl", "config.hcl.tmpl", true}}
	case "jsonnet":
		own = []made{{"config.jsonnet", "config.jsonnet.tmpl", true}, {jsonnet.Library, jsonnet.Library, false}}
	}
	var files []File
	own = append(own, []made{
		{"README.md", "README.md.tmpl", true},
		{".gitignore", "gitignore.tmpl", true},
		{".ci/install-yoctune.sh", "install-yoctune.sh.tmpl", true},
		{".github/workflows/yoctune.yml", "github.yml.tmpl", true},
		{".gitlab-ci.yml", "gitlab.yml.tmpl", true},
	}...)
	if o.PreCommit {
		own = append(own, made{".pre-commit-config.yaml", "pre-commit.yml.tmpl", true})
	}
	for _, f := range own {
		var w strings.Builder
		if err := t.ExecuteTemplate(&w, f.template, data); err != nil {
			return nil, fmt.Errorf("making %s: %w", f.path, err)
		}
		files = append(files, File{f.path, []byte(w.String()), f.keep})
	}
	if o.Language != "cue" {
		return files, nil
	}
	// cue and editors look for the language's definitions there.
	return append(files, definitions(path.Join("cue.mod/pkg", schema.ImportPath))...), nil
}

// SchemaModule returns the files of the language as a CUE module, which
// "cue mod publish" takes.
func SchemaModule() []File {
	return append(definitions("."), File{Path: "cue.mod/module.cue", Text: schema.ModuleFile})
}

// definitions returns the files of the language in a folder.
func definitions(folder string) (files []File) {
	for _, f := range schema.Files() {
		files = append(files, File{Path: path.Join(folder, f.Name), Text: f.Text})
	}
	return files
}

// quoteHCL writes text so that HCL takes no part of it for a template.
func quoteHCL(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(literal.String.Quote(s))
}

// quoteJsonnet writes text in the quotes that jsonnetfmt prefers.
func quoteJsonnet(s string) string {
	if strings.Contains(s, "'") {
		return literal.String.Quote(s)
	}
	return "'" + strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(literal.String.Quote(s), `"`), `"`), `\"`, `"`) + "'"
}

func packageName(layer string) string {
	switch name := strings.ReplaceAll(layer, "-", "_"); name {
	case "for", "if", "in", "let", "package", "import", "func", "true", "false", "null":
		return name + "_layer"
	default:
		return name
	}
}

// Write puts the files into a folder, which must be empty unless force is given:
// then what the user may have changed is kept, and the rest renewed. It returns
// the files that were written.
func Write(dir string, files []File, force bool) ([]string, error) {
	if err := outfile.CheckFolder(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("making the project: %w", err)
	}
	if !force {
		for _, e := range entries {
			if e.Name() != ".git" {
				return nil, fmt.Errorf("%s: %w: it holds %s", dir, ErrNotEmpty, e.Name())
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the project: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("making the project: %w", err)
	}
	defer root.Close()
	var written []string
	for _, f := range files {
		name := filepath.FromSlash(f.Path)
		if was, err := infile.ReadIn(root, name, load.MaxSource); err == nil && (f.Keep || string(was) == string(f.Text)) {
			continue
		}
		// The root refuses folders that are links to somewhere else.
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return written, fmt.Errorf("making %s: %w", f.Path, err)
		}
		if err := tree.WriteFile(filepath.Join(dir, name), f.Text); err != nil {
			return written, err
		}
		written = append(written, f.Path)
	}
	return written, nil
}
