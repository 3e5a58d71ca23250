// Package planfile checks whether a plan may be applied to this device: it must be complete,
// signed by a trusted key, made for this board, and not older than a plan that was
// confirmed before.
package planfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/plan"
)

// Device paths.
const (
	Installed  = "/usr/lib/yoctune/plan.json"
	KeyDir     = "/etc/yoctune/keys"
	SerialFile = "/var/lib/yoctune/serial"
)

// Reasons to refuse a plan. Invalid plans are plan.ErrSyntax, plan.ErrSchema or
// plan.ErrDigest.
var (
	ErrMissing   = errors.New("no plan")
	ErrSignature = errors.New("plan is not signed by a trusted key of this device")
	ErrBoard     = errors.New("plan is for another board")
	ErrL4T       = errors.New("plan is for another L4T")
	ErrSerial    = errors.New("plan is older than the one confirmed on this device")
)

// File is a plan with a verified signature, or from a device without keys.
type File struct {
	Plan    *plan.Plan
	Origins plan.Origins // nil without a sidecar
	Path    string       // as shown to the user
	Signed  bool         // by a trusted key; false only if none is installed
	Signer  string       // that key's id
}

// Source is where a plan comes from.
type Source struct {
	Path    string    // file on this host; "" for the installed one, below the root; "-" for Stdin
	Origins string    // sidecar on this host; "" for the one beside the plan
	Stdin   io.Reader // where "-" is allowed
}

// Load reads a plan and checks its signature.
func Load(dev rootfs.FS, src Source) (*File, error) {
	read, name := hostFile, src.Path
	if name == "-" && src.Stdin != nil {
		read = func(name string, limit int) ([]byte, error) {
			if name == "-" {
				return readAtMost(src.Stdin, name, limit)
			}
			return hostFile(name, limit)
		}
	}
	if name == "" {
		name = Installed
		read = func(name string, limit int) ([]byte, error) { return dev.ReadFile(name, limit) }
	}
	data, err := read(name, plan.MaxSize)
	if errors.Is(err, fs.ErrNotExist) && src.Path == "" {
		return nil, fmt.Errorf("%w: %s is not installed; name a plan file, or install the layer's yoctune-…-config package", ErrMissing, Installed)
	} else if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	f := &File{Path: name}
	if f.Signer, err = verifySignature(dev, data, func() ([]byte, error) { return read(name+signature.Extension, signature.MaxSize) }); err != nil {
		return nil, fmt.Errorf("read plan: %s: %w", name, err)
	}
	f.Signed = f.Signer != ""
	if f.Plan, err = plan.Decode(bytes.NewReader(data)); err != nil {
		if slices.Contains([]string{".cue", ".hcl", ".jsonnet"}, filepath.Ext(name)) {
			err = fmt.Errorf("%w; 'yoctune plan' makes the plan of a configuration", err)
		}
		return nil, fmt.Errorf("read plan: %s: %w", name, err)
	}
	if f.Origins, err = readOrigins(read, name, src.Origins); err != nil {
		return nil, err
	}
	return f, nil
}

// hostFile reads a file or pipe of this host, at most limit bytes.
func hostFile(name string, limit int) ([]byte, error) {
	f, err := infile.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAtMost(f, name, limit)
}

func readAtMost(r io.Reader, name string, limit int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(32 << 10) // most plans
	_, err := b.ReadFrom(io.LimitReader(r, int64(limit)+1))
	if err == nil && b.Len() > limit {
		err = fmt.Errorf("%s: %w: more than %d bytes", name, rootfs.ErrTooLarge, limit)
	}
	return b.Bytes(), err
}

// verifySignature returns the id of the installed key that signed data. If no key is installed it
// accepts unsigned plans and returns "".
func verifySignature(dev rootfs.FS, data []byte, sidecar func() ([]byte, error)) (string, error) {
	keys, err := Keys(dev)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	sig, err := sidecar()
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s has a key, and there is no .minisig beside the plan; sign the plan with `minisign -S`, or remove the key", ErrSignature, KeyDir)
	} else if err != nil {
		return "", fmt.Errorf("read signature: %w", err)
	}
	signer, err := signature.Verify(keys, data, sig)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return signer.KeyID, nil
}

