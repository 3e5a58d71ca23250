package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Errors of reading a plan; test with errors.Is.
var (
	ErrSyntax = errors.New("not a plan")
	ErrSchema = errors.New("unsupported plan schema")
	ErrDigest = errors.New("plan digest does not match its content")
	ErrFormat = errors.New("the plan's format is too old for its content")
)

// Format returns the newest format that a version of yoctuned reads.
func Format(version string) int {
	if strings.HasPrefix(version, "0.1.") {
		return 1
	}
	return 2
}

// Seal sets Schema and Digest and orders what has no order of its own. Every
// producer of a plan calls it last.
func (p *Plan) Seal() error { return p.SealAs(2) }

// SealAs seals the plan in format 1 or 2. The error is [ErrFormat] and names the fields that
// the format lacks.
func (p *Plan) SealAs(format int) error {
	p.Schema = Schema
	if format == 1 {
		if newer := fieldsSince2("", reflect.ValueOf(*p)); len(newer) > 0 {
			return fmt.Errorf("%w: format 1, which yoctuned 0.1 reads, has no %s", ErrFormat, strings.Join(newer, ", "))
		}
		p.Schema = schema1
	}
	if p.Rollback == "" {
		p.Rollback = "keep"
	}
	if p.Settings == nil {
		p.Settings = []Setting{}
	}
	if p.Units == nil {
		p.Units = []Unit{}
	}
	if p.Pipelines == nil {
		p.Pipelines = map[string]Pipeline{}
	}
	if p.Power != nil && p.Power.Modes == nil {
		p.Power.Modes = []PowerMode{}
	}
	d, err := p.digest()
	p.Digest = d
	return err
}

// fieldsSince2 returns the paths of the fields in use that format 1 lacks, sorted.
func fieldsSince2(path string, v reflect.Value) []string {
	var out []string
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return fieldsSince2(path, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag
			name, _, _ := strings.Cut(tag.Get("json"), ",")
			name = strings.TrimPrefix(path+"."+name, ".")
			if tag.Get("since") == "" {
				out = append(out, fieldsSince2(name, v.Field(i))...)
			} else if !isEmpty(v.Field(i)) {
				out = append(out, name)
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			out = append(out, fieldsSince2(path+"."+it.Key().String(), it.Value())...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = append(out, fieldsSince2(path+"."+strconv.Itoa(i), v.Index(i))...)
		}
	}
	slices.Sort(out)
	return out
}

func (p *Plan) digest() (string, error) {
	t, err := toTree(p)
	if err != nil {
		return "", err
	}
	// The digest field itself is outside, absent rather than empty, so that the
	// rule "everything but itself" holds for any implementation.
	if m, ok := t.(map[string]any); ok {
		delete(m, "digest")
	}
	b, err := encode(t)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Encode returns the canonical plan.json.
func (p *Plan) Encode() ([]byte, error) { return Canonical(p) }

// Encode returns the canonical plan.origins.json.
func (o Origins) Encode() ([]byte, error) { return Canonical(o) }

// Canonical encodes v as JSON with sorted keys, two-space indentation, no HTML
// escaping, and a newline at the end. Floats with a fraction are refused: a plan
// holds integers in base units, or decimal text.
func Canonical(v any) ([]byte, error) {
	t, err := toTree(v)
	if err != nil {
		return nil, err
	}
	return encode(t)
}

// toTree converts v to maps, lists and scalars, as encoding/json would write it; a test
// compares the two. It handles the types of plans and leaves others to encoding/json. It
// exists for speed: a build encodes a plan twice, and a device once at every start.
func toTree(v any) (any, error) { return valueTree(reflect.ValueOf(v)) }

func valueTree(v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return valueTree(v.Elem())
	case reflect.Struct:
		m := make(map[string]any, v.NumField())
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "" || f.Anonymous {
				return treeFromJSON(v)
			}
			if options == "omitempty" && isEmpty(v.Field(i)) {
				continue
			}
			t, err := valueTree(v.Field(i))
			if err != nil {
				return nil, err
			}
			m[name] = t
		}
		return m, nil
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return treeFromJSON(v)
		}
		if v.IsNil() {
			return nil, nil
		}
		m := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			t, err := valueTree(it.Value())
			if err != nil {
				return nil, err
			}
			m[it.Key().String()] = t
		}
		return m, nil
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return treeFromJSON(v)
		}
		if v.IsNil() {
			return nil, nil
		}
		list := make([]any, v.Len())
		for i := range list {
			t, err := valueTree(v.Index(i))
			if err != nil {
				return nil, err
			}
			list[i] = t
		}
		return list, nil
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return json.Number(strconv.FormatInt(v.Int(), 10)), nil
	}
	return treeFromJSON(v)
}

