package diag

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// WriteJSON writes one object a line, each with "type":"diagnostic". The caller
// writes the summary object.
func WriteJSON(w io.Writer, r *Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, d := range r.All() {
		line := struct {
			Type string `json:"type"`
			Diagnostic
		}{"diagnostic", d}
		if err := enc.Encode(line); err != nil {
			return fmt.Errorf("writing diagnostics: %w", err)
		}
	}
	return nil
}

// WriteGitHub writes workflow commands, which GitHub shows beside the changed
// lines of a pull request.
func WriteGitHub(w io.Writer, r *Report) error {
	for i, d := range r.All() {
		if i == Limit {
			break
		}
		level := "notice"
		switch d.Severity {
		case Error:
			level = "error"
		case Warning:
			level = "warning"
		}
		text := d.Message
		if d.Help != "" {
			text += "\n" + d.Help
		}
		var err error
		if d.Pos.File == "" {
			_, err = fmt.Fprintf(w, "::%s title=%s::%s\n", level, githubProperty(d.ID), githubData(text))
		} else {
			_, err = fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", level, githubProperty(d.Pos.File), d.Pos.Line, d.Pos.Column, githubProperty(d.ID), githubData(text))
		}
		if err != nil {
			return fmt.Errorf("writing diagnostics: %w", err)
		}
	}
	return nil
}

func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func githubProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

// WriteSARIF writes a SARIF 2.1.0 log. pages finds what is known of a diagnostic or
// a rule.
func WriteSARIF(w io.Writer, r *Report, version string, pages func(id string) (Explanation, bool)) error {
	log := report.NewV210Report()
	run := sarif.NewRunWithInformationURI("yoctune", "https://github.com/yoctune/yoctune")
	run.Tool.Driver.WithVersion(version)
	for _, d := range r.All() {
		rule := run.AddRule(d.ID)
		if page, ok := pages(d.ID); ok {
			rule.WithDescription(page.Title)
			rule.WithHelp(sarif.NewMultiformatMessageString().WithText(page.Cause + "\n" + page.Fix))
		}
		level := "note"
		switch d.Severity {
		case Error:
			level = "error"
		case Warning:
			level = "warning"
		}
		text := d.Message
		if d.Help != "" {
			text += ". " + d.Help
		}
		result := run.CreateResultForRule(d.ID).WithLevel(level).WithMessage(sarif.NewTextMessage(text))
		if d.Pos.File != "" {
			result.AddLocation(location(d.Pos.File, d.Pos.Line, d.Pos.Column))
		}
		for _, rel := range d.Related {
			result.AddRelatedLocation(location(rel.Pos.File, rel.Pos.Line, rel.Pos.Column).WithMessage(sarif.NewTextMessage(rel.Message)))
		}
	}
	log.AddRun(run)
	if err := log.PrettyWrite(w); err != nil {
		return fmt.Errorf("writing SARIF: %w", err)
	}
	return nil
}

func location(file string, line, column int) *sarif.Location {
	return sarif.NewLocationWithPhysicalLocation(sarif.NewPhysicalLocation().
		WithArtifactLocation(sarif.NewSimpleArtifactLocation(file)).
		WithRegion(sarif.NewRegion().WithStartLine(line).WithStartColumn(column)))
}
