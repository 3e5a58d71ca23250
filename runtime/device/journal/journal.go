// Package journal remembers what the kernel held before yoctuned wrote to it, so
// that `yoctuned rollback` can put everything back, also after a crash at any
// instruction.
//
// The rule is write-ahead: the originals of a whole apply are on the disk before
// its first write reaches the kernel. A knob that is already in the journal is
// never recorded again, so the first original survives any number of applies.
//
// One line holds one record, with its own checksum:
//
//	<crc32c, 8 hex digits> <JSON> \n
//
// A torn last line is what a crash leaves, and is ignored: its knob was not
// written yet. Any other damaged line held something that is lost; they are counted
// until a rollback has said so. Every record names the boot it belongs to; a record of another
// boot is ignored too, for the kernel itself has forgotten what it was told.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strconv"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// File is where the journal lies: on a tmpfs, as it is about this boot only.
const File = "/run/yoctune/journal"

const version = 1

// ErrVersion says that a newer yoctuned wrote the journal.
var ErrVersion = errors.New("journal was written by another version of yoctuned")

// Original is what one node held before it was first written.
type Original struct {
	ID    string `json:"id"`              // the setting that wrote it, "" for a companion
	Path  string `json:"path"`            // resolved: the node itself, through whichever link it was found
	Name  string `json:"name"`            // as it was selected
	Type  string `json:"type"`            // plan.Type constants: how to compare
	Value string `json:"value"`           // what to write to have it again
	Group string `json:"group,omitempty"` // of members of which one is active; zero ones are not written
	Lost  string `json:"lost,omitempty"`  // why it cannot be restored; "" when it can
}

// Plan says which plan was applied.
type Plan struct {
	Layer    string `json:"layer"`
	Target   string `json:"target"`
	Serial   int64  `json:"serial"`
	Digest   string `json:"digest"`
	Rollback string `json:"rollback"`
}

// Note is a value of which the kernel makes another one.
type Note struct {
	Path  string `json:"path"`
	Want  string `json:"want"`
	Found string `json:"found"`
}

type record struct {
	Version  int       `json:"v"`
	Boot     string    `json:"boot"`
	Plan     *Plan     `json:"plan,omitempty"`
	Original *Original `json:"original,omitempty"`
	Note     *Note     `json:"note,omitempty"`
	Cover    *Original `json:"cover,omitempty"`
	Damaged  int       `json:"damaged,omitempty"` // lines that were, when the file was written anew
}

// Journal is the records of this boot.
type Journal struct {
	Plan      *Plan      // the last one applied, nil when none was
	Originals []Original // in the order of writing
	Covered   []Original // what nodes held before the leases in force changed them
	Damaged   int        // records of which nothing is known but that they were
	Foreign   int        // records of another boot

	store   rootfs.State
	boot    string
	notes   map[string]Note
	known   map[string]bool
	unclean bool // the file has lines that must not stay
}

// Load reads the journal of this boot; an absent one is empty.
func Load(store rootfs.State, boot string) (*Journal, error) {
	if boot == "" {
		return nil, errors.New("load journal: the device has no /proc/sys/kernel/random/boot_id, so its originals cannot be told from those of an earlier boot")
	}
	j := &Journal{store: store, boot: boot, notes: map[string]Note{}, known: map[string]bool{}}
	data, err := store.ReadState(File)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	} else if err != nil {
		return nil, fmt.Errorf("load journal: %w", err)
	}
	own := false
	for line := range bytes.Lines(data) {
		r, ok := decode(line)
		switch {
		case !ok:
			j.unclean = true
			if bytes.HasSuffix(line, []byte("\n")) {
				j.Damaged++
			}
		case r.Version != version:
			return nil, fmt.Errorf("load journal: %w (format %d, this program knows %d)", ErrVersion, r.Version, version)
		case r.Boot != boot:
			j.Foreign++
			j.unclean = true
		default:
			own = true
			j.take(r)
		}
	}
	if j.Foreign > 0 && !own {
		j.Damaged = 0 // the kernel has forgotten what they were about
	}
	return j, nil
}

