// Package scaffold makes the files of a new project: a configuration that builds
// at once, the definitions that editors need, and the checks for CI.
package scaffold

import (
	"bytes"
	"cmp"
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
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/schema"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
)

//go:embed project/*.tmpl project/yoctune.libsonnet
var templates embed.FS

// ErrNotEmpty is returned when the folder of a new project is not empty.
var ErrNotEmpty = errors.New("the folder is not empty")

// ErrFolder is returned for a folder that CI cannot name.
var ErrFolder = errors.New("no place for a project")

// ErrUnknown is returned for an unknown board or release.
var ErrUnknown = errors.New("not known")

// Options describe a new project.
type Options struct {
	Board      string
	Release    string
	Name       string // of the layer
	Maintainer string // "Name <mail>"
	Language   string // "cue" when empty, "hcl" or "jsonnet"

	// Own describes a board without facts; nil for a module.
	Own *Own

	// Where CI installs yoctune from: the address of a release's archive and its digest.
	// Empty: variables of the CI give them.
	Archive, SHA256 string
	PreCommit       bool // also hooks for pre-commit

	// Below is the path of the project in its repository, with slashes; "" for its root. CI
	// reads its files at the root only.
	Below string
}

// Own is a board of one's own: a board file, as "yoctuned probe --board-file" wrote it, and what the
// device does not report about its build.
type Own struct {
	Name             string // of the file, for messages
	File             []byte
	Machine          string // MACHINE
	Recipe, Version  string // of the kernel; by default linux-yocto, and the version of the device
	Foreign, HasNVMe bool   // no program of the layer runs on it; it has such a disk
}

// LackingKernel describes why the release does not build the kernel of a board of one's own, "" if it may.
func (o Options) LackingKernel() string {
	r, _ := release.Lookup(o.Release)
	if o.Own == nil {
		return ""
	}
	have := r.KernelVersions(o.Own.Recipe)
	if len(have) == 0 || slices.Contains(have, o.Own.Version) {
		return ""
	}
	return fmt.Sprintf("%s of %s has %s, not %s: give one of its versions, or the kernel recipe of your layer", o.Own.Recipe, r.Name, strings.Join(have, " and "), o.Own.Version)
}

// A project's name for a board of one's own, and the path of its board file.
const (
	OwnBoard = "device"
	Facts    = "boards/device.json"
)

// complete checks a board of one's own, and fills in what the board file has.
func (o Options) complete(r release.Release) error {
	f, err := boardfile.Decode(o.Own.File)
	if err == nil {
		err = f.CheckUse()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.Own.Name, err)
	}
	if r.CoreBranch() != r.Name && r.Name != "master" {
		return fmt.Errorf("release %q is %w for a board of your own: choose a series of openembedded-core, such as %s", r.Name, ErrUnknown, r.CoreBranch())
	}
	if o.Own.Machine == "" {
		return fmt.Errorf("the MACHINE of the board is %w: give it", ErrUnknown)
	}
	if o.Own.Version == "" && f.Kernel != nil {
		o.Own.Version = f.Kernel.Version
	}
	if o.Own.Version == "" {
		return fmt.Errorf("the version of the kernel is %w: the board file lacks it, so give it", ErrUnknown)
	}
	o.Own.Recipe = cmp.Or(o.Own.Recipe, "linux-yocto")
	o.Own.Foreign = f.Arch != "" && f.Arch != "aarch64"
	o.Own.HasNVMe = slices.ContainsFunc(f.Block, func(b boardfile.Block) bool { return strings.HasPrefix(b.Name, "nvme") })
	return nil
}

// checkBoard checks that a board and a release exist and go together.
func (o Options) checkBoard() (release.Release, error) {
	r, ok := release.Lookup(o.Release)
	if !ok {
		return r, fmt.Errorf("release %q is %w: choose one of %s", o.Release, ErrUnknown, strings.Join(release.Names(), ", "))
	}
	if o.Own != nil {
		return r, o.complete(r)
	}
	b, ok := board.Lookup(o.Board)
	if !ok {
		return r, fmt.Errorf("board %q is %w: choose one of %s", o.Board, ErrUnknown, strings.Join(board.IDs(), ", "))
	}
	if _, ok := b.Releases[r.Name]; !ok {
		can := slices.Sorted(maps.Keys(b.Releases))
		if len(can) == 0 {
			return r, fmt.Errorf("board %s on release %s is %w: %s", b.ID, r.Name, ErrUnknown, b.WithoutRelease())
		}
		return r, fmt.Errorf("board %s on release %s is %w: it runs on %s", b.ID, r.Name, ErrUnknown, strings.Join(can, ", "))
	}
	return r, nil
}

