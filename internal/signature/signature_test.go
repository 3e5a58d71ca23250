package signature_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/scrypt"

	"github.com/yoctune/yoctune/internal/signature"
)

func generate(t testing.TB) signature.Secret {
	t.Helper()
	s, err := signature.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// minisign runs Debian's program in a folder of its own.
func minisign(t *testing.T, dir, input string, args ...string) error {
	t.Helper()
	program, err := exec.LookPath("minisign")
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_MINISIGN") != "" {
			t.Fatal(err)
		}
		t.Skip("minisign is not installed: ", err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	t.Logf("minisign %s: %s", strings.Join(args, " "), out)
	return err
}

func writeFile(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMinisignAcceptsOurSignaturesAndRefusesTampering(t *testing.T) {
	dir := t.TempDir()
	s := generate(t)
	plan := []byte("{\"serial\": 7}\n")
	writeFile(t, dir, "plan.json", plan)
	writeFile(t, dir, "plan.json.minisig", s.Sign(plan, "plan of line-camera\nforged line"))
	writeFile(t, dir, "key.pub", s.Public().File())
	// -H: only signatures of the hashed kind.
	if err := minisign(t, dir, "", "-V", "-H", "-p", "key.pub", "-m", "plan.json"); err != nil {
		t.Error(err)
	}
	if err := minisign(t, dir, "", "-V", "-P", s.Public().String(), "-m", "plan.json"); err != nil {
		t.Error(err)
	}
	writeFile(t, dir, "plan.json", []byte("{\"serial\": 8}\n"))
	if err := minisign(t, dir, "", "-V", "-p", "key.pub", "-m", "plan.json"); err == nil {
		t.Error("minisign accepts a plan that was changed: the test proves nothing")
	}
}

func TestMinisignSignaturesAreAccepted(t *testing.T) {
	dir := t.TempDir()
	plan := []byte("{\"serial\": 7}\n")
	writeFile(t, dir, "plan.json", plan)
	if err := minisign(t, dir, "", "-G", "-W", "-p", "key.pub", "-s", "key"); err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParseKey(get(t, dir, "key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range [][]string{nil, {"-l"}} { // hashed, and what old versions made
		if err := minisign(t, dir, "", append([]string{"-S", "-s", "key", "-m", "plan.json", "-t", "by hand"}, kind...)...); err != nil {
			t.Fatal(err)
		}
		sig := get(t, dir, "plan.json.minisig")
		who, err := signature.Verify([]signature.Key{generate(t).Public(), key}, plan, sig)
		if err != nil || who.Comment != "by hand" || who.KeyID != key.ID() {
			t.Errorf("%v: %+v, %v", kind, who, err)
		}
		if _, err := signature.Verify([]signature.Key{key}, append(plan, ' '), sig); !errors.Is(err, signature.ErrForged) {
			t.Errorf("%v: a changed plan: %v", kind, err)
		}
	}
}

func TestSecretKeysInteroperateWithMinisign(t *testing.T) {
	dir := t.TempDir()
	plan := []byte("{}\n")
	writeFile(t, dir, "plan.json", plan)
	if err := minisign(t, dir, "", "-G", "-W", "-p", "theirs.pub", "-s", "theirs"); err != nil {
		t.Fatal(err)
	}
	s, err := signature.Open(get(t, dir, "theirs"), "")
	if err != nil {
		t.Fatal(err)
	}
	if key, err := signature.ParseKey(get(t, dir, "theirs.pub")); err != nil || key.String() != s.Public().String() {
		t.Errorf("the public key is %s, minisign prints %s (%v)", s.Public(), key, err)
	}
	ours := generate(t)
	text, err := ours.File("")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "ours", text)
	if err := minisign(t, dir, "", "-S", "-s", "ours", "-m", "plan.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := signature.Verify([]signature.Key{ours.Public()}, plan, get(t, dir, "plan.json.minisig")); err != nil {
		t.Error(err)
	}
}

// encryptCheaply writes a secret key's file whose key derivation takes milliseconds: the file
// holds its cost, and minisign honours it.
func encryptCheaply(t *testing.T, s signature.Secret, password string) []byte {
	t.Helper()
	open, err := s.File("")
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(open), "\n")
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(body))
	if err != nil || len(b) != 158 {
		t.Fatal(len(b), err)
	}
	copy(b[2:], "Sc")
	copy(b[6:38], "a salt of thirty-two bytes, fixed")
	binary.LittleEndian.PutUint64(b[38:], 1<<15) // operations
	binary.LittleEndian.PutUint64(b[46:], 1<<30) // bytes
	sum := blake2b.Sum256(append([]byte("Ed"), b[54:126]...))
	copy(b[126:], sum[:])
	stream, err := scrypt.Key([]byte(password), b[6:38], 1024, 8, 1, 104)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range stream {
		b[54+i] ^= k
	}
	return []byte(head + "\n" + base64.StdEncoding.EncodeToString(b) + "\n")
}

