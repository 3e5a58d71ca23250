package schema

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Both sides of the plan import these folders, so their imports reach every program.
func TestSharedFoldersImportOnlyEachOtherAndTheStandardLibrary(t *testing.T) {
	const module = "github.com/yoctune/yoctune/schema/"
	shared := []string{"plan", "knob", "formats", "units"}
	// Reading or writing anything outside the arguments needs one of these.
	io := []string{"os", "net", "syscall", "os/exec", "os/signal", "os/user", "net/http", "runtime/cgo", "plugin", "C", "unsafe"}
	for _, room := range shared {
		files := 0
		err := filepath.WalkDir(room, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			files++
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				first, _, _ := strings.Cut(path, "/")
				within, ours := strings.CutPrefix(path, module)
				within, _, _ = strings.Cut(within, "/")
				switch {
				case slices.Contains(io, path):
					t.Errorf("%s imports %s, which does I/O", name, path)
				case strings.Contains(first, ".") && !(ours && slices.Contains(shared, within)):
					t.Errorf("%s imports %s, which is outside the standard library and %s{%s}", name, path, module, strings.Join(shared, ","))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if files == 0 {
			t.Errorf("schema/%s has no Go files", room)
		}
	}
}