// isEmpty reports whether omitempty leaves v out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func treeFromJSON(v reflect.Value) (any, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v.Interface()); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(&raw)
	dec.UseNumber()
	var t any
	err := dec.Decode(&t)
	return t, err
}

func encode(tree any) ([]byte, error) {
	var out bytes.Buffer
	if err := writeCanonical(&out, tree, 0); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func writeCanonical(w *bytes.Buffer, v any, depth int) error {
	indent := func(n int) {
		w.WriteByte('\n')
		for range n {
			w.WriteString("  ")
		}
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.WriteString("{}")
			return nil
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		w.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				w.WriteByte(',')
			}
			indent(depth + 1)
			if err := writeString(w, k); err != nil {
				return err
			}
			w.WriteString(": ")
			if err := writeCanonical(w, v[k], depth+1); err != nil {
				return err
			}
		}
		indent(depth)
		w.WriteByte('}')
	case []any:
		if len(v) == 0 {
			w.WriteString("[]")
			return nil
		}
		w.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				w.WriteByte(',')
			}
			indent(depth + 1)
			if err := writeCanonical(w, e, depth+1); err != nil {
				return err
			}
		}
		indent(depth)
		w.WriteByte(']')
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return fmt.Errorf("plan: number %s is not an integer", v)
		}
		w.WriteString(v.String())
	case string:
		return writeString(w, v)
	case bool:
		fmt.Fprintf(w, "%t", v)
	case nil:
		w.WriteString("null")
	default:
		return fmt.Errorf("plan: cannot encode %T", v)
	}
	return nil
}

func writeString(w *bytes.Buffer, s string) error {
	if isPlain(s) {
		w.WriteByte('"')
		w.WriteString(s)
		w.WriteByte('"')
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	w.Write(bytes.TrimRight(b.Bytes(), "\n"))
	return nil
}

// isPlain reports whether JSON writes s without escapes, as is true of most strings.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// MaxSize bounds what Decode reads: a plan is data from outside.
const MaxSize = 16 << 20

// isMajor reports whether a schema has the major version of another: "yoctune.plan/2" and
// "yoctune.plan/2.4" have.
func isMajor(schema, other string) bool {
	return schema == other || strings.HasPrefix(schema, other+".")
}

// Decode reads a plan of format 1 or 2, refusing an unknown schema major, unknown fields,
// trailing data, and a digest that does not match. The error wraps ErrSyntax,
// ErrSchema or ErrDigest.
func Decode(r io.Reader) (*Plan, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxSize {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrSyntax, MaxSize)
	}
	var head struct {
		Schema string `json:"$schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	if !isMajor(head.Schema, Schema) && !isMajor(head.Schema, schema1) {
		return nil, fmt.Errorf("%w: %q; this program reads %q and older, and a newer yoctuned may read the plan", ErrSchema, head.Schema, Schema)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var p Plan
	if err := dec.Decode(&p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: data after the document", ErrSyntax)
	}
	if newer := fieldsSince2("", reflect.ValueOf(p)); isMajor(p.Schema, schema1) && len(newer) > 0 {
		return nil, fmt.Errorf("%w: format 1 has no %s", ErrSyntax, strings.Join(newer, ", "))
	}
	want, err := p.digest()
	if err != nil {
		return nil, err
	}
	if want != p.Digest {
		return nil, fmt.Errorf("%w: its digest is %q, that of its content %q", ErrDigest, p.Digest, want)
	}
	return &p, nil
}
