package diag

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// WriteJSON writes one object a line, each with "type":"diagnostic". The caller
// writes the summary object.
func WriteJSON(w io.Writer, r *Report) error {
	for _, d := range r.All() {
		if err := WriteLines(w, struct {
			Type string `json:"type"`
			Diagnostic
		}{"diagnostic", d}); err != nil {
			return fmt.Errorf("writing diagnostics: %w", err)
		}
	}
	return nil
}

// WriteLines writes each value as JSON on a line.
func WriteLines(w io.Writer, values ...any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// WriteGitHub writes workflow commands, which GitHub shows beside the changed lines of a
// pull request. The files of the report must be relative to the repository.
func WriteGitHub(w io.Writer, r *Report) error {
	for i, d := range r.All() {
		if i == limit {
			break
		}
		level := d.Severity.level("notice")
		text := d.Message
		if d.Help != "" {
			text += "\n" + d.Help
		}
		if d.Unverified != "" {
			text += "\nnot verified: " + d.Unverified
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

// WriteSARIF writes a SARIF 2.1.0 log. The files of the report must be relative to the
// repository. pages returns the explanation of a diagnostic or a rule.
func WriteSARIF(w io.Writer, r *Report, version string, pages func(id string) (Explanation, bool)) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "yoctune", InformationURI: "https://github.com/yoctune/yoctune", Version: version, Rules: []sarifRule{}}
	index := map[string]int{}
	for _, d := range r.All() {
		if _, known := index[d.ID]; !known {
			index[d.ID] = len(run.Tool.Driver.Rules)
			rule := sarifRule{ID: d.ID}
			if page, ok := pages(d.ID); ok {
				rule.ShortDescription = &sarifText{page.Title}
				rule.Help = &sarifText{page.Cause + "\n" + page.Fix}
			}
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		}
		text := d.Message
		if d.Help != "" {
			text += ". " + d.Help
		}
		if d.Unverified != "" {
			text += ". Not verified: " + d.Unverified
		}
		result := sarifResult{RuleID: d.ID, RuleIndex: index[d.ID], Level: d.Severity.level("note"), Message: sarifText{text}}
		if d.Pos.File != "" {
			result.Locations = []sarifLocation{sarifPlace(d.Pos)}
		}
		for _, rel := range d.Related {
			place := sarifPlace(rel.Pos)
			place.Message = &sarifText{rel.Message}
			result.RelatedLocations = append(result.RelatedLocations, place)
		}
		run.Results = append(run.Results, result)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
	if err != nil {
		return fmt.Errorf("writing SARIF: %w", err)
	}
	return nil
}

// WriteCodeQuality writes a Code Quality report, which GitLab shows in a merge request. The
// files of the report must be relative to the repository. A finding without a place is given
// the first line of the file home, since GitLab drops it otherwise.
func WriteCodeQuality(w io.Writer, r *Report, home string) error {
	type lines struct {
		Begin int `json:"begin"`
	}
	type location struct {
		Path  string `json:"path"`
		Lines lines  `json:"lines"`
	}
	type issue struct {
		Description string   `json:"description"`
		CheckName   string   `json:"check_name"`
		Fingerprint string   `json:"fingerprint"`
		Severity    string   `json:"severity"`
		Location    location `json:"location"`
	}
	issues, seen := []issue{}, map[string]int{}
	for _, d := range r.All() {
		text := d.Message
		if d.Help != "" {
			text += ". " + d.Help
		}
		if d.Unverified != "" {
			text += ". Not verified: " + d.Unverified
		}
		at := location{d.Pos.File, lines{max(d.Pos.Line, 1)}}
		if at.Path == "" {
			at.Path = home
		}
		// The line is left out, so that a finding stays the same one when lines move.
		of := strings.Join([]string{d.ID, at.Path, d.Path, d.Message}, "\x00")
		seen[of]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", of, seen[of]))
		severity := map[Severity]string{Error: "critical", Warning: "minor"}[d.Severity]
		issues = append(issues, issue{text, d.ID, hex.EncodeToString(sum[:]), cmp.Or(severity, "info"), at})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(issues); err != nil {
		return fmt.Errorf("writing a Code Quality report: %w", err)
	}
	return nil
}

// The part of SARIF 2.1.0 that is written, by the names of its specification.
type (
	sarifText struct {
		Text string `json:"text"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Version        string      `json:"version,omitempty"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string     `json:"id"`
		ShortDescription *sarifText `json:"shortDescription,omitempty"`
		Help             *sarifText `json:"help,omitempty"`
	}
	sarifResult struct {
		RuleID           string          `json:"ruleId"`
		RuleIndex        int             `json:"ruleIndex"`
		Level            string          `json:"level"`
		Message          sarifText       `json:"message"`
		Locations        []sarifLocation `json:"locations,omitempty"`
		RelatedLocations []sarifLocation `json:"relatedLocations,omitempty"`
	}
	sarifLocation struct {
		Message          *sarifText `json:"message,omitempty"`
		PhysicalLocation struct {
			ArtifactLocation struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

func sarifPlace(p plan.Position) sarifLocation {
	var l sarifLocation
	l.PhysicalLocation.ArtifactLocation.URI = (&url.URL{Path: p.File}).String()
	if p.Line > 0 { // lines count from one; a position of a whole file has none
		l.PhysicalLocation.Region = &sarifRegion{p.Line, p.Column}
	}
	return l
}
