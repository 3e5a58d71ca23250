package rootfs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoConfig reports that the kernel's configuration is not installed anywhere.
var ErrNoConfig = errors.New("no kernel configuration found")

// maxConfig bounds a kernel configuration, in bytes. Those of arm64 distributions have about
// 300,000.
const maxConfig = 4 << 20

// KernelOptions is the configuration that a kernel was built with.
type KernelOptions struct {
	Path string // of the file
	text []byte
}

// ReadKernelOptions reads the running kernel's configuration from /proc/config.gz, which
// needs CONFIG_IKCONFIG_PROC, or from /boot or the directory of its modules. The error is
// [ErrNoConfig] if none of the files exists.
func ReadKernelOptions(dev FS) (*KernelOptions, error) {
	release := Identify(dev).Kernel
	places := []string{"/proc/config.gz"}
	if release != "" && !strings.ContainsAny(release, "/\x00") {
		places = append(places, "/boot/config-"+release, "/lib/modules/"+release+"/config",
			"/usr/lib/modules/"+release+"/config", "/lib/modules/"+release+"/build/.config")
	}
	for _, place := range places {
		text, err := readConfig(dev, place)
		switch {
		case err == nil:
			return &KernelOptions{Path: place, text: text}, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, ErrPath):
			return nil, fmt.Errorf("kernel configuration: %w", err)
		}
	}
	return nil, fmt.Errorf("%w: CONFIG_IKCONFIG_PROC is off, and none of %s exists", ErrNoConfig, strings.Join(places, ", "))
}

func readConfig(dev FS, name string) ([]byte, error) {
	raw, err := dev.ReadFile(name, maxConfig)
	if err != nil || !bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		return raw, err
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > maxConfig {
		return nil, fmt.Errorf("%s: %w", name, ErrTooLarge)
	}
	return text, nil
}

// Get returns an option as in .config: y, m, a number, or text in quotes. It returns "n" for
// an option that is off or missing.
func (o *KernelOptions) Get(symbol string) string {
	line := []byte("CONFIG_" + symbol + "=")
	for rest := o.text; ; {
		i := bytes.Index(rest, line)
		if i < 0 {
			return "n"
		}
		if i == 0 || rest[i-1] == '\n' {
			value, _, _ := bytes.Cut(rest[i+len(line):], []byte("\n"))
			return string(bytes.TrimRight(value, "\r"))
		}
		rest = rest[i+len(line):]
	}
}

// Values returns the options that are y, m or a number. Texts are left out.
func (o *KernelOptions) Values() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(o.text)) {
		symbol, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		symbol, isOption := strings.CutPrefix(symbol, "CONFIG_")
		if ok && isOption && isPlainValue(value) {
			out[symbol] = value
		}
	}
	return out
}

// isPlainValue reports whether the value of an option is y, m or a number.
func isPlainValue(value string) bool {
	if value == "y" || value == "m" {
		return true
	}
	_, err := strconv.ParseInt(value, 0, 64)
	if err != nil {
		_, err = strconv.ParseUint(value, 0, 64)
	}
	return err == nil
}
