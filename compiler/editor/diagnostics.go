package editor

import (
	"maps"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
)

// rulesPage is the page that lists rules and diagnostics; each has an anchor of its id.
const rulesPage = "https://github.com/yoctune/yoctune/blob/main/docs/rules.md"

// severityOf is a severity as the protocol counts.
func severityOf(s diag.Severity) int {
	switch s {
	case diag.Error:
		return 1
	case diag.Warning:
		return 2
	}
	return 3
}

// diagnose returns the findings of the evaluation by the path of their file. Every file of the
// project is in the result. The server is locked.
func (e *evaluation) diagnose(s *server) map[string][]diagnostic {
	found := map[string][]diagnostic{}
	for path := range e.texts {
		found[path] = []diagnostic{}
	}
	first := "" // for findings without a place
	for _, path := range append(slices.Sorted(maps.Keys(e.texts)), slices.Sorted(maps.Keys(e.versions))...) {
		if strings.HasPrefix(path, e.dir) {
			first = path
			break
		}
	}
	if e.err != nil {
		found[first] = append(found[first], diagnostic{Severity: 1, Source: "yoctune", Message: e.err.Error()})
		return found
	}
	for _, d := range e.project.Report.Findings() {
		path := first
		if d.Pos.File != "" {
			path = e.path(d.Pos.File)
		}
		found[path] = append(found[path], e.convert(d, s.units))
	}
	return found
}

func (e *evaluation) convert(d diag.Diagnostic, units encoding) diagnostic {
	out := diagnostic{
		Range: e.spanOf(d.Pos, d.Length, units), Severity: severityOf(d.Severity), Code: d.ID, Source: "yoctune",
		CodeDescription: &codeDescription{rulesPage + "#" + strings.ToLower(d.ID)}, Message: describe(d),
	}
	for _, r := range d.Related {
		out.RelatedInformation = append(out.RelatedInformation, related{e.locate(r.Pos, units), r.Message})
	}
	return out
}

// describe is the text of a finding: what `yoctune vet` prints around the line.
func describe(d diag.Diagnostic) string {
	var b strings.Builder
	b.WriteString(d.Message)
	for _, note := range []struct{ label, text string }{
		{"path", strings.Join(append([]string{d.Path}, d.Also...), ", ")},
		{"expected", d.Expected}, {"got", d.Got}, {"help", d.Help}, {"not verified", d.Unverified}, {"see", d.See},
	} {
		if note.text != "" {
			b.WriteString("\n" + note.label + ": " + note.text)
		}
	}
	return b.String()
}

// spanOf is the range of a finding. length is in characters; 0 means up to the end of the word.
func (e *evaluation) spanOf(pos plan.Position, length int, units encoding) span {
	l := e.texts[e.path(pos.File)]
	if l == nil {
		return span{}
	}
	start, ok := l.offsetOf(pos.Line, pos.Column)
	if !ok {
		return span{place{Line: max(0, pos.Line-1)}, place{Line: max(0, pos.Line-1)}}
	}
	rest := l.line(pos.Line - 1)[pos.Column-1:]
	return l.span(start, start+diag.Extent(rest, length), units)
}

// locate is the place of a position.
func (e *evaluation) locate(pos plan.Position, units encoding) location {
	return location{uriOf(e.path(pos.File)), e.spanOf(pos, 0, units)}
}

// publish sends the findings of a file, those of every project that reads it. The server is
// locked.
func (s *server) publish(path string) {
	if path == "" {
		return
	}
	p := publishParams{URI: uriOf(path), Diagnostics: []diagnostic{}}
	if d := s.documents[path]; d != nil {
		p.URI = d.uri
	}
	for _, dir := range slices.Sorted(maps.Keys(s.projects)) {
		project := s.projects[dir]
		if project.closed {
			continue
		}
		if project.last != nil {
			if v, ok := project.last.versions[path]; ok {
				p.Version = &v
			}
		}
		for _, d := range project.found[path] {
			if !slices.ContainsFunc(p.Diagnostics, func(o diagnostic) bool {
				return o.Range == d.Range && o.Code == d.Code && o.Message == d.Message
			}) {
				p.Diagnostics = append(p.Diagnostics, d)
			}
		}
	}
	s.send("textDocument/publishDiagnostics", p)
}