func TestEncryptedKeyNeedsItsPassword(t *testing.T) {
	dir := t.TempDir()
	s := generate(t)
	plan := []byte("{}\n")
	file := encryptCheaply(t, s, "correct horse")
	if !signature.Encrypted(file) {
		t.Error("the key counts as not encrypted")
	}
	opened, err := signature.Open(file, "correct horse")
	if err != nil || opened.Public().String() != s.Public().String() {
		t.Errorf("the right password: %v", err)
	}
	for _, wrong := range []string{"", "correct  horse", "Correct horse"} {
		if _, err := signature.Open(file, wrong); !errors.Is(err, signature.ErrPassword) {
			t.Errorf("password %q: %v", wrong, err)
		}
	}
	writeFile(t, dir, "plan.json", plan)
	writeFile(t, dir, "key", file)
	if err := minisign(t, dir, "correct horse\n", "-S", "-s", "key", "-m", "plan.json"); err != nil {
		t.Error("minisign does not open it, so the file is not of its format: ", err)
	}
}

// At the full price, 1 GiB and seconds of a processor, once here and once in
// minisign.
func TestMinisignOpensOurEncryptedKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: encrypting a key takes 1 GiB of memory and seconds")
	}
	dir := t.TempDir()
	plan := []byte("{}\n")
	writeFile(t, dir, "plan.json", plan)
	s := generate(t)
	text, err := s.File("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "key", text)
	if err := minisign(t, dir, "correct horse\n", "-S", "-s", "key", "-m", "plan.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := signature.Verify([]signature.Key{s.Public()}, plan, get(t, dir, "plan.json.minisig")); err != nil {
		t.Error(err)
	}
}

func TestEachRefusalGivesItsReason(t *testing.T) {
	s, other := generate(t), generate(t)
	plan := []byte("{}\n")
	sig := s.Sign(plan, "plan")
	keys := []signature.Key{s.Public()}
	comment := bytes.Replace(sig, []byte("trusted comment: plan"), []byte("trusted comment: gone"), 1)
	for name, c := range map[string]struct {
		keys []signature.Key
		sig  []byte
		want error
	}{
		"another key":       {[]signature.Key{other.Public()}, sig, signature.ErrSigner},
		"no key":            {nil, sig, signature.ErrSigner},
		"empty":             {keys, nil, signature.ErrFormat},
		"rubbish":           {keys, []byte("rubbish\n\n\n\n"), signature.ErrFormat},
		"cut":               {keys, sig[:len(sig)-20], signature.ErrFormat},
		"huge":              {keys, bytes.Repeat([]byte("x"), 5000), signature.ErrFormat},
		"a changed comment": {keys, comment, signature.ErrForged},
	} {
		if _, err := signature.Verify(c.keys, plan, c.sig); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if !bytes.Equal(sig, s.Sign(plan, "plan")) {
		t.Error("signing twice gives two signatures")
	}
	for _, text := range []string{"", "RWQ", "untrusted comment: x\n", strings.Repeat("A", 56), string(sig)} {
		if _, err := signature.ParseKey([]byte(text)); !errors.Is(err, signature.ErrKey) {
			t.Errorf("%q passes as a key: %v", text, err)
		}
		if _, err := signature.Open([]byte(text), ""); err == nil {
			t.Errorf("%q passes as a secret key", text)
		}
	}
}

func FuzzVerify(f *testing.F) {
	s := generate(f)
	plan := []byte("{}\n")
	good := s.Sign(plan, "plan")
	f.Add(good)
	f.Add([]byte("untrusted comment: \n\ntrusted comment: \n"))
	f.Fuzz(func(t *testing.T, sig []byte) {
		who, err := signature.Verify([]signature.Key{s.Public()}, plan, sig)
		if err == nil && who.Comment != "plan" {
			t.Errorf("accepts %q", sig)
		}
		_, _ = signature.ParseKey(sig)
		if !signature.Encrypted(sig) { // a key of anyone's making may ask for 1 GiB
			_, _ = signature.Open(sig, "")
		}
	})
}
