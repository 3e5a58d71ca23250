package emitters_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"text/template/parse"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
)

// Every value a template writes goes through the quoting of the place it lands
// in: the last command of each action is a sink.
func TestTemplateActionsEndInSinks(t *testing.T) {
	sinks := emitters.Sinks()
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".tmpl") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tmpl, err := template.New(path).Funcs(emitters.Funcs()).Parse(string(raw))
		if err != nil {
			return err
		}
		for _, u := range tmpl.Templates() {
			walk(u.Root, func(a *parse.ActionNode) {
				seen++
				last := a.Pipe.Cmds[len(a.Pipe.Cmds)-1]
				id, ok := last.Args[0].(*parse.IdentifierNode)
				if len(a.Pipe.Decl) == 0 && (!ok || !sinks[id.Ident]) {
					t.Errorf("%s:%d: {{%s}} is written as it is; end it with a sink", path, a.Line, a.Pipe)
				}
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("only %d actions seen", seen)
	}
}

func walk(n parse.Node, visit func(*parse.ActionNode)) {
	branch := func(b parse.BranchNode) {
		walk(b.List, visit)
		if b.ElseList != nil {
			walk(b.ElseList, visit)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, c := range n.Nodes {
			walk(c, visit)
		}
	case *parse.ActionNode:
		visit(n)
	case *parse.IfNode:
		branch(n.BranchNode)
	case *parse.RangeNode:
		branch(n.BranchNode)
	case *parse.WithNode:
		branch(n.BranchNode)
	}
}

// A template function that answers differently each time would make two builds
// of one configuration differ.
func TestTemplateFunctionsAreDeterministic(t *testing.T) {
	for _, name := range []string{
		"now", "date", "ago", "env", "expandenv", "getHostByName", "uuidv4", "randAlpha", "randInt", "randBytes",
		"shuffle", "genPrivateKey", "genCA", "genSelfSignedCert", "genSignedCert", "htpasswd", "bcrypt", "encryptAES", "derivePassword",
	} {
		if _, ok := emitters.Funcs()[name]; ok {
			t.Errorf("%s is callable", name)
		}
	}
}

func TestRefusalNamesTheConfigurationField(t *testing.T) {
	tmpl := emitters.NewTemplate("test", `{{cause "t" "one"}}{{bb .A}} {{cause "t" "two"}}{{bb .B}}`)
	_, refs, err := tmpl.Render(map[string]string{"A": "x", "B": "y"})
	if err != nil || len(refs) != 2 {
		t.Fatalf("refs %v, %v", refs, err)
	}
	_, _, err = tmpl.Render(map[string]string{"A": "x", "B": "${@1}"})
	var at *emitters.Error
	var why *quote.Error
	if !errors.As(err, &at) || at.Ref != (emitters.Ref{Target: "t", ID: "two"}) || !errors.As(err, &why) || why.Value != "${@1}" {
		t.Errorf("got %v", err)
	}
	if _, _, err := tmpl.Render(map[string]string{"A": "x"}); err == nil {
		t.Error("a missing value passes")
	}
}
