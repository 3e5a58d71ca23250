package plan

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
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
		p.Units = slices.DeleteFunc(slices.Clone(p.Units), func(u Unit) bool { return strings.HasSuffix(u.Name, ".timer") })
		for i := range p.Units {
			p.Units[i].Properties = nil // nothing is enforced by them
		}
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

// fieldsSince2 returns the paths of the fields in use that format 1 lacks, or whose values it lacks, sorted.
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
			if known := tag.Get("format1"); known != "" {
				if value := v.Field(i).String(); value != "" && !slices.Contains(strings.Split(known, ","), value) {
					out = append(out, name+" "+strconv.Quote(value))
				}
			} else if tag.Get("since") == "" {
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
	// The digest field itself is outside, absent rather than empty, so that the
	// rule "everything but itself" holds for any implementation.
	b, err := canonical(p, "digest")
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
//
// A test compares it with encoding/json. It exists for speed: a build encodes a plan
// twice, and a device once at every start.
func Canonical(v any) ([]byte, error) { return canonical(v, "") }

// canonical encodes v without one field of its outermost struct.
func canonical(v any, without string) ([]byte, error) {
	w := canonicalWriter{without: without}
	const most = 16 << 10
	w.out.Grow(most)
	if err := w.write(reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	w.out.WriteByte('\n')
	if w.out.Len() > most {
		return w.out.Bytes(), nil
	}
	return bytes.Clone(w.out.Bytes()), nil
}

// canonicalWriter writes the types of plans, and converts others with encoding/json.
type canonicalWriter struct {
	out     bytes.Buffer
	depth   int
	without string
}

// member is a field of a struct in JSON.
type member struct {
	name      string
	index     int
	omitEmpty bool
}

// members holds the fields of a struct type sorted by name, or nil if encoding/json has to
// write it.
var members sync.Map // reflect.Type -> []member

func membersOf(t reflect.Type) []member {
	if known, ok := members.Load(t); ok {
		list, _ := known.([]member)
		return list
	}
	list := make([]member, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || f.Anonymous {
			list = nil
			break
		}
		list = append(list, member{name, i, options == "omitempty"})
	}
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.name, b.name) })
	members.Store(t, list)
	return list
}

var numberType = reflect.TypeFor[json.Number]()