// Keys returns the trusted public keys. A file without a valid key is an error, and so are an
// empty folder and a link that leads nowhere: to ignore them could mean to accept unsigned plans.
func Keys(dev rootfs.FS) ([]signature.Key, error) {
	names, err := dev.List(KeyDir)
	switch {
	case rootfs.IsDangling(err, KeyDir):
		return nil, fmt.Errorf("read keys: %s %w: %w; mend or remove it", KeyDir, rootfs.ErrDangling, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read keys: %w", err)
	case len(names) == 0:
		return nil, fmt.Errorf("read keys: %s has no key; install one, or remove the folder to accept unsigned plans", KeyDir)
	}
	var keys []signature.Key
	for _, name := range names {
		if !strings.HasSuffix(name, ".pub") {
			return nil, fmt.Errorf("read keys: %s/%s is not named *.pub; rename it if it is a key, or remove it", KeyDir, name)
		}
		b, err := dev.ReadFile(KeyDir+"/"+name, signature.MaxSize)
		if err != nil {
			return nil, fmt.Errorf("read keys: %s/%s: %w", KeyDir, name, err)
		}
		k, err := signature.ParseKey(b)
		if err != nil {
			return nil, fmt.Errorf("read keys: %s/%s: %w", KeyDir, name, err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// readOrigins reads the sidecar: the named one, which must exist, or the optional one beside
// the plan.
func readOrigins(read func(string, int) ([]byte, error), planName, named string) (plan.Origins, error) {
	name := named
	if named != "" {
		read = hostFile
	} else {
		name = sidecarName(planName)
	}
	b, err := read(name, plan.MaxSize)
	if named == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read origins: %w", err)
	}
	var o plan.Origins
	if err := json.Unmarshal(b, &o); err != nil {
		return nil, fmt.Errorf("read origins: %s: %w", name, err)
	}
	return o, nil
}

func sidecarName(planName string) string {
	return strings.TrimSuffix(planName, filepath.Ext(planName)) + ".origins.json"
}

const override = "; to apply it all the same, use --any-board"

// CheckDevice refuses a plan for another board or another major version of L4T.
func CheckDevice(p *plan.Plan, id rootfs.Identity) error {
	if err := checkBoard(p, id); err != nil {
		return err
	}
	// Nodes and power modes change with each major version. An unknown version of the
	// device is accepted.
	if p.L4T != "" && id.L4T != "" && majorVersion(p.L4T) != majorVersion(id.L4T) {
		return fmt.Errorf("%w: the plan is for %s, this device runs %s%s", ErrL4T, p.L4T, id.L4T, override)
	}
	return nil
}

func majorVersion(version string) string {
	first, _, _ := strings.Cut(version, ".")
	return first
}

func checkBoard(p *plan.Plan, id rootfs.Identity) error {
	switch {
	case p.Board == "" || p.Board == "generic":
		return nil
	case len(p.Identities) > 0:
		own := id.Compatible
		if id.Product != "" {
			own = append(slices.Clone(own), id.Product)
		}
		if !board.IsOneOf(p.Identities, own) {
			return fmt.Errorf("%w: the plan is for %s (%s), this device is %s%s", ErrBoard, p.Board, strings.Join(p.Identities, " or "), cmp.Or(strings.Join(own, " "), "not identified"), override)
		}
		return nil
	case len(id.Compatible) == 0:
		return fmt.Errorf("%w: the plan is for %s, this device has no device tree that identifies it%s", ErrBoard, p.Board, override)
	case board.IsKit(p.Board, id.Compatible):
		return nil // such a device tree names the developer kit and not the module
	case board.Kits(p.Board) != nil:
		return fmt.Errorf("%w: the plan is for %s, recognised by its developer kit (%s), this device is %s%s",
			ErrBoard, p.Board, strings.Join(board.Kits(p.Board), " or "), strings.Join(id.Compatible, " "), override)
	case !board.IsIdentifiable(p.Board):
		// No device tree of this board is known well enough to be compared. Only a device that
		// is recognised as another board is refused.
		if other := board.Recognise(id.Compatible); other != "" {
			return fmt.Errorf("%w: the plan is for %s, this device is %s (%s)%s", ErrBoard, p.Board, other, strings.Join(id.Compatible, " "), override)
		}
	case !board.IsCompatible(p.Board, id.Compatible):
		return fmt.Errorf("%w: the plan is for %s, this device is %s%s", ErrBoard, p.Board, strings.Join(id.Compatible, " "), override)
	}
	return nil
}

// Confirmed returns the confirmed serial of each layer and target.
func Confirmed(st rootfs.State) (map[string]int64, error) {
	b, err := st.ReadState(SerialFile)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]int64{}, nil
	} else if err != nil {
		return nil, fmt.Errorf("read confirmed serial: %w", err)
	}
	m := map[string]int64{}
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("read confirmed serial: %s: %w; remove the file to accept any serial once", SerialFile, err)
	}
	return m, nil
}

func serialKey(p *plan.Plan) string { return p.Layer + "/" + p.Target }

// CheckSerial refuses a plan older than the confirmed one, so that the replay of an old
// signed plan cannot undo a fix.
func CheckSerial(st rootfs.State, p *plan.Plan) error {
	m, err := Confirmed(st)
	if err != nil {
		return err
	}
	if last, ok := m[serialKey(p)]; ok && p.Serial < last {
		return fmt.Errorf("%w: serial %d, confirmed %d for %s; give the plan a higher serial, or remove %s", ErrSerial, p.Serial, last, serialKey(p), SerialFile)
	}
	return nil
}

// Confirm records the serial of a plan.
func Confirm(st rootfs.State, p *plan.Plan) error {
	m, err := Confirmed(st)
	if err != nil {
		return err
	}
	if last, ok := m[serialKey(p)]; ok && last >= p.Serial {
		return nil
	}
	m[serialKey(p)] = p.Serial
	b, err := plan.Canonical(m)
	if err != nil {
		return fmt.Errorf("confirm serial: %w", err)
	}
	if err := st.WriteState(SerialFile, b); err != nil {
		return fmt.Errorf("confirm serial: %w", err)
	}
	return nil
}
