// Command kernelfacts makes schema/facts/kernel/facts.bin from the facts of each
// kernel: JSON extracts (as kept outside this repository) or indexes written by
// `yoctune kernel index`.
//
//	kernelfacts -o facts.bin -from DIR [-index NAME=FILE]...
//
// DIR holds NAME.json or NAME.json.zst (the zstd program is used to expand the
// latter) and NAME.defconfig or NAME.tegra_defconfig for every embedded kernel.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

func main() {
	indexes := map[string]string{}
	flag.Func("index", "NAME=FILE: take a kernel from a file that yoctune kernel index wrote", func(s string) error {
		name, file, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("want NAME=FILE")
		}
		indexes[name] = file
		return nil
	})
	out := flag.String("o", "facts.bin", "file to write")
	from := flag.String("from", "", "folder with the extracts and base configurations")
	flag.Parse()
	if err := run(*from, *out, indexes); err != nil {
		fmt.Fprintln(os.Stderr, "kernelfacts:", err)
		os.Exit(1)
	}
}

func run(from, out string, indexes map[string]string) error {
	var entries []kernel.Entry
	for _, s := range kernel.Sets() {
		if file, ok := indexes[s.Name]; ok {
			e, err := readIndex(file, s.Name)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			entries = append(entries, e)
			report(s.Name, e)
			continue
		}
		t, err := readTree(from, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		base, err := readBase(from, s.Name)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		entries = append(entries, kernel.Entry{Tree: t, Base: base})
		report(s.Name, entries[len(entries)-1])
	}
	var b bytes.Buffer
	if err := kernel.Encode(&b, entries...); err != nil {
		return err
	}
	tmp := out + ".tmp"
	if err := os.WriteFile(tmp, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, out)
}

func report(name string, e kernel.Entry) {
	fmt.Fprintf(os.Stderr, "%-5s %6d symbols %3d choices %6d expressions, base %d lines\n",
		name, len(e.Tree.Symbols), len(e.Tree.Choices), len(e.Tree.Exprs), len(e.Base))
}

// readIndex reads an index and drops the positions, which nobody could look up.
func readIndex(file, name string) (kernel.Entry, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return kernel.Entry{}, err
	}
	t, base, err := kernel.Decode(data, "")
	if err != nil {
		return kernel.Entry{}, err
	}
	t.Name = name
	for i := range t.Symbols {
		for j := range t.Symbols[i].Defs {
			t.Symbols[i].Defs[j].File = -1
		}
	}
	return kernel.Entry{Tree: t, Base: base}, nil
}

func readBase(from, name string) ([]kernel.Value, error) {
	var data []byte
	var err error
	for _, suffix := range []string{".defconfig", ".tegra_defconfig"} {
		if data, err = os.ReadFile(filepath.Join(from, name+suffix)); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	var vs []kernel.Value
	sc := bufio.NewScanner(bytes.NewReader(data))
	for sc.Scan() {
		line := sc.Text()
		if rest, ok := strings.CutPrefix(line, "CONFIG_"); ok {
			if name, value, ok := strings.Cut(rest, "="); ok {
				vs = append(vs, kernel.Value{Name: name, Value: value})
			}
		} else if rest, ok := strings.CutPrefix(line, "# CONFIG_"); ok {
			if name, ok := strings.CutSuffix(rest, " is not set"); ok {
				vs = append(vs, kernel.Value{Name: name, Value: "n"})
			}
		}
	}
	return vs, sc.Err()
}

func readTree(from string, s kernel.Set) (*kernel.Tree, error) {
	path := filepath.Join(from, s.Name+".json")
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		data, err = exec.Command("zstd", "-dc", path+".zst").Output()
	}
	if err != nil {
		return nil, err
	}
	return fromJSON(data, s)
}

// extract is the JSON form: conditions are null, a name, {"c": constant}, or an
// operator with its operands.
type extract struct {
	Choices []struct {
		Prompt  json.RawMessage      `json:"p"`
		Visible json.RawMessage      `json:"pc"`
		Depends json.RawMessage      `json:"dep"`
		Default [][2]json.RawMessage `json:"def"`
		Members []string             `json:"m"`
		Opt     bool                 `json:"opt"`
		Type    string               `json:"t"`
	} `json:"choices"`
	OldChoice bool `json:"oldchoice"`
}

type symbol struct {
	Type string `json:"t"`
	Defs []struct {
		Prompt  json.RawMessage      `json:"p"`
		Visible json.RawMessage      `json:"pc"`
		Depends json.RawMessage      `json:"dep"`
		Select  [][2]json.RawMessage `json:"sel"`
		Imply   [][2]json.RawMessage `json:"imp"`
		Default [][2]json.RawMessage `json:"def"`
		Range   [][3]json.RawMessage `json:"rng"`
		Choice  *int32               `json:"ch"`
	} `json:"d"`
}

