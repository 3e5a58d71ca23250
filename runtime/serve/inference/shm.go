package inference

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Region is a part of POSIX shared memory that a caller has registered.
type Region struct {
	Name   string `json:"name"`
	Key    string `json:"key"` // as for shm_open(3): "/" and a name
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"byte_size"`
}

// Regions are the shared memory of callers. Its data is copied with pread(2) and pwrite(2), not mapped: a
// caller who shrinks the memory gets an error, and cannot end the server with SIGBUS. A nil Regions
// refuses everything.
type Regions struct {
	dir string
	tcp bool // callers on TCP may register too

	mu  sync.Mutex
	all map[string]*region
}

type region struct {
	Region
	owner Caller
	file  *os.File
	users int // reads and writes in progress
	gone  bool
}

// Limits of regions.
const (
	maxRegions    = 64
	maxRegionName = 128
)

// NewRegions returns an empty list. tcp lets callers on TCP use shared memory too.
func NewRegions(tcp bool) *Regions {
	return &Regions{dir: "/dev/shm", tcp: tcp, all: map[string]*region{}}
}

var regionKey = regexp.MustCompile(`^/?[A-Za-z0-9_.-]+$`)

// may reports an error unless the caller may use shared memory.
func (r *Regions) may(c Caller) error {
	switch {
	case r == nil:
		return Errorf(Unimplemented, "the server has no shared memory")
	case !c.Local && !r.tcp:
		return Errorf(Unimplemented, "shared memory is for callers on the unix socket; sharedMemory: true of the source admits those on TCP")
	}
	return nil
}

// owns reports whether a caller may use a region. Root may use all.
func (g *region) owns(c Caller) bool { return c == g.owner || c.Local && c.UID == 0 }

// Register opens the memory of a region. The memory must belong to the caller or be open to every user,
// because the server may have rights that the caller has not.
func (r *Regions) Register(c Caller, want Region) error {
	if err := r.may(c); err != nil {
		return err
	}
	switch end := want.Offset + want.Size; {
	case want.Name == "" || len(want.Name) > maxRegionName || strings.ContainsFunc(want.Name, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return Errorf(Invalid, "region %.40q: a name has 1 to %d printable characters", want.Name, maxRegionName)
	case len(want.Key) > maxRegionName || !regionKey.MatchString(want.Key) || strings.Trim(want.Key, "/.") == "":
		return Errorf(Invalid, "region %s: key %.40q must be \"/\" and a name of letters, digits, dots, dashes and underscores", want.Name, want.Key)
	case want.Size == 0:
		return Errorf(Invalid, "region %s: byte_size must be at least 1", want.Name)
	case end < want.Size || end > 1<<62:
		return Errorf(Invalid, "region %s: offset %d and byte_size %d are too large", want.Name, want.Offset, want.Size)
	}
	file, err := r.open(c, want)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch old := r.all[want.Name]; {
	case old != nil:
		err = Errorf(Invalid, "region %s is registered already: unregister it first", want.Name)
	case len(r.all) == maxRegions:
		err = Errorf(Full, "%d regions are registered, the most that there can be", maxRegions)
	default:
		r.all[want.Name] = &region{Region: want, owner: c, file: file}
		return nil
	}
	return errors.Join(err, file.Close())
}

// open opens a file of shared memory and checks its size and its rights.
func (r *Regions) open(c Caller, want Region) (*os.File, error) {
	path := filepath.Join(r.dir, strings.TrimPrefix(want.Key, "/"))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Errorf(NotFound, "region %s: shared memory %s does not exist", want.Name, want.Key)
	case errors.Is(err, fs.ErrPermission):
		return nil, Errorf(Invalid, "region %s: the server may not read and write shared memory %s: give its mode the rights of all users (fchmod 0666), or run both as one user", want.Name, want.Key)
	case err != nil:
		return nil, Errorf(Invalid, "region %s: open shared memory %s: %w", want.Name, want.Key, err)
	}
	file := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	const everyone = 0o006
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = Errorf(Invalid, "region %s: %s is not shared memory", want.Name, want.Key)
	case st.Mode&everyone != everyone && !(c.Local && (c.UID == 0 || c.UID == st.Uid)) && (c.Local || int(st.Uid) != os.Geteuid()):
		err = Errorf(Invalid, "region %s: shared memory %s belongs to another user", want.Name, want.Key)
	case uint64(st.Size) < want.Offset+want.Size:
		err = Errorf(Invalid, "region %s: offset %d and byte_size %d end beyond shared memory %s, which has %d bytes", want.Name, want.Offset, want.Size, want.Key, st.Size)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Unregister forgets a region of the caller, or all with the name "". One that does not exist is no error, as
// in Triton.
func (r *Regions) Unregister(c Caller, name string) error {
	if err := r.may(c); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, g := range r.all {
		if (name == "" || name == key) && g.owns(c) {
			delete(r.all, key)
			g.gone = true
			g.closeUnused()
		}
	}
	return nil
}

// closeUnused closes the memory of a region that is gone.
func (g *region) closeUnused() {
	if g.gone && g.users == 0 {
		_ = g.file.Close() // nothing is written to it any more
	}
}

// Status lists the regions of the caller, or one of them.
func (r *Regions) Status(c Caller, name string) ([]Region, error) {
	if err := r.may(c); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []Region{}
	for key, g := range r.all {
		if (name == "" || name == key) && g.owns(c) {
			list = append(list, g.Region)
		}
	}
	if name != "" && len(list) == 0 {
		return nil, Errorf(NotFound, "region %.40q is not registered", name)
	}
	slices.SortFunc(list, func(a, b Region) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// use finds a part of a region. done is called after its last use.
func (r *Regions) use(c Caller, name string, offset, size uint64) (file *os.File, at int64, done func(), err error) {
	if err := r.may(c); err != nil {
		return nil, 0, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.all[name]
	switch {
	case g == nil || !g.owns(c):
		return nil, 0, nil, Errorf(Invalid, "shared memory region %.40q is not registered", name)
	case offset > g.Size || size > g.Size-offset:
		return nil, 0, nil, Errorf(Invalid, "%d bytes at offset %d are beyond shared memory region %s, which has %d", size, offset, name, g.Size)
	}
	g.users++
	return g.file, int64(g.Offset + offset), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		g.users--
		g.closeUnused()
	}, nil
}

// Read copies a part of a region.
func (r *Regions) Read(c Caller, name string, offset, size uint64) ([]byte, error) {
	file, at, done, err := r.use(c, name, offset, size)
	if err != nil {
		return nil, err
	}
	defer done()
	b := make([]byte, size)
	if n, err := file.ReadAt(b, at); n < len(b) {
		return nil, &Error{Invalid, fmt.Errorf("shared memory region %s has become shorter: %d of %d bytes at %d: %w", name, n, len(b), at, err)}
	}
	return b, nil
}

// Write copies data to a part of a region.
func (r *Regions) Write(c Caller, name string, offset uint64, data []byte) error {
	file, at, done, err := r.use(c, name, offset, uint64(len(data)))
	if err != nil {
		return err
	}
	defer done()
	// Writing beyond its end would make the memory of a caller grow.
	st, err := file.Stat()
	if err == nil && st.Size() < at+int64(len(data)) {
		err = fmt.Errorf("it has become shorter: %d bytes", st.Size())
	}
	if err == nil {
		_, err = file.WriteAt(data, at)
	}
	if err != nil {
		return &Error{Invalid, fmt.Errorf("shared memory region %s: %w", name, err)}
	}
	return nil
}

// Close forgets all regions.
func (r *Regions) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, g := range r.all {
		delete(r.all, key)
		g.gone = true
		g.closeUnused()
	}
}
