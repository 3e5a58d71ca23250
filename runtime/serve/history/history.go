// Package history stores samples in an SQLite file of bounded size.
//
// Two tables: series(id, name, unit) and value(time, series, value), time in
// milliseconds since 1970. Values are collected in memory and written about once a minute to
// limit flash wear. When the file is full, the oldest tenth is removed. A damaged file is
// renamed and replaced by a new one.
package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite" // also registers the driver
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/yoctune/yoctune/runtime/device/monitor"
)

// File is the history of a device.
const File = "/var/lib/yoctune/history.db"

// DefaultSize bounds the file, in bytes.
const DefaultSize = 32 << 20

// pageSize is the page size of SQLite, in bytes.
const pageSize = 4096

// Store is an open history. It must be used by one goroutine, except for Query, Names and
// Problem.
type Store struct {
	db    *sql.DB
	limit int64 // pages
	ids   map[string]int64

	mu    sync.Mutex
	batch []entry // not yet written

	failed atomic.Pointer[string] // error of the last write, nil if it succeeded
}

type entry struct {
	at     int64
	values []monitor.Value
}

// Open opens or creates a history of at most size bytes. If a damaged file was replaced, note
// reports that. A locked file or a database of another program is an error and stays
// unchanged.
func Open(ctx context.Context, file string, size int64) (s *Store, note string, err error) {
	if file, err = filepath.Abs(file); err != nil { // a URI has no relative path
		return nil, "", fmt.Errorf("open history: %w", err)
	}
	if s, err = open(ctx, file, size); err == nil {
		return s, "", nil
	}
	if !damaged(err) {
		return nil, "", fmt.Errorf("open history: %w", err)
	}
	// Keep one damaged file for diagnosis; more would fill the disk.
	aside := file + ".damaged"
	if err := os.Rename(file, aside); err != nil {
		return nil, "", fmt.Errorf("rename the damaged history: %w", err)
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := os.Remove(file + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, "", fmt.Errorf("rename the damaged history: %w", err)
		}
	}
	note = fmt.Sprintf("the history was damaged (%v) and is renamed to %s; a new one is started", err, aside)
	if s, err = open(ctx, file, size); err != nil {
		return nil, note, fmt.Errorf("open history: %w", err)
	}
	return s, note, nil
}

// errUnsound wraps the result of SQLite's integrity check.
var errUnsound = errors.New("unsound")

func damaged(err error) bool {
	var e *sqlite.Error
	return errors.Is(err, errUnsound) ||
		errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_CORRUPT || e.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

func open(ctx context.Context, file string, size int64) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	fresh := true
	if st, err := os.Stat(file); err == nil {
		if !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", file)
		}
		fresh = st.Size() == 0
	}
	name := (&url.URL{Scheme: "file", Path: file, RawQuery: "_pragma=busy_timeout(2000)&_pragma=synchronous(normal)&_pragma=cache_size(-512)"}).String()
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one connection saves memory
	s := &Store{db: db, limit: max(size/pageSize, 64), ids: map[string]int64{}}
	if err := s.prepare(ctx, fresh); err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context, fresh bool) error {
	if fresh {
		if _, err := s.db.ExecContext(ctx, "PRAGMA auto_vacuum = incremental"); err != nil {
			return err
		}
	} else {
		var verdict string
		if err := s.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			return fmt.Errorf("%w: %s", errUnsound, verdict)
		}
	}
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS series(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, unit TEXT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS value(time INTEGER NOT NULL, series INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY(time, series)) WITHOUT ROWID",
		// A hard limit of the size.
		fmt.Sprintf("PRAGMA max_page_count = %d", s.limit+s.limit/8+16),
	} {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return s.eachRow(ctx, func(rows *sql.Rows) error {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		s.ids[name] = id
		return err
	}, "SELECT id, name FROM series")
}

// eachRow calls scan for each row of a query.
func (s *Store) eachRow(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Add buffers a sample in memory until Flush.
func (s *Store) Add(sample *monitor.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch = append(s.batch, entry{sample.Time.UnixMilli(), sample.Values()})
}

// Pending returns the number of buffered samples.
func (s *Store) Pending() int { return len(s.pending()) }

func (s *Store) pending() []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batch
}

// Problem returns the error of the last write, "" if it succeeded.
func (s *Store) Problem() string {
	if why := s.failed.Load(); why != nil {
		return *why
	}
	return ""
}

