package editor

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/hcl"
	"github.com/yoctune/yoctune/compiler/language/jsonnet"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/internal/infile"
)

// project is a configuration of which a file is open.
type project struct {
	server *server
	dir    string

	// Guarded by the server's lock.
	files     map[string]bool // open files that led to it, by path
	wanted    int             // changes so far
	scheduled bool            // an evaluation is due or running
	settled   chan struct{}   // closed when the evaluation is of the last change
	closed    bool
	last      *evaluation // nil before the first one
	good      *evaluation // the last one that gave targets, or values at least; nil before
	found     map[string][]diagnostic
}

// evaluation is the result of evaluating a project.
type evaluation struct {
	dir      string
	project  *compiler.Project // nil if the folder cannot be read
	err      error
	versions map[string]int // of open files, by path
	took     time.Duration
	texts    map[string]*lines // by path

	mu sync.Mutex // of project, which explaining changes
}

// Between a change and its evaluation the editor may send more. Evaluations that take long
// wait longer, so that a large configuration costs half of a core at most while it is typed.
const (
	shortestDelay = 10 * time.Millisecond
	longestDelay  = 300 * time.Millisecond
)

// languageOf returns the language of a file by its name; "" for a file of none.
func languageOf(path string) string {
	switch ext := filepath.Ext(path); ext {
	case ".cue", hcl.Extension, jsonnet.Extension:
		return ext
	case ".libsonnet":
		return jsonnet.Extension
	}
	return ""
}

// open, change, reload and closeDocument handle what the editor does with a file. The server is locked.

func (s *server) open(t textDocument) {
	path, err := pathOf(t.URI)
	if err != nil {
		s.log(logInfo, "%v", err)
		return
	}
	if languageOf(path) == "" {
		s.log(logInfo, "%s is not a CUE, HCL or Jsonnet file: it is not checked", path)
		return
	}
	s.documents[path] = &document{t.URI, path, t.Version, t.Text}
	s.assign(path)
}

func (s *server) change(t textDocument) {
	path, err := pathOf(t.URI)
	d := s.documents[path]
	if err != nil || d == nil {
		return
	}
	d.version, d.text = t.Version, t.Text
	s.assign(path)
}

// assign evaluates the projects that read a file. A file that none reads may begin one.
func (s *server) assign(path string) {
	for _, p := range s.projects {
		if p.reads(path) {
			p.schedule()
			delete(s.outside, path)
		}
	}
	if s.readers(path) > 0 {
		return
	}
	dir, ok := s.findConfiguration(path)
	if !ok {
		if !s.outside[path] {
			s.outside[path] = true
			s.log(logInfo, "%s is not part of a yoctune configuration: no folder from it upwards has a file with a layer and targets", path)
		}
		return
	}
	p := s.projects[dir]
	if p == nil {
		p = &project{server: s, dir: dir, files: map[string]bool{}, found: map[string][]diagnostic{}}
		s.projects[dir] = p
	}
	p.files[path] = true
	p.schedule()
}

// readers counts the projects that read a file.
func (s *server) readers(path string) int {
	n := 0
	for _, p := range s.projects {
		if p.reads(path) {
			n++
		}
	}
	return n
}

func (s *server) reload(uri string) {
	path, err := pathOf(uri)
	if err != nil {
		return
	}
	for _, p := range s.projects {
		if p.reads(path) || filepath.Dir(path) == p.dir {
			p.schedule()
		}
	}
}

func (s *server) closeDocument(uri string) {
	path, err := pathOf(uri)
	if err != nil || s.documents[path] == nil {
		return
	}
	delete(s.documents, path)
	delete(s.outside, path)
	for _, p := range s.projects {
		if !p.reads(path) {
			continue
		}
		delete(p.files, path)
		if slices.ContainsFunc(slices.Collect(maps.Keys(s.documents)), p.reads) {
			p.schedule()
			continue
		}
		p.close()
		delete(s.projects, p.dir)
		for file := range p.found {
			s.publish(file)
		}
	}
}

// configurationPattern finds a field of a whole configuration in the languages' spellings.
var configurationPattern = regexp.MustCompile(`(?m)(^|[\s{,])["']?(layer|targets)["']?\s*\+?:|^\s*(layer\s*(\{|=)|target\s+"|targets\s*=)`)

// findConfiguration finds the configuration that a file may belong to: the nearest folder at or
// above it that has one, inside the editor's folders.
func (s *server) findConfiguration(path string) (dir string, ok bool) {
	const levels = 8
	dir = filepath.Dir(path)
	for range levels {
		if s.isConfiguration(dir) {
			return dir, true
		}
		if slices.Contains(s.roots, dir) || dir == filepath.Dir(dir) {
			return "", false
		}
		dir = filepath.Dir(dir)
	}
	return "", false
}

// isConfiguration reports whether a file of a folder has a field of a whole configuration.
func (s *server) isConfiguration(dir string) bool {
	names := map[string]bool{}
	for path := range s.documents {
		if filepath.Dir(path) == dir {
			names[filepath.Base(path)] = true
		}
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if err == nil {
			names[e.Name()] = true
		}
	}
	for name := range names {
		if languageOf(name) == "" || filepath.Ext(name) == ".libsonnet" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			continue
		}
		text := []byte{}
		if d := s.documents[filepath.Join(dir, name)]; d != nil {
			text = []byte(d.text)
		} else if text, err = infile.Read(filepath.Join(dir, name), load.MaxSource); err != nil {
			continue
		}
		if configurationPattern.Match(text) {
			return true
		}
	}
	return false
}

