package boardfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/yoctune/yoctune/schema/formats/boardfile"
)

var update = flag.Bool("update", false, "rewrite docs/board.schema.json")

const schemaFile = "../../../docs/board.schema.json"

// sample is a device with each kind of fact.
func sample() *boardfile.File {
	return &boardfile.File{
		Model: "Board", Compatible: []string{"maker,board"}, Arch: "aarch64",
		CPUs:   &boardfile.CPUs{Present: "0-3", Policies: []boardfile.Policy{{CPUs: "0-3", MinHz: 6e8, MaxHz: 18e8, Hz: []int64{6e8, 18e8}, Governors: []string{"performance"}}}},
		Idle:   &boardfile.Idle{States: []boardfile.IdleState{{Name: "WFI", Latency: 1}}},
		Zones:  []boardfile.Zone{{Type: "cpu-thermal", Trips: []boardfile.Trip{{Type: "passive", Temp: -1, Writable: true}}}},
		Memory: &boardfile.Memory{Bytes: 1 << 30}, Kernel: &boardfile.Kernel{Release: "6.6.1", Version: "6.6", Options: map[string]string{"SMP": "y"}},
		Read: map[string]string{"model": "a", "compatible": "a", "arch": "a", "cpus": "a", "idle": "a", "thermal_zones": "a", "memory": "a", "kernel": "a"},
	}
}

func encode(t *testing.T, f *boardfile.File) []byte {
	t.Helper()
	text, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	f, err := boardfile.Decode(encode(t, sample()))
	if err != nil {
		t.Fatal(err)
	}
	if want := sample(); f.Cores() != 4 || !reflect.DeepEqual(f.CPUs, want.CPUs) || !reflect.DeepEqual(f.Read, want.Read) {
		t.Errorf("%+v", f)
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	whole := string(encode(t, sample()))
	replaced := func(old, with string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("the sample has no %s", old)
		}
		return strings.Replace(whole, old, with, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":              {"", "unexpected end"},
		"newer":              {replaced("yoctune.board/1", "yoctune.board/2"), `"yoctune.board/2"`},
		"unknown field":      {replaced(`"model"`, `"serial"`), `unknown field "serial"`},
		"two documents":      {whole + "{}", "after top-level value"},
		"no source":          {replaced(`"arch": "a",`, ""), "read.arch: the file does not name the source"},
		"source of nothing":  {replaced(`"arch": "a",`, `"arch": "a", "gpus": "a",`), "read.gpus: the file has no such fact"},
		"control characters": {replaced(`"maker,board"`, `"maker\nboard"`), "compatible.0: not a text"},
		"long text":          {replaced(`"maker,board"`, `"`+strings.Repeat("x", 300)+`"`), "compatible.0: not a text"},
		"no cores":           {replaced(`"present": "0-3"`, `"present": ""`), "cpus.present"},
		"absent core":        {replaced(`"cpus": "0-3"`, `"cpus": "0-7"`), "core 4 is in two policies or not present"},
		"falling steps":      {replaced("1800000000\n", "5\n"), "cpus.policies.0.hz: the values do not ascend"},
		"negative":           {replaced(`"bytes": 1073741824`, `"bytes": -1`), "memory.bytes: -1 is negative"},
		"no memory":          {replaced(`"bytes": 1073741824`, `"bytes": 0`), "memory.bytes: 0 bytes are no memory"},
		"many entries":       {replaced(`"maker,board"`, `"x"`+strings.Repeat(`,"x"`, 3000)), "compatible: more than"},
		"too large":          {whole + strings.Repeat(" ", boardfile.MaxSize), "larger than 4 MiB"},
	} {
		if _, err := boardfile.Decode([]byte(c.text)); !errors.Is(err, boardfile.ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestTheSchemaIsTheType also validates a board file against the schema, with a validator of
// others.
func TestTheSchemaIsTheType(t *testing.T) {
	want, err := json.MarshalIndent(schemaOf(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/board.schema.json is not up to date: run make update")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("board.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("board.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{string(encode(t, sample())): true, `{"$schema": "yoctune.board/1", "read": {}, "serial": "1"}`: false} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); (err == nil) != valid {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// schemaOf derives a JSON Schema from the type of a board file.
func schemaOf() map[string]any {
	s := schemaOfType(reflect.TypeFor[boardfile.File]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Board file of yoctune"
	s["properties"].(map[string]any)["$schema"] = map[string]any{"const": boardfile.Schema}
	return s
}

func schemaOfType(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOfType(t.Elem())
	case reflect.Struct:
		fields := map[string]any{}
		required := []string{}
		for i := range t.NumField() {
			name, rest, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields[name] = schemaOfType(t.Field(i).Type)
			if rest == "" {
				required = append(required, name)
			}
		}
		return map[string]any{"type": "object", "properties": fields, "required": required, "additionalProperties": false}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOfType(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOfType(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string", "maxLength": 256}
	}
	return map[string]any{"type": "integer"}
}

func FuzzDecode(f *testing.F) {
	text, err := sample().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"$schema":"yoctune.board/1","cpus":{"present":"0-99999"},"read":{"cpus":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := boardfile.Decode(data)
		if err != nil {
			if !errors.Is(err, boardfile.ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		again, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := boardfile.Decode(again); err != nil {
			t.Fatalf("what was decoded is not decoded again: %v", err)
		}
	})
}

func TestADeviceIsListedOnce(t *testing.T) {
	f := sample()
	f.Network = []boardfile.Interface{{Name: "eth0"}, {Name: "can0"}, {Name: "eth0"}}
	f.Read["network"] = "/sys/class/net"
	if _, err := f.Encode(); err == nil || !strings.Contains(err.Error(), `network.2.name: "eth0" is there twice`) {
		t.Error(err)
	}
}
