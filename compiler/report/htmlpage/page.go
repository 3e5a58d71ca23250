// Package htmlpage holds the common parts of yoctune's HTML reports. A report is one
// file that loads nothing, follows the reader's light or dark setting, and works with
// keyboards and screen readers.
//
// Names and values come from configurations and are hostile. html/template escapes
// them. As a second defence, a Content-Security-Policy allows only the two blocks of
// this package, by their digests.
package htmlpage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/yoctune/yoctune/compiler/report/graph"
)

//go:embed page.html.tmpl
var layout string

//go:embed page.css
var style string

//go:embed page.js
var script string

// Report is a page: its parts are the templates "nav" and "main".
type Report struct {
	Title string
	Parts string // template text that defines "nav" and "main"
	Funcs template.FuncMap
	Data  any
}

// Write writes the page.
func (r Report) Write(w io.Writer) error {
	css, js := style+graph.Style, script
	t, err := template.New("page").Funcs(r.Funcs).Parse(layout)
	if err == nil {
		t, err = t.Parse(r.Parts)
	}
	if err != nil {
		return fmt.Errorf("template of the page: %w", err)
	}
	return t.Execute(w, struct {
		Title  string
		Policy string
		Style  template.CSS
		Script template.JS
		Data   any
	}{
		r.Title, fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", digest(css), digest(js)),
		template.CSS(css), template.JS(js), r.Data, // both are files of this package
	})
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Picture puts a drawing into a page; its text is escaped already.
func Picture(d *graph.Drawing) template.HTML {
	if d == nil || d.Empty() {
		return ""
	}
	return template.HTML(d.Inline())
}
