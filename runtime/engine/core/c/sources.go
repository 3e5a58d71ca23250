package c

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"sync"
)

//go:embed *.c *.h
var sources embed.FS

// Sources returns the SHA-256 digest of the CPU backend's sources. Measurements of kernels
// are valid only for one digest.
var Sources = sync.OnceValue(func() string {
	h := sha256.New()
	entries, err := sources.ReadDir(".")
	for i := 0; err == nil && i < len(entries); i++ {
		var text []byte
		if text, err = sources.ReadFile(entries[i].Name()); err == nil {
			fmt.Fprintf(h, "%s %d\n", entries[i].Name(), len(text))
			h.Write(text)
		}
	}
	if err != nil { // cannot happen: the files are embedded
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
})
