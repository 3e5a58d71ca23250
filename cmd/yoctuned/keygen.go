package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/signature"
)

// deviceKey is the device's secret key, and its public key beside it.
const deviceKey = "/var/lib/yoctune/identity/device.key"

func newKeygenCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make the key that identifies this device",
		Long: `Make the device's key pair, in minisign's format and without a password, and print the
public key. The device signs measurements with it (yoctuned bench model --sign). A key
that exists is kept, and its public key printed.

Exit status: 0 the device has a key, 1 it cannot be made or read, 2 wrong usage.`,
		Example: `  yoctuned keygen
  yoctuned keygen --key device.key`,
		RunE: func(cmd *cobra.Command, _ []string) error { return makeDeviceKey(cmd, file) },
	}
	cmd.Flags().StringVar(&file, "key", "", "`FILE` of the secret key (default: "+deviceKey+")")
	return cmd
}

func makeDeviceKey(cmd *cobra.Command, file string) error {
	if file == "" {
		file = filepath.Join(rootDir(cmd), deviceKey)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("making the folder of the device's key: %w", err)
		}
	}
	public := file + ".pub"
	made := false
	secret, err := readSecret(file)
	if errors.Is(err, fs.ErrNotExist) {
		made = true
		if secret, err = signature.Generate(); err == nil {
			err = writeKeys(secret, file, public)
		}
	}
	if err != nil {
		return err
	}
	p := cli.NewPrinter(cmd)
	if p.JSON {
		p.Summary("keygen", struct {
			Secret string `json:"secret"`
			Public string `json:"public"`
			Key    string `json:"key"`
			Made   bool   `json:"made"`
		}{file, public, secret.Public().String(), made})
		return p.Err()
	}
	if !made {
		p.Printf("%s exists and is kept\n", file)
	}
	p.Printf("public key %s: %s\n", secret.Public().ID(), secret.Public())
	return p.Err()
}

// writeKeys writes new files; it never replaces a key.
func writeKeys(secret signature.Secret, file, public string) error {
	text, err := secret.File("")
	if err != nil {
		return err
	}
	if err := createKey(file, text, 0o600); err != nil {
		return err
	}
	if err := createKey(public, secret.Public().File(), 0o644); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

func createKey(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("writing the device's key: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing the device's key: %w", err), os.Remove(name))
	}
	return nil
}

// readDeviceKey reads the device's secret key; "" is the usual file.
func readDeviceKey(file string) (signature.Secret, error) {
	if file == "" {
		file = deviceKey
	}
	secret, err := readSecret(file)
	if errors.Is(err, fs.ErrNotExist) {
		return secret, fmt.Errorf("the device has no key (%s): run yoctuned keygen", file)
	}
	return secret, err
}

func readSecret(file string) (signature.Secret, error) {
	data, err := infile.Read(file, signature.MaxSize)
	if err != nil {
		return signature.Secret{}, fmt.Errorf("reading the device's key: %w", err)
	}
	secret, err := signature.Open(data, "")
	if err != nil {
		return secret, fmt.Errorf("%s: %w", file, err)
	}
	return secret, nil
}
