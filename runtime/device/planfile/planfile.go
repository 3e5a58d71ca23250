// Package planfile decides whether a plan may be obeyed on this device: it is
// whole, signed by a key the device trusts, made for this board, and not older
// than one that was obeyed before.
package planfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// Reasons to refuse a plan; test with errors.Is. A broken one is plan.ErrSyntax,
// plan.ErrSchema or plan.ErrDigest.
var (
	ErrMissing   = errors.New("no plan")
	ErrSignature = errors.New("plan is not signed by a key of this device")
	ErrBoard     = errors.New("plan is for another board")
	ErrL4T       = errors.New("plan is for another L4T")
	ErrSerial    = errors.New("plan is older than the one confirmed on this device")
)

// File is a plan that was read and whose signature was judged.
type File struct {
	Plan    *plan.Plan
	Origins plan.Origins // nil when there is no sidecar
	Path    string       // as it is shown to the user
	Signed  bool         // by a key of the device; false only where none is installed
	Signer  string       // that key's id
}

// Source is where a plan comes from.
type Source struct {
	Path    string // file on this host; "" for the installed one, below the root
	Origins string // sidecar on this host; "" for the one beside the plan
}

// Load reads a plan and checks its signature.
func Load(dev rootfs.FS, src Source) (*File, error) {
	read, name := hostFile, src.Path
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
	if f.Signer, err = verify(dev, data, func() ([]byte, error) { return read(name+signature.Extension, signature.MaxSize) }); err != nil {
		return nil, fmt.Errorf("read plan: %s: %w", name, err)
	}
	f.Signed = f.Signer != ""
	if f.Plan, err = plan.Decode(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("read plan: %s: %w", name, err)
	}
	if f.Origins, err = origins(read, name, src.Origins); err != nil {
		return nil, err
	}
	return f, nil
}

// hostFile reads a regular file of this host, at most limit bytes.
func hostFile(name string, limit int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(b) > limit {
		err = fmt.Errorf("%s: %w: more than %d bytes", name, rootfs.ErrTooLarge, limit)
	}
	return b, err
}

// verify returns the id of the installed key that signed data. Without any key
// every plan is taken, signed by nobody; with one, only signed ones.
func verify(dev rootfs.FS, data []byte, sidecar func() ([]byte, error)) (string, error) {
	keys, err := Keys(dev)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	sig, err := sidecar()
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s holds a key and the plan has no .minisig beside it; sign it with `minisign -S`, or remove the key", ErrSignature, KeyDir)
	} else if err != nil {
		return "", fmt.Errorf("read signature: %w", err)
	}
	signer, err := signature.Verify(keys, data, sig)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return signer.KeyID, nil
}

// Keys returns the public keys the device trusts. A file that is not a key is an
// error: ignoring it could mean taking unsigned plans.
func Keys(dev rootfs.FS) ([]signature.Key, error) {
	names, err := dev.List(KeyDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	var keys []signature.Key
	for _, name := range names {
		if !strings.HasSuffix(name, ".pub") {
			continue
		}
		b, err := dev.ReadFile(KeyDir+"/"+name, signature.MaxSize)
		if err != nil {
			return nil, fmt.Errorf("read keys: %w", err)
		}
		k, err := signature.ParseKey(b)
		if err != nil {
			return nil, fmt.Errorf("read keys: %s/%s: %w", KeyDir, name, err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// origins reads the sidecar: the one named, which must be there, or the one
// beside the plan, which may be.
func origins(read func(string, int) ([]byte, error), planName, named string) (plan.Origins, error) {
	name := named
	if named != "" {
		read = hostFile
	} else {
		name = sidecar(planName)
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

func sidecar(planName string) string {
	return strings.TrimSuffix(planName, filepath.Ext(planName)) + ".origins.json"
}

const override = "; to obey it all the same, say --any-board"

// CheckDevice refuses a plan made for another board or another major version of
// L4T than the device says it has.
func CheckDevice(p *plan.Plan, id rootfs.Identity) error {
	if err := checkBoard(p, id); err != nil {
		return err
	}
	// An image without the release's file says nothing, which is no reason to
	// refuse. Nodes and power modes change from one major version to the next.
	if p.L4T != "" && id.L4T != "" && major(p.L4T) != major(id.L4T) {
		return fmt.Errorf("%w: it is for %s, and this machine runs %s%s", ErrL4T, p.L4T, id.L4T, override)
	}
	return nil
}

func major(version string) string {
	first, _, _ := strings.Cut(version, ".")
	return first
}

func checkBoard(p *plan.Plan, id rootfs.Identity) error {
	switch {
	case p.Board == "" || p.Board == "generic":
		return nil
	case len(id.Compatible) == 0:
		return fmt.Errorf("%w: it is for %s, and this machine has no device tree that says what it is%s", ErrBoard, p.Board, override)
	case board.IsKit(p.Board, id.Compatible):
		return nil // the module is not in such a tree, so that the kit must do
	case board.Kits(p.Board) != nil:
		return fmt.Errorf("%w: it is for %s, which is recognised by its developer kit (%s), and this machine is %s%s",
			ErrBoard, p.Board, strings.Join(board.Kits(p.Board), " or "), strings.Join(id.Compatible, " "), override)
	case !board.Identifiable(p.Board):
		return fmt.Errorf("%w: it is for %s, which this program cannot recognise by its device tree (%s)%s", ErrBoard, p.Board, strings.Join(id.Compatible, " "), override)
	case !board.IsCompatible(p.Board, id.Compatible):
		return fmt.Errorf("%w: it is for %s, and this machine is %s%s", ErrBoard, p.Board, strings.Join(id.Compatible, " "), override)
	}
	return nil
}

// Confirmed returns the serial that was last obeyed for each layer and target.
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

// CheckSerial refuses a plan older than one that was confirmed: replaying an old
// plan, validly signed in its day, must not undo a fix.
func CheckSerial(st rootfs.State, p *plan.Plan) error {
	m, err := Confirmed(st)
	if err != nil {
		return err
	}
	if last, ok := m[serialKey(p)]; ok && p.Serial < last {
		return fmt.Errorf("%w: serial %d, confirmed is %d for %s; give the plan a higher serial, or remove %s", ErrSerial, p.Serial, last, serialKey(p), SerialFile)
	}
	return nil
}

// Confirm records the serial of a plan that was obeyed.
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
