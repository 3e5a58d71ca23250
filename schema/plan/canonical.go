package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Errors of reading a plan; test with errors.Is.
var (
	ErrSyntax = errors.New("not a plan")
	ErrSchema = errors.New("unsupported plan schema")
	ErrDigest = errors.New("plan digest does not match its content")
)

// Seal sets Schema and Digest and orders what has no order of its own. Every
// producer of a plan calls it last.
func (p *Plan) Seal() error {
	p.Schema = Schema
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

// toTree converts v to maps, lists and scalars.
func toTree(v any) (any, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(&raw)
	dec.UseNumber()
	var t any
	err := dec.Decode(&t)
	return t, err
}

// encode writes a tree. encoding/json sorts the keys of maps.
func encode(tree any) ([]byte, error) {
	if err := checkIntegers(tree); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(tree)
	return out.Bytes(), err
}

// checkIntegers refuses a tree with a number that is not an integer.
func checkIntegers(tree any) error {
	switch v := tree.(type) {
	case map[string]any:
		for _, member := range v {
			if err := checkIntegers(member); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkIntegers(item); err != nil {
				return err
			}
		}
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return fmt.Errorf("plan: number %s is not an integer", v)
		}
	}
	return nil
}

// MaxSize bounds what Decode reads: a plan is data from outside.
const MaxSize = 16 << 20

// Decode reads a plan, refusing an unknown schema major, unknown fields,
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
	// "yoctune.plan/1" and "yoctune.plan/1.4" are both major 1.
	if head.Schema != Schema && !strings.HasPrefix(head.Schema, Schema+".") {
		return nil, fmt.Errorf("%w: %q, this program reads %q", ErrSchema, head.Schema, Schema)
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
	want, err := p.digest()
	if err != nil {
		return nil, err
	}
	if want != p.Digest {
		return nil, fmt.Errorf("%w: its digest is %q, that of its content %q", ErrDigest, p.Digest, want)
	}
	return &p, nil
}
