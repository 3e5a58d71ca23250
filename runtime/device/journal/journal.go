// Package journal records the values that nodes had before yoctuned wrote them, so that
// `yoctuned rollback` can restore them, also after a crash at any instruction.
//
// It is a write-ahead journal: the originals of a whole apply are on the disk before its
// first write reaches the kernel. A node is recorded once, so that its first original
// survives any number of applies.
//
// Each line is a record with its own checksum:
//
//	<crc32c, 8 hex digits> <JSON> \n
//
// A second file holds the number of records. It exists before the first record, and is written
// again after each. A journal with fewer records, or without that file, has lost some; one with
// more is the result of a crash, and so is a torn last line,
// whose node was not written yet. Damaged and missing lines are lost records, which are counted
// and reported by rollback.
//
// Records name their boot, and those of another boot are ignored because the kernel's values
// do not outlive it.
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

// File is the journal. It is on a tmpfs since it concerns one boot.
const File = "/run/yoctune/journal"

// CountFile holds the number of records.
const CountFile = File + ".count"

type count struct {
	Boot    string `json:"boot"`
	Records int    `json:"records"`
}

const version = 1

// ErrVersion reports a journal of a newer yoctuned.
var ErrVersion = errors.New("journal was written by another version of yoctuned")

// Original is the value of a node before it was first written.
type Original struct {
	ID    string `json:"id"`              // the setting that wrote it, "" for a related node
	Path  string `json:"path"`            // resolved
	Name  string `json:"name"`            // as selected
	Type  string `json:"type"`            // plan.Type constants: how to compare
	Value string `json:"value"`           // what to write to restore it
	Group string `json:"group,omitempty"` // of mutually exclusive nodes; members with value 0 are not written
	Lost  string `json:"lost,omitempty"`  // why it cannot be restored, "" if it can
}

// Plan identifies the applied plan.
type Plan struct {
	Layer    string `json:"layer"`
	Target   string `json:"target"`
	Serial   int64  `json:"serial"`
	Digest   string `json:"digest"`
	Rollback string `json:"rollback"`
}

// Note is a value that the kernel changes to another one.
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
	Damaged  int       `json:"damaged,omitempty"` // number of damaged lines when the file was rewritten
	Counted  bool      `json:"counted,omitempty"` // CountFile was there before this record
}

// Journal is the records of this boot.
type Journal struct {
	Plan      *Plan      // the last one applied, nil if none was
	Originals []Original // in the order of writing
	Covered   []Original // values of nodes before the overlay of leases
	Damaged   int        // number of lost records
	Foreign   int        // records of another boot

	records int  // in the file, of this boot
	counted int  // as CountFile has it; -1: not known
	expects bool // CountFile must exist

	store   rootfs.State
	boot    string
	notes   map[string]Note
	known   map[string]bool
	unclean bool // the file must be rewritten before an append
}

// Load reads the journal of this boot, which is empty if the file is missing.
func Load(store rootfs.State, boot string) (*Journal, error) {
	if boot == "" {
		return nil, errors.New("load journal: the device has no /proc/sys/kernel/random/boot_id, which distinguishes its originals from those of an earlier boot")
	}
	j := &Journal{store: store, boot: boot, notes: map[string]Note{}, known: map[string]bool{}}
	data, err := store.ReadState(File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load journal: %w", err)
	}
	damaged := 0
	for line := range bytes.Lines(data) {
		r, ok := decode(line)
		switch {
		case !ok:
			j.unclean = true
			if bytes.HasSuffix(line, []byte("\n")) {
				damaged++
			}
		case r.Version != version:
			return nil, fmt.Errorf("load journal: %w (format %d, this program supports %d)", ErrVersion, r.Version, version)
		case r.Boot != boot:
			j.Foreign++
			j.unclean = true
		default:
			j.records++
			j.expects = j.expects || r.Counted
			j.enter(r)
		}
	}
	if j.Foreign > 0 && j.records == 0 {
		damaged = 0 // they belong to another boot
	}
	j.Damaged += damaged + j.missing(damaged)
	return j, nil
}

