package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOldestAnswersAreEvicted(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	for i := range maxAnswers + 5 {
		if err := s.Put(string(rune('a'+i%26))+string(rune('a'+i/26)), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	if err != nil || len(files) != maxAnswers {
		t.Errorf("%d are kept (%v)", len(files), err)
	}
}

func TestDamagedEntriesAreRemoved(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	if _, err := s.Get("k"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty store returns %v", err)
	}
	if err := s.Put("k", []byte("answer\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get("k"); err != nil || string(got) != "answer\n" {
		t.Fatalf("kept %q, %v", got, err)
	}
	raw, err := os.ReadFile(s.file("k"))
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-2] ^= 1
	if err := os.WriteFile(s.file("k"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get("k"); !errors.Is(err, errDamaged) {
		t.Errorf("a damaged answer is %q, %v", got, err)
	}
	if err := (Store{}).Put("k", []byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := (Store{}).Get("k"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store without a folder keeps answers: %v", err)
	}
}
