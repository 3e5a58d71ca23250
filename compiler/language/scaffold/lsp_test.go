package scaffold_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// editor is the side of an editor in the language server protocol: requests one
// after the other over the server's standard input and output.
type editor struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	file string // its URI
	ids  int
	// published holds the last diagnostics of each file.
	published map[string][]string
}

type packet struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params any             `json:"params,omitempty"`
}

func (e *editor) send(p packet) {
	e.t.Helper()
	text, err := json.Marshal(struct {
		packet
		Version string `json:"jsonrpc"`
	}{p, "2.0"})
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(text), text); err != nil {
		e.t.Fatal(err)
	}
}

// call sends a request and reads up to its answer.
func (e *editor) call(method string, params, result any) {
	e.t.Helper()
	e.ids++
	id := json.RawMessage(strconv.Itoa(e.ids))
	e.send(packet{ID: id, Method: method, Params: params})
	for {
		m := e.read()
		if m.Method != "" || string(m.ID) != string(id) {
			continue
		}
		if m.Error != nil {
			e.t.Fatalf("%s: %s", method, m.Error)
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			e.t.Fatalf("%s: %s: %v", method, m.Result, err)
		}
		return
	}
}

// message is anything that the server sends.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		URI         string `json:"uri"`
		Diagnostics []struct {
			Message string `json:"message"`
		} `json:"diagnostics"`
		Items []any `json:"items"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// read returns the next message and replies to requests of the server.
func (e *editor) read() message {
	e.t.Helper()
	header, err := textproto.NewReader(e.out).ReadMIMEHeader()
	if err != nil {
		e.t.Fatalf("reading from the server: %v", err)
	}
	n, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		e.t.Fatal(err)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(e.out, text); err != nil {
		e.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		e.t.Fatalf("%s: %v", text, err)
	}
	switch {
	case m.Method == "textDocument/publishDiagnostics":
		e.published[m.Params.URI] = nil
		for _, d := range m.Params.Diagnostics {
			e.published[m.Params.URI] = append(e.published[m.Params.URI], d.Message)
		}
	case m.Method != "" && m.ID != nil: // settings: there are none
		answer, err := json.Marshal(struct {
			ID      json.RawMessage `json:"id"`
			Version string          `json:"jsonrpc"`
			Result  []any           `json:"result"`
		}{m.ID, "2.0", make([]any, len(m.Params.Items))})
		if err != nil {
			e.t.Fatal(err)
		}
		fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(answer), answer)
	}
	return m
}

// requestAt is the place of a mark's end in a text, as the protocol counts.
func (e *editor) requestAt(text, mark string) map[string]any {
	e.t.Helper()
	before, _, ok := strings.Cut(text, mark)
	if !ok {
		e.t.Fatalf("%q is not in the file", mark)
	}
	before += mark
	return map[string]any{
		"textDocument": map[string]any{"uri": e.file},
		"position":     map[string]any{"line": strings.Count(before, "\n"), "character": len(before) - strings.LastIndexByte(before, '\n') - 1},
	}
}

func (e *editor) change(version int, text string) {
	e.send(packet{Method: "textDocument/didChange", Params: map[string]any{
		"textDocument": map[string]any{"uri": e.file, "version": version}, "contentChanges": []any{map[string]any{"text": text}},
	}})
}

// cueCommand finds CUE's own program, the judge of what a project holds.
func cueCommand(t *testing.T) string {
	t.Helper()
	cmd, err := exec.LookPath("cue")
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_CUE") != "" {
			t.Fatal("the cue command is not on the path, and YOCTUNE_REQUIRE_CUE is set")
		}
		t.Skip("the cue command is not installed: go install cuelang.org/go/cmd/cue@v0.17.1")
	}
	return cmd
}

// edit starts the language server on a new project and opens its configuration.
func edit(t *testing.T) (*editor, string) {
	t.Helper()
	cmd := cueCommand(t)
	dir, err := filepath.EvalSymlinks(project(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, cmd, "lsp")
	// Without a registry and a cache, the server has only the project's files.
	c.Dir, c.Env = dir, append(os.Environ(), "CUE_REGISTRY=none", "CUE_CACHE_DIR="+t.TempDir())
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, in: in, out: bufio.NewReader(out), published: map[string][]string{}, file: "file://" + filepath.Join(dir, "config.cue")}
	t.Cleanup(func() {
		var none any
		e.call("shutdown", nil, &none)
		e.send(packet{Method: "exit"})
		var exit *exec.ExitError
		if err := c.Wait(); err != nil && !errors.As(err, &exit) {
			t.Errorf("cue lsp: %v", err)
		}
	})
	text, err := os.ReadFile(filepath.Join(dir, "config.cue"))
	if err != nil {
		t.Fatal(err)
	}
	var can struct {
		Capabilities map[string]any `json:"capabilities"`
	}
	e.call("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": "file://" + dir,
		"workspaceFolders": []any{map[string]any{"uri": "file://" + dir, "name": "p"}},
		"capabilities":     map[string]any{"workspace": map[string]any{"configuration": true}},
	}, &can)
	for _, want := range []string{"hoverProvider", "definitionProvider", "completionProvider", "referencesProvider", "renameProvider", "documentFormattingProvider"} {
		if can.Capabilities[want] == nil {
			t.Errorf("the server has no %s: %v", want, can.Capabilities)
		}
	}
	e.send(packet{Method: "initialized", Params: map[string]any{}})
	e.send(packet{Method: "textDocument/didOpen", Params: map[string]any{
		"textDocument": map[string]any{"uri": e.file, "languageId": "cue", "version": 1, "text": string(text)},
	}})
	return e, string(text)
}

// docs/languages.md describes CUE's language server in a new project. These tests
// verify the description.
func TestEditorsShowFieldDocs(t *testing.T) {
	e, text := edit(t)
	for mark, want := range map[string]string{
		"boar":             "Module SKU, such as",
		"releas":           "meta-tegra branch",
		"sysct":            "Kernel parameters below /proc/sys",
		"storag":           "Block devices, by a glob",
		"\n\tlaye":         "Identity of the layer",
		"schedule":         "", // below a name of the user's own
		`"vm.dirty_ratio"`: "", // a key that belongs to the kernel
	} {
		var hover struct {
			Contents struct{ Value string }
		}
		e.call("textDocument/hover", e.requestAt(text, mark), &hover)
		if got := hover.Contents.Value; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("hover over %q: %q, want %q", mark, got, want)
		}
	}
}

func TestEditorsFindTheDefinitionInTheProject(t *testing.T) {
	e, text := edit(t)
	for _, mark := range []string{"boar", "releas", "sysct"} {
		var places []struct{ URI string }
		e.call("textDocument/definition", e.requestAt(text, mark), &places)
		if !slices.ContainsFunc(places, func(p struct{ URI string }) bool {
			return strings.HasSuffix(p.URI, "/cue.mod/pkg/github.com/yoctune/yoctune/schema/config.cue")
		}) {
			t.Errorf("the definition of %q: %v", mark, places)
		}
	}
}

func TestEditorsCompleteFieldsButNotValues(t *testing.T) {
	e, text := edit(t)
	const after = `storage: "nvme*": scheduler: "none"`
	for i, c := range []struct {
		add, mark string
		want      []string
		not       string
	}{
		{"\n\t\tme", "\n\t\tme", []string{"memory", "cpu", "gpu", "services", "pipelines"}, "thpDefrag"},
		{"\n\t\tmemory: {\n\t\t\tt\n\t\t}", "\n\t\t\tt", []string{"thp", "thpDefrag", "zram", "hugepages"}, "cpu"},
		{"\n\t\tmemory: thp: \"\"", `thp: "`, nil, "madvise"},
	} {
		changed := strings.Replace(text, after, after+c.add, 1)
		e.change(i+2, changed)
		var raw json.RawMessage
		e.call("textDocument/completion", e.requestAt(changed, c.mark), &raw)
		var list struct{ Items []struct{ Label string } }
		if raw[0] == '[' {
			if err := json.Unmarshal(raw, &list.Items); err != nil {
				t.Fatal(err)
			}
		} else if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, item := range list.Items {
			labels = append(labels, item.Label)
		}
		for _, want := range c.want {
			if !slices.Contains(labels, want) {
				t.Errorf("after %q: no %s in %v", c.add, want, labels)
			}
		}
		if slices.Contains(labels, c.not) {
			t.Errorf("after %q: %s is offered; docs/languages.md lists it as unsupported", c.add, c.not)
		}
	}
}

