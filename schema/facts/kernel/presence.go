package kernel

import "fmt"

// FindPresence returns, for each named symbol, the embedded kernels that have it, oldest
// first. It reads all of them in about the time of one Open.
func FindPresence(names ...string) (map[string][]string, error) {
	raw, err := inflate(embedded)
	if err != nil {
		return nil, err
	}
	want := make(map[string]bool, len(names))
	for _, n := range names {
		want[n] = true
	}
	d := decoder{in: raw}
	d.readStrings()
	heads := d.readHeads(func(Tree) bool { return true })
	records := d.count()
	name := make([]string, records)
	for i := range name {
		name[i] = d.record(-1, nil)
		if d.err != nil {
			return nil, fmt.Errorf("embedded kernel facts: %w", d.err)
		}
	}
	found := make(map[string][]string, len(names))
	for _, h := range heads {
		for _, r := range h.symbols {
			if r >= 0 && r < len(name) && want[name[r]] {
				found[name[r]] = append(found[name[r]], h.id.Name)
			}
		}
	}
	return found, nil
}