// missing returns the number of records that the file has lost, besides damaged ones. If the
// number of records cannot be read, it is 1.
func (j *Journal) missing(damaged int) int {
	c, err := rootfs.ReadJSON[count](j.store, CountFile)
	lost := 0
	switch {
	case err != nil, c == nil && j.expects:
		lost, j.counted = 1, -1
	case c == nil || c.Boot != j.boot:
		j.counted = -1
		return 0
	default:
		lost, j.counted = max(0, c.Records-j.records-damaged), c.Records
	}
	j.unclean = j.unclean || lost > 0
	return lost
}

// setCount records the number of records.
func (j *Journal) setCount(n int) error {
	if n == j.counted {
		return nil
	}
	if err := rootfs.WriteJSON(j.store, CountFile, count{j.boot, n}); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.counted = n
	return nil
}

func (j *Journal) enter(r record) {
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

// HasOriginal reports whether the original value of a resolved path is recorded.
func (j *Journal) HasOriginal(path string) bool { return j.known[path] }

// Begin records new originals and returns once they are on the disk. Only then may the nodes
// be written.
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
	return j.append(records)
}

// AddNotes records values that the kernel changes, so that verify can distinguish them from
// drift.
func (j *Journal) AddNotes(notes []Note) error {
	var records []record
	for i, n := range notes {
		if j.notes[n.Path] != n {
			records = append(records, record{Note: &notes[i]})
		}
	}
	return j.append(records)
}

// AddCovered records the values of nodes before an overlay changes them. It returns once they are
// on the disk.
func (j *Journal) AddCovered(before []Original) error {
	var records []record
	for i := range before {
		records = append(records, record{Cover: &before[i]})
	}
	return j.append(records)
}

// RemoveCovered rewrites the journal without the values under an overlay, after these were
// restored.
func (j *Journal) RemoveCovered() error {
	if len(j.Covered) == 0 {
		return nil
	}
	j.Covered = nil
	return j.rewrite()
}

// Explains reports whether the kernel is known to change want to found.
func (j *Journal) Explains(path, want, found string) bool {
	n, ok := j.notes[path]
	return ok && n.Want == want && n.Found == found
}

func (j *Journal) append(records []record) error {
	if len(records) == 0 {
		return nil
	}
	// A record appended to a torn line would be lost. Start from the valid records.
	if j.unclean {
		if err := j.rewrite(); err != nil {
			return err
		}
	}
	b, err := j.encode(records)
	if err != nil {
		return err
	}
	if j.counted < 0 { // so that a lost file is distinguished from one that was never written
		if err := j.setCount(j.records); err != nil {
			return err
		}
	}
	if err := j.store.AppendState(File, b); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.records += len(records)
	if err := j.setCount(j.records); err != nil {
		return err
	}
	for _, r := range records {
		j.enter(r)
	}
	return nil
}

func (j *Journal) current() []record {
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

// ReplaceOriginals replaces the journal by the originals that could not be restored. If there are none,
// it removes the journal.
func (j *Journal) ReplaceOriginals(originals []Original) error {
	if len(originals) == 0 {
		// Each file may be the only one after a crash: no records are expected from now on.
		if j.counted > 0 {
			if err := j.setCount(0); err != nil {
				return err
			}
		}
		for _, name := range []string{File, CountFile} {
			if err := j.store.RemoveState(name); err != nil {
				return fmt.Errorf("remove journal: %w", err)
			}
		}
		j.records, j.counted = 0, -1
		return nil
	}
	j.Originals, j.Covered, j.Damaged = originals, nil, 0
	j.notes = map[string]Note{}
	return j.rewrite()
}

// rewrite replaces the file by the current records.
func (j *Journal) rewrite() error {
	records := j.current()
	b, err := j.encode(records)
	if err != nil {
		return err
	}
	// The count is never larger than the number of records in the file.
	if err := j.setCount(max(0, min(j.counted, len(records)))); err != nil {
		return err
	}
	if err := j.store.WriteState(File, b); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.Foreign, j.unclean, j.records = 0, false, len(records)
	return j.setCount(len(records))
}

func (j *Journal) encode(records []record) ([]byte, error) {
	var out []byte
	for _, r := range records {
		r.Version, r.Boot, r.Counted = version, j.boot, true
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
