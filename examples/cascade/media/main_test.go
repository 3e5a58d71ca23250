package main

import (
	"bytes"
	"os"
	"testing"
)

// The committed clip is exactly the output of this program.
func TestCommittedClipIsWhatTheGeneratorDraws(t *testing.T) {
	clip, text, err := render()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"belt.grey": clip, "belt.txt": text} {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what the generator draws; run: go run ./examples/cascade/media -o examples/cascade/media", name)
		}
	}
}
