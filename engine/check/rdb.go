package check

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// Aux is a remark of the server that wrote a file.
type Aux struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Database is what a file holds of one numbered database.
type Database struct {
	DB       int            `json:"db"`
	Keys     int            `json:"keys"`
	Volatile int            `json:"volatile"` // with an expiry
	Expired  int            `json:"expired"`  // by now
	Types    map[string]int `json:"types"`    // keys by type
}

// RDBReport is what an RDB file holds, up to the end or to where it is damaged.
type RDBReport struct {
	File      string     `json:"file"`
	SizeBytes int64      `json:"size_bytes"`
	Version   int        `json:"version"`
	Aux       []Aux      `json:"aux"`
	Functions int        `json:"functions"` // libraries
	Databases []Database `json:"databases"`
	OKUpTo    int64      `json:"ok_up_to"` // bytes; where the damage begins, or the end
	LastKey   string     `json:"last_key,omitempty"`
	Problem   string     `json:"problem,omitempty"` // "" if the file is whole and its checksum right
}

// RDB reads an RDB file, such as dump.rdb. The error is for a file that cannot be read at all; damage is in
// the report.
func RDB(path string, progress Progress) (*RDBReport, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	report := &RDBReport{File: path, SizeBytes: info.Size()}
	err = report.read(newRDBReader(progress.count(file, info.Size())), time.Now().UnixMilli())
	return report, errors.Join(err, file.Close())
}

func newRDBReader(from io.Reader) *rdb.Reader {
	limits := ds.DefaultLimits()
	return rdb.NewReader(from, &limits)
}

// read reads all records. The error is that of the input; damage becomes the Problem.
func (report *RDBReport) read(r *rdb.Reader, nowMs int64) error {
	for {
		record, err := r.Next()
		report.Version = r.Version()
		if errors.Is(err, io.EOF) {
			report.OKUpTo, report.LastKey = r.Offset(), ""
			return nil
		}
		if err != nil {
			var damage *rdb.Error
			if !errors.As(err, &damage) || damage.Err != nil && !errors.Is(damage.Err, io.ErrUnexpectedEOF) {
				return err
			}
			report.Problem = damage.Reason
			report.OKUpTo = damage.Offset
			return nil
		}
		report.add(record, nowMs)
	}
}

func (report *RDBReport) add(record rdb.Record, nowMs int64) {
	switch record := record.(type) {
	case rdb.Aux:
		report.Aux = append(report.Aux, Aux(record))
	case rdb.Function:
		report.Functions++
	case rdb.Key:
		report.LastKey = string(record.Name)
		db := report.database(record.DB)
		db.Keys++
		db.Types[typeOf(record.Value)]++
		if record.ExpireAtMs != 0 {
			db.Volatile++
			if record.ExpireAtMs <= nowMs {
				db.Expired++
			}
		}
	}
}

// typeOf names the type of a value as TYPE does.
func typeOf(value any) string {
	switch value.(type) {
	case *keyspace.String:
		return "string"
	case *ds.Deque:
		return "list"
	case *ds.Set:
		return "set"
	case *ds.SortedSet:
		return "zset"
	case *ds.Hash:
		return "hash"
	case *ds.Stream:
		return "stream"
	}
	return fmt.Sprintf("%T", value)
}

func (report *RDBReport) database(n int) *Database {
	for i := range report.Databases {
		if report.Databases[i].DB == n {
			return &report.Databases[i]
		}
	}
	report.Databases = append(report.Databases, Database{DB: n, Types: map[string]int{}})
	return &report.Databases[len(report.Databases)-1]
}