// The server does not evaluate during typing: yoctune vet finds these errors. Each time
// it publishes diagnostics, it publishes those of every open file.
func TestEditorsReportSyntaxButNotValues(t *testing.T) {
	e, text := edit(t)
	wrong := strings.NewReplacer(`scheduler: "none"`, `scheduler: "fast"`, "board:", "bord:").Replace(text)
	if wrong == text {
		t.Fatal("nothing to make wrong")
	}
	e.change(2, wrong)
	broken := strings.TrimSuffix(e.file, "config.cue") + "broken.cue"
	e.send(packet{Method: "textDocument/didOpen", Params: map[string]any{
		"textDocument": map[string]any{"uri": broken, "languageId": "cue", "version": 1, "text": "package line_camera\n\nlayer name: \"x\"\n"},
	}})
	for len(e.published[broken]) == 0 {
		e.read() // after a moment of quiet; the server's time is bounded
	}
	if got := e.published[e.file]; len(got) > 0 {
		t.Errorf("the server reports values now: %v; docs/languages.md lists that as unsupported", got)
	}
}

func TestEditorsFormat(t *testing.T) {
	e, text := edit(t)
	e.change(2, strings.Replace(text, "\t\trelease:", "  release:", 1))
	var edits []struct{ NewText string }
	e.call("textDocument/formatting", map[string]any{
		"textDocument": map[string]any{"uri": e.file}, "options": map[string]any{"tabSize": 4, "insertSpaces": false},
	}, &edits)
	if len(edits) == 0 {
		t.Error("no edit for a line out of place")
	}
}
