package compiler

import (
	"maps"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/diag/fix"
	"github.com/yoctune/yoctune/compiler/language/load"
)

// Fixed is a configuration with the changes that its diagnostics propose.
type Fixed struct {
	Files   map[string][]byte // that changed, by name
	Was     map[string][]byte
	Made    int      // number of applied proposals
	Project *Project // with the changes applied
}

// Fix tries the edits of every diagnostic, one diagnostic after the other, and keeps those
// that reduce the diagnostics without adding new ones: a change that helps one target and
// harms another is not made.
func (o Options) Fix(dir string, p *Project) Fixed {
	out := Fixed{Files: map[string][]byte{}, Was: map[string][]byte{}, Project: p}
	if p.Config == nil || p.Config.Sources == nil {
		return out
	}
	files := p.editable()
	// Every change moves positions, so each one is looked up again.
	for range maxFixes {
		changed, next := o.applyFirstImprovement(dir, files, out.Project)
		if next == nil {
			break
		}
		for name, text := range changed {
			if _, ok := out.Was[name]; !ok {
				out.Was[name] = files[name]
			}
			files[name], out.Files[name] = text, text
		}
		out.Made++
		out.Project = next
	}
	return out
}

// editable returns the text of the files that changes may be made in.
func (p *Project) editable() map[string][]byte {
	files := map[string][]byte{}
	for _, name := range p.Config.Sources.Names() {
		if !strings.Contains("/"+name, "/cue.mod/") { // other people's packages are not changed
			files[name] = p.Config.Sources.Text(name)
		}
	}
	return files
}

// FixOne tries the edits of one diagnostic and returns the files that change; none where [Options.Fix]
// would not keep them.
func (o Options) FixOne(dir string, p *Project, d diag.Diagnostic) map[string][]byte {
	if p.Config == nil || p.Config.Sources == nil {
		return nil
	}
	changed, _ := o.tryEdits(dir, p.editable(), p, d)
	return changed
}

// maxFixes bounds the rounds; each removes at least one diagnostic.
const maxFixes = 200

// applyFirstImprovement applies the edits of the first diagnostic whose edits are an improvement.
func (o Options) applyFirstImprovement(dir string, files map[string][]byte, p *Project) (map[string][]byte, *Project) {
	for _, d := range p.Report.All() {
		if changed, after := o.tryEdits(dir, files, p, d); after != nil {
			return changed, after
		}
	}
	return nil, nil
}

// tryEdits applies the edits of a diagnostic. The results are nil unless they are an improvement.
func (o Options) tryEdits(dir string, files map[string][]byte, p *Project, d diag.Diagnostic) (map[string][]byte, *Project) {
	if len(d.Edits) == 0 {
		return nil, nil
	}
	changed, ok := fix.Apply(files, d.Edits)
	if !ok {
		return nil, nil
	}
	tried := maps.Clone(files)
	maps.Copy(tried, changed)
	after := o.reopen(dir, tried)
	if !isImprovement(p, after, d) {
		return nil, nil
	}
	return changed, after
}

// reopen is [Options.Open] for a folder whose files have another text.
func (o Options) reopen(dir string, files map[string][]byte) *Project {
	o.Changed = maps.Clone(o.Changed)
	if o.Changed == nil {
		o.Changed = map[string][]byte{}
	}
	maps.Copy(o.Changed, files) // the front ends import from it
	end, closeRoot := o.frontEnd(dir)
	defer closeRoot()
	cfg, report := load.FilesIn(dir, files, end)
	p := resolveAndCheck(cfg, report, o.Cache, folder{dir, o.Changed})
	p.Verify()
	return p
}

// isImprovement reports whether a change leaves fewer diagnostics and adds none, except warnings
// that come with the right name: those about a renamed field, and about side effects of a kernel
// option that fixes an error.
func isImprovement(before, after *Project, mended diag.Diagnostic) bool {
	// Rules judge a target only after its language errors are gone: their new diagnostics
	// are not caused by the change.
	language := func(d diag.Diagnostic) bool { return strings.HasPrefix(d.ID, "YT") }
	count := func(diag.Diagnostic) bool { return true }
	if slices.ContainsFunc(before.Report.All(), func(d diag.Diagnostic) bool { return language(d) && d.Severity == diag.Error }) {
		count = language
	}
	old := map[[2]string]bool{}
	was, is := 0, 0
	for _, d := range before.Report.All() {
		if count(d) && d.Severity > diag.Info {
			old[[2]string{d.ID, d.Path}] = true
			was += int(d.Severity)
		}
	}
	for _, d := range after.Report.All() {
		if !count(d) || d.Severity <= diag.Info {
			continue
		}
		renamed := mended.Edits[0].Kind == diag.RenameField && d.Pos.File == mended.Pos.File && d.Pos.Line == mended.Pos.Line
		price := (d.ID == "kconfig-effect" || renamed) && d.Severity < mended.Severity
		if !old[[2]string{d.ID, d.Path}] && !price {
			return false
		}
		is += int(d.Severity)
	}
	return is < was
}
