package review

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/terminal"
	"github.com/yoctune/yoctune/schema/plan"
)

// needWords completes "needs ...".
var needWords = map[Need]string{
	noNeed: "no restart: changes take effect while the device runs", build: "nothing on the device: only the build changes",
	restart: "a restart of services", reboot: "a reboot", reflash: "a new image (reflash)",
}

// needLabels mark a change in the text.
var needLabels = map[Need]string{
	noNeed: "applies immediately", build: "affects the build only",
	restart: "needs a restart", reboot: "needs a reboot", reflash: "needs a reflash",
}

// Words is the need in words.
func (n Need) Words() string { return needWords[n] }

// Headline summarises the review in one line.
func (r *Review) Headline() string {
	if r.Clean() {
		return fmt.Sprintf("%s: no difference between %s and %s", r.Layer, r.Old, r.New)
	}
	if r.Changes() == 0 {
		return fmt.Sprintf("%s: nothing changes on a device; text differs in %s", r.Layer, count(len(r.Files), "file"))
	}
	parts := []string{count(r.Changes(), "change"), count(len(r.Targets), "target") + " affected", count(len(r.Files), "file")}
	return fmt.Sprintf("%s: %s; needs %s; risk %s", r.Layer, strings.Join(parts, ", "), r.Need().Words(), r.Risk())
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// FormatPosition writes a position as editors understand it.
func FormatPosition(p *plan.Position) string {
	if p == nil {
		return ""
	}
	if p.Column == 0 {
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Arrow writes old and new.
func (c Change) Arrow() string { return arrow(c.Was, c.Now) }

// Arrow writes old and new.
func (d Detail) Arrow() string { return arrow(d.Was, d.Now) }

func arrow(was, now string) string {
	switch {
	case was == now:
		return now // what changed is in the details
	case was == "":
		return now
	case now == "":
		return was + " → removed"
	}
	return was + " → " + now
}

func (k Kind) sign() string {
	return map[Kind]string{Added: "+", Removed: "-", Changed: "~"}[k]
}

func (k Kind) style() terminal.Style {
	return map[Kind]terminal.Style{Added: terminal.Green, Removed: terminal.Red, Changed: terminal.Yellow}[k]
}

func (r Risk) style() terminal.Style {
	return map[Risk]terminal.Style{medium: terminal.Yellow, high: terminal.Red}[r]
}

// textWriter writes a review as text.
type textWriter struct {
	strings.Builder
	folder string // of the configuration, before positions
	colour bool
}

// line writes a line in a style. Values cannot move the cursor of a terminal: control
// characters are written as escapes.
func (t *textWriter) line(indent int, style terminal.Style, text string) {
	fmt.Fprintf(t, "%*s%s\n", indent, "", style.Paint(t.colour, printable.Line(text)))
}

// WriteText writes the review for a terminal, with colours on request.
func (r *Review) WriteText(w io.Writer, colour bool) error {
	t := &textWriter{folder: r.Folder, colour: colour}
	t.line(0, terminal.Bold, r.Headline())
	if len(r.Build) > 0 {
		t.section(terminal.Bold, "build settings", r.Build)
	}
	if len(r.Shared) > 0 {
		t.section(terminal.Bold, "every target that changes: "+count(len(r.Shared), "change"), r.Shared)
	}
	for _, target := range r.Targets {
		t.section(terminal.Bold+target.Risk().style(), target.headline(), target.Own)
		if recipes := target.Rebuild(); len(recipes) > 0 {
			t.line(2, terminal.Plain, "rebuild: "+strings.Join(recipes, ", "))
		}
	}
	if r.Changes() == 0 && !r.Clean() {
		t.WriteByte('\n')
		for _, f := range r.Files {
			t.line(2, f.Kind.style(), f.Kind.sign()+" "+f.Path)
		}
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// section writes changes under a heading.
func (t *textWriter) section(style terminal.Style, heading string, changes []Change) {
	t.WriteByte('\n')
	t.line(0, style, heading)
	for _, c := range changes {
		t.change(c)
	}
}

func (t Target) headline() string {
	about := fmt.Sprintf("target %s (%s, %s, %s)", t.Name, t.Machine, t.Board, t.Release)
	switch t.Kind {
	case Added:
		return about + ": new"
	case Removed:
		return about + ": no longer in the layer"
	}
	return fmt.Sprintf("%s: %s; needs %s; risk %s", about, t.Count(), t.Need().Words(), t.Risk())
}

// Count describes the number of changes, and how many of them every target has.
func (t Target) Count() string {
	switch n := len(t.Changes) - len(t.Own); {
	case n == 0:
		return count(len(t.Changes), "change")
	case len(t.Own) == 0:
		return "the changes of every target"
	default:
		return fmt.Sprintf("the changes of every target, and %d more", len(t.Own))
	}
}

func (t *textWriter) change(c Change) {
	text := fmt.Sprintf("%s %s %s", c.Kind.sign(), c.Area, c.Name)
	if a := c.Arrow(); a != "" {
		text += ": " + a
	}
	t.line(2, c.Kind.style(), text)
	for i, d := range c.Details {
		const most = 8
		if i == most && len(c.Details) > most+1 {
			t.line(6, terminal.Plain, fmt.Sprintf("… %d more", len(c.Details)-most))
			break
		}
		t.line(6, terminal.Plain, d.Name+": "+d.Arrow())
	}
	about, style := []string{needLabels[c.Need]}, terminal.Dim
	if c.Why != "" {
		about = append(about, "risk "+c.Risk.String()+": "+c.Why)
		style = cmp.Or(c.Risk.style(), style)
	}
	if c.Origin != nil {
		place := diag.PrefixPath(t.folder, *c.Origin)
		about = append(about, FormatPosition(&place))
	}
	t.line(6, style, "["+strings.Join(about, " · ")+"]")
}

// WriteJSON writes one object a line, a summary last.
func (r *Review) WriteJSON(w io.Writer) error {
	if err := r.WriteChangesJSON(w); err != nil {
		return err
	}
	return diag.WriteLines(w, struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Layer   string `json:"layer"`
		Old     string `json:"old"`
		New     string `json:"new"`
		Changes int    `json:"changes"`
		Targets int    `json:"targets"`
		Files   int    `json:"files"`
		Need    Need   `json:"needs"`
		Risk    Risk   `json:"risk"`
	}{"summary", "review", r.Layer, r.Old, r.New, r.Changes(), len(r.Targets), len(r.Files), r.Need(), r.Risk()})
}

// WriteChangesJSON writes one object a line for each target, change and file,
// for commands that have a summary of their own.
func (r *Review) WriteChangesJSON(w io.Writer) error {
	type line struct {
		Type   string `json:"type"`
		Target string `json:"target,omitempty"`
		Change
	}
	var lines []any
	for _, c := range r.Build {
		lines = append(lines, line{"change", "", c})
	}
	for _, t := range r.Targets {
		lines = append(lines, struct {
			Type    string   `json:"type"`
			Name    string   `json:"name"`
			Machine string   `json:"machine"`
			Board   string   `json:"board"`
			Release string   `json:"release"`
			Kind    Kind     `json:"change"`
			Need    Need     `json:"needs"`
			Risk    Risk     `json:"risk"`
			Rebuild []string `json:"rebuild,omitempty"`
		}{"target", t.Name, t.Machine, t.Board, t.Release, t.Kind, t.Need(), t.Risk(), t.Rebuild()})
		for _, c := range t.Changes {
			lines = append(lines, line{"change", t.Name, c})
		}
	}
	for _, f := range r.Files {
		lines = append(lines, struct {
			Type string `json:"type"`
			Path string `json:"path"`
			Kind Kind   `json:"change"`
		}{"file", f.Path, f.Kind})
	}
	return diag.WriteLines(w, lines...)
}

// WriteMarkdown writes the review for a merge request, as GitHub and GitLab read
// it.
func (r *Review) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## Review of layer %s\n\n", code(r.Layer))
	if r.Clean() {
		fmt.Fprintf(&b, "No difference between %s and %s.\n", code(r.Old), code(r.New))
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "%s → %s: **%s**, needs **%s**, risk **%s**.\n", code(r.Old), code(r.New), count(r.Changes(), "change"), r.Need().Words(), r.Risk())
	if len(r.Build) > 0 {
		b.WriteString("\n### Build settings\n\n")
		table(&b, r.Build)
	}
	if len(r.Shared) > 0 {
		b.WriteString("\n### Every target that changes\n\n")
		table(&b, r.Shared)
	}
	for _, t := range r.Targets {
		fmt.Fprintf(&b, "\n### Target %s\n\n%s, board %s, release %s: ", code(t.Name), code(t.Machine), code(t.Board), code(t.Release))
		switch t.Kind {
		case Added:
			b.WriteString("**new**.\n")
			continue
		case Removed:
			b.WriteString("**no longer in the layer**.\n")
			continue
		}
		fmt.Fprintf(&b, "%s; needs **%s**, risk **%s**.\n", t.Count(), t.Need().Words(), t.Risk())
		if len(t.Own) > 0 {
			b.WriteByte('\n')
			table(&b, t.Own)
		}
		if recipes := t.Rebuild(); len(recipes) > 0 {
			b.WriteString("\nRebuild:")
			for i, x := range recipes {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(" " + code(x))
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n", count(len(r.Files), "file"))
	for _, f := range r.Files {
		fmt.Fprintf(&b, "- %s %s\n", f.Kind, code(f.Path))
	}
	b.WriteString("\n</details>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func table(b *strings.Builder, changes []Change) {
	b.WriteString("| | what | was | now | needs | risk | line |\n|---|---|---|---|---|---|---|\n")
	for _, c := range changes {
		risk := c.Risk.String()
		if c.Why != "" {
			risk = "**" + risk + "**: " + c.Why
		}
		place := ""
		if c.Origin != nil {
			place = code(FormatPosition(c.Origin))
		}
		was, now := code(c.Was), code(c.Now)
		if c.Kind == Changed && len(c.Details) > 0 {
			was, now = c.cells()
		}
		fmt.Fprintf(b, "| %s | %s %s | %s | %s | %s | %s | %s |\n", c.Kind, c.Area, code(c.Name), was, now, c.Need, risk, place)
	}
}

// cells lists the details of a change in the two cells of a table's row.
func (c Change) cells() (was, now string) {
	var a, b []string
	if c.Was != c.Now {
		a, b = append(a, code(c.Was)), append(b, code(c.Now))
	}
	for i, d := range c.Details {
		const most = 8
		if i == most {
			b = append(b, fmt.Sprintf("… %d more", len(c.Details)-most))
			break
		}
		a, b = append(a, code(d.Name)+" "+code(d.Was)), append(b, code(d.Name)+" "+code(d.Now))
	}
	return strings.Join(a, "<br>"), strings.Join(b, "<br>")
}

// code writes a value as a code span that stays in its table cell: nothing in it
// is Markdown or HTML.
func code(s string) string {
	if s == "" {
		return ""
	}
	const most = 160
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	s = printable.Line(s)
	fence, run := 1, 0
	for _, r := range s {
		if r == '`' {
			run++
			fence = max(fence, run+1)
		} else {
			run = 0
		}
	}
	// A table is cut at pipes before anything else, code spans included.
	s = strings.ReplaceAll(s, "|", `\|`)
	if fence == 1 {
		return "`" + s + "`"
	}
	ticks := strings.Repeat("`", fence)
	return ticks + " " + s + " " + ticks
}
