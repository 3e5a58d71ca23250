package signature

import (
	"errors"
	"fmt"
	"strings"

	"aead.dev/minisign"
)

// Reasons why a secret key cannot be opened.
var (
	ErrSecret   = errors.New("not a minisign secret key")
	ErrPassword = errors.New("wrong password")
)

// Secret is a secret key, opened.
type Secret struct{ key minisign.PrivateKey }

// Generate makes a key pair.
func Generate() (Secret, error) {
	_, key, err := minisign.GenerateKey(nil)
	if err != nil {
		return Secret{}, fmt.Errorf("making a key pair: %w", err)
	}
	return Secret{key}, nil
}

// Public returns the public key of the pair.
func (s Secret) Public() Key {
	return Key{s.key.Public().(minisign.PublicKey)}
}

// File is the content of the secret key's file, encrypted unless the password is
// empty. Encrypting takes 1 GiB of memory for a few seconds, as minisign's own
// keys do, to make guessing slow.
func (s Secret) File(password string) ([]byte, error) {
	seal := func() ([]byte, error) { return minisign.EncryptKey(password, s.key) }
	if password == "" {
		seal = s.key.MarshalText
	}
	text, err := seal()
	if err != nil {
		return nil, fmt.Errorf("writing the secret key: %w", err)
	}
	return append(text, '\n'), nil
}

// Encrypted reports whether a secret key's file needs a password.
func Encrypted(file []byte) bool { return minisign.IsEncrypted(trim(file)) }

// Open reads the content of a secret key's file. The error wraps [ErrSecret] or
// [ErrPassword].
func Open(file []byte, password string) (Secret, error) {
	var s Secret
	if len(file) > MaxSize {
		return s, fmt.Errorf("%w: it has %d bytes", ErrSecret, len(file))
	}
	file = trim(file)
	if !minisign.IsEncrypted(file) {
		if err := s.key.UnmarshalText(file); err != nil {
			return s, fmt.Errorf("%w: %s", ErrSecret, reason(err))
		}
		return s, nil
	}
	key, err := minisign.DecryptKey(password, file)
	if err != nil {
		return s, ErrPassword
	}
	return Secret{key}, nil
}

func trim(file []byte) []byte {
	return []byte(strings.TrimSpace(strings.ReplaceAll(string(file), "\r\n", "\n")))
}

// Sign signs message and the first line of comment.
func (s Secret) Sign(message []byte, comment string) []byte {
	comment, _, _ = strings.Cut(strings.ReplaceAll(comment, "\r", ""), "\n")
	r := minisign.NewReader(strings.NewReader(string(message)))
	var sink [4096]byte
	for {
		if _, err := r.Read(sink[:]); err != nil {
			break // the end of a string
		}
	}
	return r.SignWithComments(s.key, comment, "signature from yoctune, key "+s.Public().ID())
}
