package programs

import (
	"bytes"
	"compress/gzip"
	"crypto/md5" // as LIC_FILES_CHKSUM of bitbake; files are secured by SHA-256
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/yoctune/yoctune/emitters/quote"
)

// maxUnpacked bounds what an archive of the runtime unpacks to, in bytes.
const maxUnpacked = 512 << 20

// checkFile checks a file of a runtime folder by its role, so that recipes can use it.
func checkFile(e File, data []byte) error {
	if _, err := quote.FileName(e.URI); err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(e.Name, "-licenses"):
		return checkLicences(e, data)
	case strings.HasSuffix(e.Name, "-source"):
		return Unpackable(data)
	case strings.HasSuffix(e.Name, "-arm64"):
		if !strings.HasSuffix(e.URI, ".gz") {
			return errors.New("its name does not end in .gz")
		}
		program, err := unpack(data)
		if err != nil {
			return err
		}
		return checkProgram(program)
	}
	return nil
}

// checkLicences checks what a recipe states about licences.
func checkLicences(e File, text []byte) error {
	if len(e.Licences) == 0 {
		return fmt.Errorf("%s names no licenses of it", ManifestName)
	}
	for _, id := range e.Licences {
		if _, err := quote.Licence(id); err != nil {
			return fmt.Errorf("%s: %w", ManifestName, err)
		}
	}
	if sum := md5.Sum(text); hex.EncodeToString(sum[:]) != e.MD5 {
		return fmt.Errorf("its MD5 is not that of %s", ManifestName)
	}
	return nil
}

// Unpackable returns an error if data is not a whole gzip archive.
func Unpackable(data []byte) error {
	_, err := unpack(data)
	return err
}

func unpack(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return nil, errors.New("it is not a gzip archive")
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	var out []byte
	if err == nil {
		out, err = io.ReadAll(io.LimitReader(r, maxUnpacked))
	}
	if err != nil {
		return nil, fmt.Errorf("the archive is damaged: %w", err)
	}
	return out, nil
}

// checkProgram checks that a device can start a program: an ELF file for its processor, or
// a script.
func checkProgram(program []byte) error {
	if bytes.HasPrefix(program, []byte("#!")) {
		return nil
	}
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return errors.New("the archive contains no program")
	}
	if f.Machine != elf.EM_AARCH64 || f.Class != elf.ELFCLASS64 {
		return fmt.Errorf("the program is for %s, and Jetson boards are %s", f.Machine, elf.EM_AARCH64)
	}
	return nil
}

// CompareOrigin compares two archives with programs: both must be builds of one package for
// one platform. Builds on two machines pass, another program does not.
func CompareOrigin(was, now []byte) error {
	want, err := readOrigin(now)
	if err != nil {
		return err
	}
	got, err := readOrigin(was)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("it is %s; this yoctune's is %s", got, want)
	}
	return nil
}

// readOrigin describes the package and the platform of a program as the Go linker noted them.
func readOrigin(archive []byte) (string, error) {
	program, err := unpack(archive)
	if err != nil {
		return "", err
	}
	if err := checkProgram(program); err != nil {
		return "", err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return "no Go program", nil
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return fmt.Sprintf("%s for %s/%s", info.Path, settings["GOOS"], settings["GOARCH"]), nil
}