type reader struct {
	b   *kernel.Builder
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func null(m json.RawMessage) bool { return len(m) == 0 || string(m) == "null" }

func (r *reader) operand(m json.RawMessage) kernel.Ref {
	if len(m) > 0 && m[0] == '"' {
		var s string
		if err := json.Unmarshal(m, &s); err != nil {
			r.fail(err)
		}
		return r.b.Word(s)
	}
	var c struct {
		C string `json:"c"`
	}
	if err := json.Unmarshal(m, &c); err != nil {
		r.fail(fmt.Errorf("operand %s: %w", m, err))
	}
	return r.b.Quoted(c.C)
}

func (r *reader) expr(m json.RawMessage) kernel.ExprID {
	if null(m) {
		return kernel.Always
	}
	if m[0] != '[' {
		return r.b.Operand(r.operand(m))
	}
	var l []json.RawMessage
	if err := json.Unmarshal(m, &l); err != nil || len(l) < 2 {
		r.fail(fmt.Errorf("expression %s: %w", m, err))
		return kernel.Always
	}
	var op string
	if err := json.Unmarshal(l[0], &op); err != nil {
		r.fail(err)
	}
	switch op {
	case "!":
		return r.b.Expr(kernel.Not, int32(r.expr(l[1])), 0)
	case "&", "|":
		k := kernel.And
		if op == "|" {
			k = kernel.Or
		}
		a := r.expr(l[1])
		return r.b.Expr(k, int32(a), int32(r.expr(l[2])))
	}
	ops := map[string]kernel.Op{"=": kernel.Equal, "!=": kernel.Unequal, "<": kernel.Less,
		"<=": kernel.LessEqual, ">": kernel.Greater, ">=": kernel.GreaterEqual}
	k, ok := ops[op]
	if !ok {
		r.fail(fmt.Errorf("operator %q", op))
		return kernel.Always
	}
	a := r.operand(l[1])
	return r.b.Expr(k, int32(a), int32(r.operand(l[2])))
}

func (r *reader) targets(ms [][2]json.RawMessage) []kernel.Target {
	var ts []kernel.Target
	for _, m := range ms {
		ts = append(ts, kernel.Target{Symbol: r.operand(m[0]), If: r.expr(m[1])})
	}
	return ts
}

var types = map[string]kernel.Type{"bool": kernel.Bool, "tristate": kernel.Tristate,
	"int": kernel.Int, "hex": kernel.Hex, "string": kernel.String}

func fromJSON(data []byte, s kernel.Set) (*kernel.Tree, error) {
	var x extract
	if err := json.Unmarshal(data, &x); err != nil {
		return nil, err
	}
	r := &reader{b: kernel.NewBuilder(kernel.Tree{
		Name: s.Name, Release: s.Release, Arch: "arm64", ChoiceByOrder: !x.OldChoice,
		ZeroDefaults: s.Name == "6.12" || s.Name == "6.18",
	})}
	// The object's order is the files' order, which encoding/json drops.
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := seek(dec, "symbols"); err != nil {
		return nil, err
	}
	for range x.Choices {
		r.b.AddChoice()
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := tok.(string)
		var y symbol
		if err := dec.Decode(&y); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		fixed, isFixed := compiler(s)[name]
		var defs []kernel.Def
		for _, d := range y.Defs {
			def := kernel.Def{Depends: r.expr(d.Depends), Prompt: !null(d.Prompt), Visible: r.expr(d.Visible),
				Selects: r.targets(d.Select), Implies: r.targets(d.Imply), Choice: -1, File: -1}
			for _, m := range d.Default {
				def.Defaults = append(def.Defaults, kernel.Default{Value: r.expr(m[0]), If: r.expr(m[1])})
			}
			if isFixed {
				def.Defaults = []kernel.Default{{Value: r.b.Operand(r.b.Quoted(fixed))}}
			}
			for _, m := range d.Range {
				def.Ranges = append(def.Ranges, kernel.Range{Low: r.operand(m[0]), High: r.operand(m[1]), If: r.expr(m[2])})
			}
			if d.Choice != nil {
				def.Choice = *d.Choice
			}
			defs = append(defs, def)
		}
		i := r.b.Define(name)
		if i < 0 {
			return nil, fmt.Errorf("%s: not a symbol name", name)
		}
		sym := r.b.Symbol(i)
		sym.Type, sym.Defs = types[y.Type], defs
	}
	for i, c := range x.Choices {
		g := kernel.Group{Type: types[c.Type], Optional: c.Opt, Prompt: !null(c.Prompt),
			Depends: r.expr(c.Depends), Visible: r.expr(c.Visible), Defaults: r.targets(c.Default)}
		seen := map[string]bool{}
		for _, m := range c.Members {
			if !seen[m] {
				seen[m] = true
				g.Members = append(g.Members, r.b.Define(m))
			}
		}
		*r.b.Choice(int32(i)) = g
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.b.Tree(), nil
}

// compiler holds the symbols whose default is the answer of a probe. The
// extracts took every probe for a success, also those for clang and lld; these
// are the facts of the GNU toolchain that the recorded results were made with.
func compiler(s kernel.Set) map[string]string {
	ld := "24000"
	if s.Name == "5.10" {
		ld = "240000000" // before 5.12 ld-version.sh counted otherwise
	}
	return map[string]string{
		"CC_IS_GCC": "y", "GCC_VERSION": "120200", "CC_IS_CLANG": "n", "CLANG_VERSION": "0",
		"AS_IS_GNU": "y", "AS_IS_LLVM": "n", "AS_VERSION": "24000",
		"LD_IS_BFD": "y", "LD_VERSION": ld, "LD_IS_LLD": "n", "LLD_VERSION": "0",
		"RUST_IS_AVAILABLE": "n", "TOOLS_SUPPORT_RELR": "n", "CC_HAS_RANDSTRUCT": "n",
		"HAS_LTO_CLANG": "n", "HAVE_KMSAN_COMPILER": "n", "CLANG_SUPPORTS_DYNAMIC_FTRACE_WITH_REGS": "n",
		"CC_HAS_MIN_FUNCTION_ALIGNMENT": "n", "CC_HAS_COUNTED_BY": "n", "CC_HAS_INT128": "y",
	}
}

// seek moves dec into the object that is the top level's member called key.
func seek(dec *json.Decoder, key string) error {
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		if tok == key {
			_, err := dec.Token()
			return err
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return err
		}
	}
	return fmt.Errorf("no member %q", key)
}
