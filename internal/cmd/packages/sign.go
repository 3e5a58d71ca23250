package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/yoctune/yoctune/internal/signature"
)

const sums = "SHA256SUMS"

// sign writes the digests of the release, and signs them with the keys that there are.
func sign(dist string) error {
	entries, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), sums) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dist, e.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		fmt.Fprintf(&text, "%s  %s\n", hex.EncodeToString(sum[:]), e.Name())
	}
	file := filepath.Join(dist, sums)
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		return err
	}
	for _, old := range []string{".minisig", ".sig"} { // of other digests
		if err := os.Remove(file + old); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	minisigned, err := signMinisign(file, text.String())
	if err != nil {
		return err
	}
	cosigned, err := signCosign(file)
	if err != nil {
		return err
	}
	if !minisigned && !cosigned {
		fmt.Println("packages: SHA256SUMS is not signed: neither YOCTUNE_RELEASE_KEY nor COSIGN_KEY is set")
	}
	return nil
}

// signMinisign signs with the secret key in the file YOCTUNE_RELEASE_KEY, whose password is
// YOCTUNE_SIGN_PASSWORD.
func signMinisign(file, text string) (bool, error) {
	name := os.Getenv("YOCTUNE_RELEASE_KEY")
	if name == "" {
		return false, nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return false, fmt.Errorf("YOCTUNE_RELEASE_KEY: %w", err)
	}
	key, err := signature.Open(raw, os.Getenv("YOCTUNE_SIGN_PASSWORD"))
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, os.WriteFile(file+".minisig", key.Sign([]byte(text), sums), 0o644)
}

// signCosign signs with cosign and the key COSIGN_KEY, without a transparency log, so that
// the signature is verified offline.
func signCosign(file string) (bool, error) {
	key := os.Getenv("COSIGN_KEY")
	if key == "" {
		return false, nil
	}
	cosign, err := exec.LookPath("cosign")
	if err != nil {
		return false, fmt.Errorf("COSIGN_KEY is set: %w", err)
	}
	cmd := exec.Command(cosign, "sign-blob", "--yes", "--key", key, "--tlog-upload=false", "--output-signature", file+".sig", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		return false, fmt.Errorf("cosign: %w\n%s", err, out)
	}
	return true, nil
}