// reads reports whether a file belongs to the project, as far as the last evaluation shows.
func (p *project) reads(path string) bool {
	if p.files[path] {
		return true
	}
	if p.last == nil {
		return false
	}
	_, ok := p.last.texts[path]
	return ok
}

// schedule evaluates the project soon. The server is locked.
func (p *project) schedule() {
	if p.closed {
		return
	}
	p.wanted++
	if p.scheduled {
		return
	}
	p.scheduled, p.settled = true, make(chan struct{})
	go p.evaluate()
}

func (p *project) close() {
	p.closed = true
	p.server.log(logInfo, "%s: closed", p.dir)
}

// delay is the time between a change and its evaluation.
func (p *project) delay() time.Duration {
	if p.last == nil {
		return 0
	}
	return max(shortestDelay, min(p.last.took/2, longestDelay))
}

// evaluate evaluates the project until the result is of the last change.
func (p *project) evaluate() {
	s := p.server
	for settled := false; !settled; {
		s.mu.Lock()
		delay := p.delay()
		s.mu.Unlock()
		time.Sleep(delay)
		s.evaluating <- struct{}{}
		s.mu.Lock()
		wanted := p.wanted
		e := &evaluation{dir: p.dir, versions: map[string]int{}}
		options := s.options
		options.Changed = s.texts(p.dir)
		for path, d := range s.documents {
			e.versions[path] = d.version
		}
		closed := p.closed
		s.mu.Unlock()
		if !closed {
			e.run(s, options)
		}
		<-s.evaluating
		s.mu.Lock()
		settled = p.closed || p.wanted == wanted
		if !p.closed {
			p.accept(e)
		}
		if e.isAbandoned() {
			s.abandoned = true
			s.conn.Close()
		}
		if settled {
			p.scheduled = false
			close(p.settled)
		}
		s.mu.Unlock()
	}
}

// texts returns the open files by their name from a folder. The server is locked.
func (s *server) texts(dir string) map[string][]byte {
	texts := map[string][]byte{}
	for path, d := range s.documents {
		if name, err := filepath.Rel(dir, path); err == nil {
			texts[filepath.ToSlash(name)] = []byte(d.text)
		}
	}
	return texts
}

// run evaluates the configuration. A panic is an error of this evaluation.
func (e *evaluation) run(s *server, options compiler.Options) {
	started := time.Now()
	e.err = s.guard(e.dir, func() (err error) {
		if e.project, err = options.Open(e.dir); err == nil {
			e.project.Verify()
		}
		return err
	})
	e.texts = map[string]*lines{}
	if e.err != nil {
		e.project = nil
	} else {
		for _, name := range e.project.Config.Sources.Names() {
			e.texts[e.path(name)] = newLines(string(e.project.Config.Sources.Text(name)))
		}
	}
	e.took = time.Since(started)
}

// path is the path of a file by its name in positions.
func (e *evaluation) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.FromSlash(name)
	}
	return filepath.Join(e.dir, filepath.FromSlash(name))
}

// name is the name of a file in positions by its path.
func (e *evaluation) name(path string) string {
	if name, err := filepath.Rel(e.dir, path); err == nil {
		return filepath.ToSlash(name)
	}
	return path
}

// hasValues reports whether the configuration could be evaluated. Where it has syntax errors, it could not.
func (e *evaluation) hasValues() bool {
	return e.project != nil && e.project.Project != nil
}

// isAbandoned reports whether evaluating CUE exceeded its bounds: it goes on, and nothing can stop it.
func (e *evaluation) isAbandoned() bool {
	return e.project != nil && slices.ContainsFunc(e.project.Report.All(), func(d diag.Diagnostic) bool {
		return d.ID == "YT0007" && languageOf(d.Pos.File) == ".cue"
	})
}

// accept takes the result of an evaluation and publishes its findings. The server is locked.
func (p *project) accept(e *evaluation) {
	s := p.server
	p.last = e
	if e.hasValues() && (len(e.project.Targets) > 0 || p.good == nil) {
		p.good = e
	}
	old := p.found
	p.found = e.diagnose(s)
	for _, path := range slices.Sorted(maps.Keys(old)) {
		if p.found[path] == nil {
			s.publish(path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.found)) {
		s.publish(path)
	}
	// A file that was attached to the nearest configuration may not be imported by it, and an
	// open file may have been imported now.
	for path := range p.files {
		if _, read := e.texts[path]; !read && filepath.Dir(path) != p.dir && e.hasValues() {
			delete(p.files, path)
			s.outside[path] = true
			s.log(logInfo, "%s is not part of a yoctune configuration: the one in %s does not import it", path, p.dir)
		}
	}
	for path := range s.outside {
		if p.reads(path) {
			delete(s.outside, path)
		}
	}
}

// isCurrent reports whether the evaluation is of the text that a file has now.
func (e *evaluation) isCurrent(path, text string) bool {
	l := e.texts[path]
	return l != nil && l.text == text
}
