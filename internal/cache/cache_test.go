package cache

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheOldestAnswersGo(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	for i := range maxAnswers + 5 {
		s.Put(string(rune('a'+i%26))+string(rune('a'+i/26)), []byte("{}"))
	}
	files, err := filepath.Glob(filepath.Join(s.Dir, "*.json"))
	if err != nil || len(files) != maxAnswers {
		t.Errorf("%d are kept (%v)", len(files), err)
	}
}

func TestWhatIsDamagedIsNotKept(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	if _, ok := s.Get("k"); ok {
		t.Error("an empty store has an answer")
	}
	s.Put("k", []byte("answer\n"))
	if got, ok := s.Get("k"); !ok || string(got) != "answer\n" {
		t.Fatalf("kept %q, %t", got, ok)
	}
	raw, err := os.ReadFile(s.path("k"))
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-2] ^= 1
	if err := os.WriteFile(s.path("k"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok := s.Get("k"); ok {
		t.Errorf("a damaged answer is %q", got)
	}
	Store{}.Put("k", []byte("x"))
	if _, ok := (Store{}).Get("k"); ok {
		t.Error("a store without a folder keeps answers")
	}
}
