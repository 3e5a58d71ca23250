package rootfs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoConfig says that a kernel does not tell how it was configured.
var ErrNoConfig = errors.New("the kernel's configuration is nowhere to be read")

// maxConfig bounds a kernel configuration, in bytes. Those of arm64
// distributions have about 300,000.
const maxConfig = 4 << 20

// KernelOptions is the configuration that a kernel was built with.
type KernelOptions struct {
	Path string // the file that says so
	text []byte
}

// ReadKernelOptions reads the running kernel's configuration: /proc/config.gz
// where it has CONFIG_IKCONFIG_PROC, else what is installed for its release in
// /boot or beside its modules. The error is [ErrNoConfig] where there is none,
// and then names the places; a file that is there and cannot be read is another
// error.
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
	return nil, fmt.Errorf("%w: it has no CONFIG_IKCONFIG_PROC, and none of %s is there", ErrNoConfig, strings.Join(places, ", "))
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

// Get returns an option as .config writes it: y, m, a number, or text in
// quotes. One that is off is "n", whether the file says so or does not mention
// it.
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