func (j *Journal) take(r record) {
	switch {
	case r.Plan != nil:
		j.Plan = r.Plan
	case r.Original != nil:
		if !j.known[r.Original.Path] {
			j.known[r.Original.Path] = true
			j.Originals = append(j.Originals, *r.Original)
		}
	case r.Note != nil:
		j.notes[r.Note.Path] = *r.Note
	case r.Cover != nil:
		if !slices.ContainsFunc(j.Covered, func(c Original) bool { return c.Path == r.Cover.Path }) {
			j.Covered = append(j.Covered, *r.Cover)
		}
	default:
		j.Damaged += max(r.Damaged, 0)
	}
}

// Knows reports whether the original of a resolved path is recorded.
func (j *Journal) Knows(path string) bool { return j.known[path] }

// Begin records the originals that are not known yet and returns when they are
// on the disk. Only then may the kernel be written.
func (j *Journal) Begin(p Plan, originals []Original) error {
	var records []record
	if j.Plan == nil || *j.Plan != p {
		records = append(records, record{Plan: &p})
	}
	for i := range originals {
		if !j.known[originals[i].Path] {
			records = append(records, record{Original: &originals[i]})
		}
	}
	return j.add(records)
}

// Remember records values of which the kernel makes others, so that verify can
// tell them from drift.
func (j *Journal) Remember(notes []Note) error {
	var records []record
	for i, n := range notes {
		if j.notes[n.Path] != n {
			records = append(records, record{Note: &notes[i]})
		}
	}
	return j.add(records)
}

// Cover records what nodes hold before a lease changes them, and returns when
// that is on the disk.
func (j *Journal) Cover(before []Original) error {
	var records []record
	for i := range before {
		records = append(records, record{Cover: &before[i]})
	}
	return j.add(records)
}

// Uncover records that the nodes are as before the leases. Nobody needs their
// records any more, so the journal is written anew without them.
func (j *Journal) Uncover() error {
	if len(j.Covered) == 0 {
		return nil
	}
	j.Covered = nil
	return j.rewrite()
}

// Explains reports whether found is what the kernel is known to make of want.
func (j *Journal) Explains(path, want, found string) bool {
	n, ok := j.notes[path]
	return ok && n.Want == want && n.Found == found
}

func (j *Journal) add(records []record) error {
	if len(records) == 0 {
		return nil
	}
	// Appending to a torn line would lose the new record with it, and what
	// another boot left need not stay: start from what is valid.
	if j.unclean {
		if err := j.rewrite(); err != nil {
			return err
		}
	}
	b, err := j.encode(records)
	if err != nil {
		return err
	}
	if err := j.store.AppendState(File, b); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	for _, r := range records {
		j.take(r)
	}
	return nil
}

func (j *Journal) records() []record {
	var records []record
	if j.Plan != nil {
		records = append(records, record{Plan: j.Plan})
	}
	for i := range j.Originals {
		records = append(records, record{Original: &j.Originals[i]})
	}
	for _, n := range j.notes {
		records = append(records, record{Note: &n})
	}
	for i := range j.Covered {
		records = append(records, record{Cover: &j.Covered[i]})
	}
	if j.Damaged > 0 {
		records = append(records, record{Damaged: j.Damaged})
	}
	return records
}

// Keep replaces the journal by the given originals, those that could not be put
// back; without any, the journal is removed.
func (j *Journal) Keep(originals []Original) error {
	if len(originals) == 0 {
		if err := j.store.RemoveState(File); err != nil {
			return fmt.Errorf("remove journal: %w", err)
		}
		return nil
	}
	j.Originals, j.Covered, j.Damaged = originals, nil, 0
	j.notes = map[string]Note{}
	return j.rewrite()
}

// rewrite replaces the file by the records in force.
func (j *Journal) rewrite() error {
	b, err := j.encode(j.records())
	if err != nil {
		return err
	}
	if err := j.store.WriteState(File, b); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.Foreign, j.unclean = 0, false
	return nil
}

func (j *Journal) encode(records []record) ([]byte, error) {
	var out []byte
	for _, r := range records {
		r.Version, r.Boot = version, j.boot
		b, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode journal: %w", err)
		}
		out = fmt.Appendf(out, "%08x %s\n", checksum(b), b)
	}
	return out, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func decode(line []byte) (record, bool) {
	line, ok := bytes.CutSuffix(line, []byte("\n"))
	sum, body, ok2 := bytes.Cut(line, []byte(" "))
	if !ok || !ok2 {
		return record{}, false
	}
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if err != nil || uint32(want) != checksum(body) {
		return record{}, false
	}
	var r record
	if json.Unmarshal(body, &r) != nil {
		return record{}, false
	}
	return r, true
}
