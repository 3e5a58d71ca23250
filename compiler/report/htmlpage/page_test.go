package htmlpage

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"
)

// A browser runs and applies exactly what the page's policy has the digest of.
func TestContentSecurityPolicyAllowsOwnBlocksOnly(t *testing.T) {
	var b bytes.Buffer
	err := Report{Title: "x</title><script>", Parts: `{{define "nav"}}{{.}}{{end}}{{define "main"}}{{.}}{{end}}`, Data: "<script>bad</script>"}.Write(&b)
	if err != nil {
		t.Fatal(err)
	}
	page := b.String()
	policy := html.UnescapeString(regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1])
	for _, block := range []string{"style", "script"} {
		found := regexp.MustCompile(`(?s)<`+block+`>(.*?)</`+block+`>`).FindAllStringSubmatch(page, -1)
		if len(found) != 1 {
			t.Fatalf("%d %s blocks", len(found), block)
		}
		if want := block + "-src " + digest(found[0][1]); !strings.Contains(policy, want) {
			t.Errorf("the policy %q does not allow the page's own %s, %s", policy, block, want)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'") || regexp.MustCompile(`(?i)(src|href)="[^"#]`).MatchString(page) {
		t.Error("the page may load something")
	}
}

// Light and dark have the same colours to fill in.
func TestEveryColourHasADarkVariant(t *testing.T) {
	names := regexp.MustCompile(`(--[a-z-]+):#`)
	roots := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(style, -1)
	if len(roots) != 2 {
		t.Fatalf("%d :root blocks, want light and dark", len(roots))
	}
	for _, m := range names.FindAllStringSubmatch(roots[0][1], -1) {
		if !strings.Contains(roots[1][1], m[1]+":") {
			t.Errorf("%s has no dark value", m[1])
		}
	}
}