var (
	// The address is written into YAML and into an expression of GitHub, in quotes. GitLab
	// would expand a $ in it.
	archiveAddress = lazyregexp.New(`^(https?://[A-Za-z0-9.-]+(:[0-9]+)?/[A-Za-z0-9._~:/?@&+,;=%-]+|[A-Za-z0-9._/][A-Za-z0-9._/+@-]*)$`)
	digest         = lazyregexp.New(`^[0-9a-f]{64}$`)
	// The path is an argument in the files of CI.
	plainPath = lazyregexp.New(`^([A-Za-z0-9._][A-Za-z0-9._+@ -]*(/|$))+$`)
)

// ErrSource is returned for an archive that CI cannot install from.
var ErrSource = errors.New("not an archive with its digest")

func (o Options) checkSource() error {
	switch {
	case o.Archive == "" && o.SHA256 == "":
		return nil
	case !archiveAddress.MatchString(o.Archive):
		return fmt.Errorf("%w: %q is not an address: write http:// or https:// with a host and no credentials, or the path of a file, in plain characters", ErrSource, o.Archive)
	case !strings.Contains(o.Archive, ".tar.gz") && !strings.Contains(o.Archive, ".tgz"):
		return fmt.Errorf("%w: %q is not a .tar.gz: give yoctune-VERSION-linux-amd64.tar.gz of a release", ErrSource, o.Archive)
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
	// Root is set for a file that belongs to the root of the repository, and Spare is where
	// it goes below the project instead when a file of the user's is there.
	Root  bool
	Spare string
	// marks are texts of which a user's file that has the checks holds one.
	marks []string
}

// project is what the templates show.
type project struct {
	Options
	Package, Module, Enable string
	Pattern                 string // Below as a regular expression
}

// In returns a file of the project, or "" for its folder, as an argument for a shell at
// the root of the repository.
func (p project) In(name string) string {
	word := path.Join(cmp.Or(p.Below, "."), name)
	if strings.Contains(word, " ") {
		return "'" + word + "'"
	}
	return word
}

// Files makes the files of a project. The error wraps [ErrUnknown] when board and
// release do not exist or do not go together.
func Files(o Options) ([]File, error) {
	r, err := o.checkBoard()
	if err != nil {
		return nil, err
	}
	if o.Language == "" {
		o.Language = "cue"
	}
	if !slices.Contains(Languages(), o.Language) {
		return nil, fmt.Errorf("language %q is %w: choose one of %s", o.Language, ErrUnknown, strings.Join(Languages(), ", "))
	}
	o.SHA256 = strings.ToLower(o.SHA256)
	if err := o.checkSource(); err != nil {
		return nil, err
	}
	data := project{Options: o, Package: packageName(o.Name), Module: "example.com/" + o.Name + "@v0", Enable: "require conf/yoctune/" + o.Name + ".conf        (in conf/local.conf)"}
	workflow := ".github/workflows/yoctune.yml"
	if o.Below != "" {
		if !plainPath.MatchString(o.Below) {
			return nil, fmt.Errorf("%w: the files of CI cannot name the folder %q of the repository: rename it, with letters, digits, blanks and . _ + @ -", ErrFolder, o.Below)
		}
		data.Pattern = regexp.QuoteMeta(o.Below + "/")
		workflow = ".github/workflows/yoctune-" + o.Name + ".yml"
	}
	if r.Fragments {
		data.Enable = fmt.Sprintf("bitbake-config-build enable-fragment %s/%s", o.Name, o.Name)
	}
	t, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{"quote": literal.String.Quote, "quoteHCL": quoteHCL, "quoteJsonnet": quoteJsonnet}).ParseFS(templates, "project/*")
	if err != nil {
		return nil, fmt.Errorf("making the project: %w", err)
	}
	type made struct {
		File
		template string
	}
	kept := func(path, template string) made { return made{File{Path: path, Keep: true}, template} }
	root := func(path, template, spare string) made {
		vet := "yoctune vet " + data.In("")
		marks := []string{vet + "\n", vet + " ", data.In(spare)}
		return made{File{Path: path, Keep: true, Root: true, Spare: spare, marks: marks}, template}
	}
	own := []made{kept("config.cue", "config.cue.tmpl"), kept("cue.mod/module.cue", "module.cue.tmpl")}
	switch o.Language {
	case "hcl":
		own = []made{kept("config.hcl", "config.hcl.tmpl")}
	case "jsonnet":
		own = []made{kept("config.jsonnet", "config.jsonnet.tmpl"), {File{Path: jsonnet.Library}, jsonnet.Library}}
	}
	var files []File
	if o.Own != nil {
		files = append(files, File{Path: Facts, Text: o.Own.File, Keep: true})
	}
	own = append(own,
		kept("README.md", "README.md.tmpl"),
		kept(".gitignore", "gitignore.tmpl"),
		kept(".ci/install-yoctune.sh", "install-yoctune.sh.tmpl"),
		root(workflow, "github.yml.tmpl", ""),
		root(".gitlab-ci.yml", "gitlab.yml.tmpl", ".ci/gitlab-ci.yml"),
	)
	if o.PreCommit {
		own = append(own, root(".pre-commit-config.yaml", "pre-commit.yml.tmpl", ".ci/pre-commit-config.yaml"))
	}
	for _, f := range own {
		var w strings.Builder
		if err := t.ExecuteTemplate(&w, f.template, data); err != nil {
			return nil, fmt.Errorf("making %s: %w", f.Path, err)
		}
		f.Text = []byte(w.String())
		files = append(files, f.File)
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

// Written is what [Write] did.
type Written struct {
	Files []string // that were written, by path from the project's folder
	// Taken are files of the repository's root that the user has already and that do not
	// mention the checks; those are in the file's Spare.
	Taken []File
}

// Write puts the files into a folder, which must be empty unless force is given:
// then what the user may have changed is kept, and the rest renewed. Files of the root go
// to the folder that is above by so many levels; "." for the same.
func Write(dir, above string, files []File, force bool) (w Written, err error) {
	if err := outfile.CheckFolder(dir); err != nil {
		return w, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w, fmt.Errorf("making the project: %w", err)
	}
	if !force {
		for _, e := range entries {
			if e.Name() != ".git" {
				return w, fmt.Errorf("%s: %w: it holds %s", dir, ErrNotEmpty, e.Name())
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return w, fmt.Errorf("making the project: %w", err)
	}
	for _, f := range files {
		if f.Root {
			made, taken, err := writeFile(filepath.Join(dir, above), f)
			if err != nil {
				return w, err
			}
			if made {
				w.Files = append(w.Files, path.Join(filepath.ToSlash(above), f.Path))
			}
			if !taken || f.Spare == "" {
				continue
			}
			w.Taken = append(w.Taken, f)
			f.Path = f.Spare
		}
		made, _, err := writeFile(dir, f)
		if err != nil {
			return w, err
		}
		if made {
			w.Files = append(w.Files, f.Path)
		}
	}
	return w, nil
}

// writeFile writes a file below a folder unless it exists and is kept. taken is set for a
// kept file that has nothing of the new one.
func writeFile(dir string, f File) (made, taken bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, false, fmt.Errorf("making %s: %w", f.Path, err)
	}
	defer root.Close()
	name := filepath.FromSlash(f.Path)
	if was, err := infile.ReadIn(root, name, load.MaxSource); err == nil && (f.Keep || string(was) == string(f.Text)) {
		has := slices.ContainsFunc(f.marks, func(mark string) bool { return bytes.Contains(was, []byte(mark)) })
		return false, f.Keep && !has, nil
	}
	// The root refuses folders that are links to somewhere else.
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, false, fmt.Errorf("making %s: %w", f.Path, err)
	}
	return true, false, tree.WriteFile(filepath.Join(dir, name), f.Text)
}

// Repository finds the repository that a folder is in: the way up to its root, and the
// path of the folder in it, with slashes. They are "." and "" for a root, and outside a
// repository.
func Repository(dir string) (above, below string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ".", ""
	}
	for at := abs; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			above, errAbove := filepath.Rel(abs, at)
			below, errBelow := filepath.Rel(at, abs)
			if errAbove != nil || errBelow != nil || below == "." {
				return ".", ""
			}
			return above, filepath.ToSlash(below)
		}
		if at == filepath.Dir(at) {
			return ".", ""
		}
	}
}
