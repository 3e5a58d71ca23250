package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// BenchmarkLSP measures the time from a change of the text to its diagnostics in `yoctune lsp`,
// for the video example in each language, with `yoctune vet` of the same configuration as the
// reference. A change of a kernel option evaluates the kernel.
func BenchmarkLSP(b *testing.B) {
	yoctune := tool(b, "./cmd/yoctune", "-ldflags=-s -w")
	example := filepath.Join(repo(b), "examples", "video-analytics")
	for _, c := range []struct{ config, value, option string }{
		{filepath.Join(example, "config.cue"), `"vm.dirty_ratio": 10`, `NET_SCH_FQ:        "m"`},
		{filepath.Join(repo(b), "golden", "threeways", "hcl", "config.hcl"), `"vm.dirty_ratio" = 10`, `NET_SCH_FQ        = "m"`},
		{filepath.Join(repo(b), "golden", "threeways", "jsonnet", "config.jsonnet"), `'vm.dirty_ratio': 10`, `NET_SCH_FQ: 'm'`},
	} {
		dir := b.TempDir()
		if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "config.cue")); err != nil {
			b.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(dir, "."), os.DirFS(filepath.Dir(c.config))); err != nil && !strings.Contains(err.Error(), "exists") {
			b.Fatal(err)
		}
		name := filepath.Join(dir, filepath.Base(c.config))
		text, err := os.ReadFile(c.config)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			b.Fatal(err)
		}
		for _, kind := range []string{"value", "option"} {
			part := map[string]string{"value": c.value, "option": c.option}[kind]
			if !strings.Contains(string(text), part) {
				b.Fatalf("%s has no %s", c.config, part)
			}
			b.Run(strings.TrimPrefix(filepath.Ext(name), ".")+"/"+kind, func(b *testing.B) {
				vet := median(5, func() usage { return run(b, "", []int{0}, yoctune, "vet", dir) })
				e := newEditor(b, yoctune, name, string(text))
				var times []time.Duration
				i := 0
				for b.Loop() {
					i++
					changed := strings.Replace(string(text), part, strings.Replace(part, "10", fmt.Sprint(10+i%5), 1), 1)
					if kind == "option" { // a request that the cache does not have
						changed = strings.Replace(string(text), part, part+separator(name)+strings.NewReplacer("NET_SCH_FQ", "LOG_BUF_SHIFT", `"m"`, fmt.Sprint(12+i%9), "'m'", fmt.Sprint(12+i%9)).Replace(part), 1)
					}
					times = append(times, e.change(changed))
				}
				slices.Sort(times)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(times[len(times)/2])/1e6, "median-ms")
				b.ReportMetric(float64(times[len(times)-1])/1e6, "most-ms")
				b.ReportMetric(float64(vet.wall)/1e6, "vet-ms")
				b.ReportMetric(e.peak(), "peak-MB")
			})
		}
	}
}

// separator ends a field of a file's language.
func separator(name string) string {
	if filepath.Ext(name) == ".jsonnet" {
		return ", "
	}
	return "\n"
}

// editorSession is an editor with one open file.
type editorSession struct {
	tb        testing.TB
	cmd       *exec.Cmd
	conn      *jsonrpc2.Conn
	uri       string
	version   int
	published chan int
}

type stdio struct {
	io.Reader
	io.WriteCloser
}

func newEditor(tb testing.TB, yoctune, name, text string) *editorSession {
	tb.Helper()
	e := &editorSession{tb: tb, cmd: exec.Command(yoctune, "lsp"), uri: "file://" + name, published: make(chan int, 100)}
	e.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+tb.TempDir())
	in, err := e.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	e.conn = jsonrpc2.NewConn(context.Background(), jsonrpc2.NewBufferedStream(stdio{out, in}, jsonrpc2.VSCodeObjectCodec{}), e, jsonrpc2.SetLogger(log.New(io.Discard, "", 0)))
	e.call("initialize", map[string]any{"capabilities": map[string]any{}})
	e.notify("initialized", map[string]any{})
	e.version = 1
	e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": e.uri, "languageId": "x", "version": 1, "text": text}})
	e.wait()
	tb.Cleanup(func() {
		e.call("shutdown", nil)
		e.notify("exit", nil)
		if err := e.cmd.Wait(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// Handle implements [jsonrpc2.Handler].
func (e *editorSession) Handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
	if req.Method != "textDocument/publishDiagnostics" {
		return
	}
	var p struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
	}
	if req.Params != nil && json.Unmarshal(*req.Params, &p) == nil && p.URI == e.uri {
		e.published <- p.Version
	}
}

func (e *editorSession) call(method string, params any) {
	e.tb.Helper()
	if err := e.conn.Call(context.Background(), method, params, nil); err != nil {
		e.tb.Fatalf("%s: %v", method, err)
	}
}

func (e *editorSession) notify(method string, params any) {
	e.tb.Helper()
	if err := e.conn.Notify(context.Background(), method, params); err != nil {
		e.tb.Fatalf("%s: %v", method, err)
	}
}

// wait waits for the diagnostics of the last version.
func (e *editorSession) wait() {
	e.tb.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case v := <-e.published:
			if v == e.version {
				return
			}
		case <-limit:
			e.tb.Fatal("no diagnostics")
		}
	}
}

// change changes the text and returns the time until its diagnostics.
func (e *editorSession) change(text string) time.Duration {
	e.tb.Helper()
	e.version++
	start := time.Now()
	e.notify("textDocument/didChange", map[string]any{
		"textDocument": map[string]any{"uri": e.uri, "version": e.version}, "contentChanges": []any{map[string]any{"text": text}},
	})
	e.wait()
	return time.Since(start)
}

// peak is the memory that the two processes of the server had at most, in MB.
func (e *editorSession) peak() float64 {
	e.tb.Helper()
	total := 0
	pids := []string{fmt.Sprint(e.cmd.Process.Pid)}
	tasks, err := filepath.Glob("/proc/" + pids[0] + "/task/*/children")
	if err != nil {
		e.tb.Fatal(err)
	}
	for _, task := range tasks {
		if children, err := os.ReadFile(task); err == nil {
			pids = append(pids, strings.Fields(string(children))...)
		}
	}
	for _, pid := range pids {
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			continue // a child that evaluated and has ended
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		kb := 0
		if _, err := fmt.Sscan(rest, &kb); err != nil {
			e.tb.Fatal(err)
		}
		total += kb
	}
	return float64(total) / 1000
}