// Flush removes old values if the file is full and writes the buffer in one transaction. On an
// error the buffer is dropped, since memory is bounded.
func (s *Store) Flush(ctx context.Context) error {
	err := s.flush(ctx)
	if err == nil {
		s.failed.Store(nil)
	} else if ctx.Err() == nil {
		why := err.Error()
		s.failed.Store(&why)
	}
	return err
}

func (s *Store) flush(ctx context.Context) error {
	batch := s.pending()
	if len(batch) == 0 {
		return nil
	}
	// Until it is written, queries find it here.
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.batch = s.batch[len(batch):]
	}()
	if err := s.trim(ctx); err != nil {
		return fmt.Errorf("remove old values from the history: %w", err)
	}
	if err := s.write(ctx, batch); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// write writes entries in one transaction.
func (s *Store) write(ctx context.Context, batch []entry) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	fresh := map[string]int64{}
	for _, e := range batch {
		for _, v := range e.values {
			id, ok := s.ids[v.Name]
			if !ok {
				id, ok = fresh[v.Name]
			}
			if !ok {
				if err := tx.QueryRowContext(ctx, "INSERT INTO series(name, unit) VALUES(?, ?) RETURNING id", v.Name, v.Unit).Scan(&id); err != nil {
					return err
				}
				fresh[v.Name] = id
			}
			// The same time may repeat after the clock was set back.
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO value(time, series, value) VALUES(?, ?, ?)", e.at, id, v.Value); err != nil {
				return err
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	maps.Copy(s.ids, fresh)
	return nil
}

// trim removes the oldest tenth if the file is full.
func (s *Store) trim(ctx context.Context) error {
	var pages, free int64
	if err := s.db.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
		return err
	}
	if err := s.db.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
		return err
	}
	if pages-free < s.limit {
		return nil
	}
	_, err := s.db.ExecContext(ctx, `DELETE FROM value WHERE time <= (
		SELECT time FROM value ORDER BY time LIMIT 1 OFFSET (SELECT count(*) / 10 FROM value))`)
	return err
}

// Point is a value at one time.
type Point struct {
	Time  int64   `json:"t"` // ms since 1970
	Value float64 `json:"v"`
}

// maxPoints bounds the points of a query; a chart has no more columns.
const maxPoints = 2000

// Query returns a series between two times, reduced to at most points averages. The values that
// are not yet written are among them.
func (s *Store) Query(ctx context.Context, name string, from, to time.Time, points int) ([]Point, error) {
	points = min(max(points, 1), maxPoints)
	step := max((to.UnixMilli()-from.UnixMilli())/int64(points), 1)
	out, late := []Point{}, s.pending()
	err := s.eachRow(ctx, func(rows *sql.Rows) error {
		var bin int64
		var p Point
		err := rows.Scan(&bin, &p.Value)
		// The same time for all series, some of which may have a gap.
		p.Time = from.UnixMilli() + bin*step + step/2
		out = append(out, p)
		return err
	}, `SELECT (time - ?) / ? AS bin, avg(value) FROM value
		WHERE series = (SELECT id FROM series WHERE name = ?) AND time BETWEEN ? AND ? GROUP BY bin ORDER BY bin LIMIT ?`,
		from.UnixMilli(), step, name, from.UnixMilli(), to.UnixMilli(), maxPoints+1)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return appendPending(out, late, name, from.UnixMilli(), to.UnixMilli()), nil
}

// appendPending adds the values of a series that were not written when the query began. Some may
// have been written since.
func appendPending(out []Point, late []entry, name string, from, to int64) []Point {
	last := from - 1
	if n := len(out); n > 0 {
		last = out[n-1].Time
	}
	for _, e := range late {
		if e.at <= last || e.at > to {
			continue
		}
		for _, v := range e.values {
			if v.Name == name {
				out = append(out, Point{e.at, v.Value})
			}
		}
	}
	return out
}

// Names returns the names of all series.
func (s *Store) Names(ctx context.Context) ([]string, error) {
	out, late := []string{}, s.pending()
	err := s.eachRow(ctx, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		out = append(out, name)
		return err
	}, "SELECT name FROM series ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	known := map[string]bool{}
	for _, name := range out {
		known[name] = true
	}
	for _, e := range late {
		for _, v := range e.values {
			if !known[v.Name] {
				out, known[v.Name] = append(out, v.Name), true
			}
		}
	}
	return out, nil
}

// Close writes the buffer and closes the file.
func (s *Store) Close(ctx context.Context) error {
	err := s.Flush(ctx)
	if cerr := s.db.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("close history: %w", cerr)
	}
	return err
}
