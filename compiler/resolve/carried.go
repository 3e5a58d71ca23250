package resolve

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/plan"
)

// MaxCarried is the most that a layer carries of the files beside the configuration, in
// bytes.
const MaxCarried = 32 << 20

// Errors of [ReadFile]; test with errors.Is.
var (
	ErrUnknownFile = errors.New("the configuration has no folder")
	ErrFileSize    = fmt.Errorf("it is larger than the %d MiB that a layer carries", MaxCarried>>20)
	ErrNotFile     = errors.New("it is not a regular file")
)

// ReadFile reads a regular file of at most [MaxCarried] bytes below the configuration's
// folder. The error wraps [ErrUnknownFile] without a folder.
type ReadFile func(path string) ([]byte, error)

// carried is a field that may name a file beside the configuration.
type carried struct {
	path, sum, uri config.String // a file with a uri is fetched
}

// carriedFields lists the fields of a pipeline that name files.
func carriedFields(c *config.Pipeline) []carried {
	all := []carried{{path: c.Source.Path}}
	for _, st := range c.Stages.Sorted() {
		all = append(all, carried{st.Path, st.SHA256, st.URI}, carried{st.Labels, st.LabelsSHA256, st.LabelsURI},
			carried{st.Gallery, st.GallerySHA256, st.GalleryURI})
		for _, m := range st.Ensemble.Models.Sorted() {
			all = append(all, carried{m.Path, m.SHA256, m.URI})
		}
	}
	for _, step := range c.Degrade.Ladder.Items {
		for _, m := range step.Models.Sorted() {
			all = append(all, carried{m.Path, m.SHA256, m.URI})
		}
	}
	return slices.DeleteFunc(all, func(f carried) bool {
		return !f.path.IsSet() || f.uri.IsSet() || path.IsAbs(f.path.Text) || leavesFolder(f.path.Text)
	})
}

// leavesFolder reports whether a path has a ".." (a rule reports it).
func leavesFolder(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

// ReadFiles reads the files beside the configuration that pipelines name: the layer
// carries them, since nothing else brings them to the device.
func (p *Project) ReadFiles(read ReadFile, report *diag.Report) {
	type answer struct {
		file plan.CarriedFile
		err  error
	}
	known := map[string]answer{}
	for _, t := range p.Targets {
		for _, c := range t.Config.Pipelines.Sorted() {
			for _, f := range carriedFields(c) {
				name := path.Clean(f.path.Text)
				a, seen := known[name]
				if !seen {
					a.file.Path = name
					a.file.Data, a.err = read(name)
					sum := sha256.Sum256(a.file.Data)
					a.file.SHA256 = hex.EncodeToString(sum[:])
					known[name] = a
				}
				switch {
				case errors.Is(a.err, ErrUnknownFile):
				case a.err != nil:
					reportUnread(c, f, a.err, report)
				case f.sum.IsSet() && f.sum.Text != a.file.SHA256:
					report.Add(diag.Diagnostic{ID: "YT0211", Severity: diag.Error, Pos: f.sum.Pos(), Path: f.sum.FullPath(),
						Message: fmt.Sprintf("pipeline %s: the sha256 of %s is %s", c.Key(), name, a.file.SHA256), Got: f.sum.Text,
						Help: "write the digest of the file, or put the right file there"})
				default:
					t.carry(a.file, f.path)
				}
			}
		}
		slices.SortFunc(t.Files, func(a, b plan.CarriedFile) int { return strings.Compare(a.Path, b.Path) })
	}
}

// carry adds a file of the target, once.
func (t *Target) carry(f plan.CarriedFile, field config.String) {
	if slices.ContainsFunc(t.Files, func(o plan.CarriedFile) bool { return o.Path == f.Path }) {
		return
	}
	f.ID = field.ID()
	t.Files = append(t.Files, f)
	t.Origins[f.ID] = field.Pos()
}

// reportUnread reports a file that cannot be carried, with the ways to bring it to the
// device.
func reportUnread(c *config.Pipeline, f carried, err error, report *diag.Report) {
	name := f.path.Text
	d := diag.Diagnostic{ID: "YT0211", Severity: diag.Error, Pos: f.path.Pos(), Path: f.path.FullPath(), Got: f.path.Show(),
		Help: "put it there, or name a file that the device has by its absolute path"}
	if f.path.FullPath() != c.Source.Path.FullPath() {
		d.Help += `, or let the build fetch it (uri, labelsUri or galleryUri, with the digest)`
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	d.Message = fmt.Sprintf("pipeline %s: the layer cannot carry %s: %v", c.Key(), name, err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Message = fmt.Sprintf("pipeline %s: file %s is missing beside the configuration", c.Key(), name)
	case errors.Is(err, ErrFileSize):
		d.Help = "let the build fetch it with uri and sha256, or name a file that the device has by its absolute path"
	}
	report.Add(d)
}

// checkCarried refuses more than a layer carries. Each content counts once.
func checkCarried(targets []*Target, report *diag.Report) {
	seen := map[string]bool{}
	total := 0
	for _, t := range targets {
		// By size: what is reported is worth a uri.
		bySize := slices.SortedFunc(slices.Values(t.Files), func(a, b plan.CarriedFile) int {
			return cmp.Or(cmp.Compare(len(a.Data), len(b.Data)), strings.Compare(a.Path, b.Path))
		})
		for _, f := range bySize {
			if seen[f.SHA256] {
				continue
			}
			seen[f.SHA256] = true
			total += len(f.Data)
			if total > MaxCarried {
				report.Add(diag.Diagnostic{ID: "YT0211", Severity: diag.Error, Pos: t.Origins[f.ID], Path: t.Path + "." + f.ID,
					Message: fmt.Sprintf("with %s (%.1f MiB) the files that the layer carries have %.1f MiB, and a layer carries at most %d MiB", f.Path, float64(len(f.Data))/(1<<20), float64(total)/(1<<20), MaxCarried>>20),
					Help:    "let the build fetch it with uri and sha256, or name a file that the device has by its absolute path"})
				return
			}
		}
	}
}