func (w *canonicalWriter) write(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Invalid:
		w.out.WriteString("null")
	case reflect.Pointer, reflect.Interface:
		return w.write(v.Elem()) // invalid if nil
	case reflect.Struct:
		return w.writeStruct(v)
	case reflect.Map:
		return w.writeMap(v)
	case reflect.Slice:
		return w.writeList(v)
	case reflect.String:
		if v.Type() == numberType {
			return w.writeNumber(v.String())
		}
		return w.writeString(v.String())
	case reflect.Bool:
		w.out.Write(strconv.AppendBool(w.out.AvailableBuffer(), v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.out.Write(strconv.AppendInt(w.out.AvailableBuffer(), v.Int(), 10))
	default:
		return w.writeByJSON(v)
	}
	return nil
}

func (w *canonicalWriter) writeStruct(v reflect.Value) error {
	fields := membersOf(v.Type())
	if fields == nil && v.NumField() > 0 {
		return w.writeByJSON(v)
	}
	without := w.without
	w.without = ""
	return w.writeBlock('{', '}', func(next func()) error {
		for _, m := range fields {
			f := v.Field(m.index)
			if m.omitEmpty && isEmpty(f) || m.name == without {
				continue
			}
			next()
			if err := w.writeMember(m.name, f); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *canonicalWriter) writeMap(v reflect.Value) error {
	switch {
	case v.Type().Key().Kind() != reflect.String:
		return w.writeByJSON(v)
	case v.IsNil():
		w.out.WriteString("null")
		return nil
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return w.writeBlock('{', '}', func(next func()) error {
		for _, k := range keys {
			next()
			if err := w.writeMember(k.String(), v.MapIndex(k)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *canonicalWriter) writeList(v reflect.Value) error {
	switch {
	case v.Type().Elem().Kind() == reflect.Uint8:
		return w.writeByJSON(v)
	case v.IsNil():
		w.out.WriteString("null")
		return nil
	}
	return w.writeBlock('[', ']', func(next func()) error {
		for i := range v.Len() {
			next()
			if err := w.write(v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeBlock writes what is between two brackets, one item a line. content calls next before
// each item.
func (w *canonicalWriter) writeBlock(opening, closing byte, content func(next func()) error) error {
	const indents = "\n                                "
	indent := func() {
		w.out.WriteString(indents[:min(len(indents), 1+2*w.depth)])
		for range 2*w.depth - len(indents) + 1 {
			w.out.WriteByte(' ')
		}
	}
	w.out.WriteByte(opening)
	w.depth++
	empty := true
	err := content(func() {
		if !empty {
			w.out.WriteByte(',')
		}
		empty = false
		indent()
	})
	w.depth--
	if !empty {
		indent()
	}
	w.out.WriteByte(closing)
	return err
}

func (w *canonicalWriter) writeMember(name string, v reflect.Value) error {
	if err := w.writeString(name); err != nil {
		return err
	}
	w.out.WriteString(": ")
	return w.write(v)
}

func (w *canonicalWriter) writeNumber(n string) error {
	if strings.ContainsAny(n, ".eE") {
		return fmt.Errorf("plan: number %s is not an integer", n)
	}
	w.out.WriteString(n)
	return nil
}

func (w *canonicalWriter) writeString(s string) error {
	if isPlain(s) {
		w.out.WriteByte('"')
		w.out.WriteString(s)
		w.out.WriteByte('"')
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	w.out.Write(bytes.TrimRight(b.Bytes(), "\n"))
	return nil
}

func (w *canonicalWriter) writeByJSON(v reflect.Value) error {
	t, err := treeFromJSON(v)
	if err != nil {
		return err
	}
	return w.write(reflect.ValueOf(t))
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
	var text bytes.Buffer
	if known, ok := r.(interface{ Len() int }); ok {
		text.Grow(min(known.Len(), MaxSize) + bytes.MinRead)
	}
	if _, err := text.ReadFrom(io.LimitReader(r, MaxSize+1)); err != nil {
		return nil, err
	}
	b := text.Bytes()
	if len(b) > MaxSize {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrSyntax, MaxSize)
	}
	var p Plan
	if err := decodeStrictly(b, &p); err != nil {
		return nil, err
	}
	if isMajor(p.Schema, schema1) {
		if newer := fieldsSince2("", reflect.ValueOf(p)); len(newer) > 0 {
			return nil, fmt.Errorf("%w: format 1 has no %s", ErrSyntax, strings.Join(newer, ", "))
		}
	}
	if p.digestsText(b) {
		return &p, nil
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

// decodeStrictly decodes the text of a plan that has no unknown field and no data after it.
func decodeStrictly(b []byte, p *Plan) error {
	var text planText
	err := decodeAll(b, &text)
	*p = Plan(text.mostOfPlan)
	err = cmp.Or(err, decodePart(text.Power, &p.Power), decodePart(text.Pipelines, &p.Pipelines))
	schema := p.Schema
	if err != nil { // perhaps because of a field of a newer schema
		var head struct {
			Schema string `json:"$schema"`
		}
		if errors.Is(err, errMoreData) || json.Unmarshal(b, &head) != nil {
			return fmt.Errorf("%w: %w", ErrSyntax, err)
		}
		schema = head.Schema
	}
	switch {
	case !isMajor(schema, Schema) && !isMajor(schema, schema1):
		return fmt.Errorf("%w: %q; this program reads %q and older, and a newer yoctuned may read the plan", ErrSchema, schema, Schema)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return nil
}

// planText is a plan as it is decoded. The parts with the largest types are decoded where a plan
// has them: encoding/json takes longer to examine these types than to decode a plan of settings.
type planText struct {
	mostOfPlan
	Power     json.RawMessage `json:"power"`
	Pipelines json.RawMessage `json:"pipelines"`
}

type mostOfPlan Plan

// decodePart decodes a part of a plan that is not empty.
func decodePart[T any](text json.RawMessage, part *T) error {
	switch string(text) {
	case "", "null":
		return nil
	case "{}": // no pipelines: the type need not be examined
		if m, ok := any(part).(*map[string]Pipeline); ok {
			*m = map[string]Pipeline{}
			return nil
		}
	}
	return decodeAll(text, part)
}

var errMoreData = errors.New("data after the document")

// decodeAll decodes a text that has no unknown field and no data after it.
func decodeAll(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errMoreData
	}
	return nil
}

// digestsText reports whether the digest is that of the text that the plan was decoded from, as it
// is where the text has the canonical form. It saves encoding the plan again.
func (p *Plan) digestsText(text []byte) bool {
	line := []byte("\n  \"digest\": \"" + p.Digest + "\",")
	before, after, found := bytes.Cut(text, line)
	if !found {
		return false
	}
	sum := sha256.New()
	sum.Write(before)
	sum.Write(after)
	return p.Digest == "sha256:"+hex.EncodeToString(sum.Sum(nil))
}
