// Package signature signs plans and verifies signatures, compatible with `minisign -S`
// and `minisign -V`.
//
// Signatures are of the hashed kind (Ed25519 over BLAKE2b-512) and hold no time,
// so that signing the same plan with the same key gives the same bytes.
package signature

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"aead.dev/minisign"
)

// Extension is appended to the name of a file to name the file of its signature.
const Extension = ".minisig"

// MaxSize bounds a signature or a key, in bytes.
const MaxSize = 4 << 10

// Reasons to refuse a signature.
var (
	ErrKey    = errors.New("not a minisign public key")
	ErrFormat = errors.New("not a minisign signature")
	ErrSigner = errors.New("signed by none of the keys")
	ErrForged = errors.New("the signature does not match the content")
)

// Key is a public key.
type Key struct{ key minisign.PublicKey }

// ID is the key's id as minisign writes it.
func (k Key) ID() string { return id(k.key.ID()) }

// String is the key as minisign -P takes it.
func (k Key) String() string { return k.key.String() }

// File is the content of the key's file.
func (k Key) File() []byte {
	return []byte("untrusted comment: minisign public key " + k.ID() + "\n" + k.key.String() + "\n")
}

func id(n uint64) string { return fmt.Sprintf("%016X", n) }

// ParseKey reads a public key: the content of a .pub file, or its second line
// alone. The error wraps [ErrKey].
func ParseKey(text []byte) (Key, error) {
	var k Key
	if len(text) > MaxSize {
		return k, fmt.Errorf("%w: it has %d bytes", ErrKey, len(text))
	}
	text = bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\r\n"), []byte("\n"))
	lines := bytes.Split(text, []byte("\n"))
	if len(lines) > 2 || len(lines) == 2 && !bytes.HasPrefix(lines[0], []byte("untrusted comment: ")) {
		return k, fmt.Errorf("%w: it has %d lines", ErrKey, len(lines))
	}
	if err := k.key.UnmarshalText(text); err != nil {
		return k, fmt.Errorf("%w: %s", ErrKey, reason(err))
	}
	return k, nil
}

// Signer identifies who signed something.
type Signer struct {
	KeyID   string
	Comment string // the trusted comment, which the signature covers
}

// Verify checks a signature over message by any of the keys. The error wraps [ErrFormat],
// [ErrSigner] or [ErrForged].
func Verify(keys []Key, message, sig []byte) (Signer, error) {
	var s minisign.Signature
	if len(sig) > MaxSize {
		return Signer{}, fmt.Errorf("%w: it has %d bytes", ErrFormat, len(sig))
	}
	if err := s.UnmarshalText(sig); err != nil {
		return Signer{}, fmt.Errorf("%w: %s", ErrFormat, reason(err))
	}
	known := false
	for _, k := range keys {
		if k.key.ID() != s.KeyID {
			continue
		}
		known = true
		if minisign.Verify(k.key, message, sig) {
			return Signer{KeyID: id(s.KeyID), Comment: s.TrustedComment}, nil
		}
	}
	if !known {
		return Signer{}, fmt.Errorf("%w: the signer is %s", ErrSigner, id(s.KeyID))
	}
	return Signer{}, fmt.Errorf("%w (key %s)", ErrForged, id(s.KeyID))
}

// reason removes the library's name from an error.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), "minisign: ")
}
