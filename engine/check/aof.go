package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
)

// AOFFile is what is known of one append-only file.
type AOFFile struct {
	File      string     `json:"file"` // path
	Type      string     `json:"type"` // base, incremental, or single
	Last      bool       `json:"last"` // of its set; only then it can be trimmed
	SizeBytes int64      `json:"size_bytes"`
	OKUpTo    int64      `json:"ok_up_to"` // bytes that are whole
	At        int64      `json:"at"`       // where the problem is
	Requests  int        `json:"requests"` // in what is whole
	RDB       *RDBReport `json:"rdb,omitempty"`
	Problem   string     `json:"problem,omitempty"` // "" if it is whole
	Torn      bool       `json:"torn"`              // it only ends too early, which a killed server leaves
	// Later is where the first remark stands whose time is after the one asked for; -1 if there is none.
	Later int64 `json:"later_than_timestamp_at"`
}

// AOFReport is what is known of a set of append-only files, or of a single one.
type AOFReport struct {
	Manifest string    `json:"manifest,omitempty"` // path; "" for a single file
	Files    []AOFFile `json:"files"`
	Problem  string    `json:"problem,omitempty"` // of the manifest
}

// OK reports that nothing is damaged.
func (r *AOFReport) OK() bool { return r.Problem == "" && r.Damaged() == nil }

// Damaged is the first file that is damaged, or nil.
func (r *AOFReport) Damaged() *AOFFile {
	for i := range r.Files {
		if r.Files[i].Problem != "" {
			return &r.Files[i]
		}
	}
	return nil
}

// AOF reads a manifest and its files, or a single file. path may be a folder with a manifest
// in it, or the data folder above. Files behind a damaged one are not read. If timestampSec is not 0, the place is
// sought from where on everything was done later. The error is for files that cannot be read at all;
// damage is in the report.
func AOF(path string, timestampSec int64, progress Progress) (*AOFReport, error) {
	path, err := find(path)
	if err != nil {
		return nil, err
	}
	report := &AOFReport{}
	c := checker{until: timestampSec, progress: progress}
	text, isManifest, err := manifestText(path)
	if err != nil {
		return nil, err
	}
	if !isManifest {
		file, err := c.check(path, "single", true)
		report.Files = append(report.Files, file)
		return report, err
	}
	report.Manifest = path
	manifest, err := aof.ParseManifest(text)
	if err != nil {
		report.Problem = err.Error()
		return report, nil
	}
	entries := manifest.Files()
	if len(entries) == 0 {
		report.Problem = "the manifest names no file"
	}
	for i, entry := range entries {
		kind := "incremental"
		if entry.Type == aof.Base {
			kind = "base"
		}
		file, err := c.check(filepath.Join(filepath.Dir(path), entry.Name), kind, i == len(entries)-1)
		if err != nil {
			return report, err
		}
		if report.Files = append(report.Files, file); file.Problem != "" {
			break
		}
	}
	return report, nil
}

// find is the file that is meant.
func find(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, err
	}
	for _, pattern := range []string{"*.manifest", filepath.Join("*", "*.manifest")} {
		found, err := filepath.Glob(filepath.Join(escape(path), pattern))
		if err != nil {
			return "", err
		}
		found = withoutTemp(found)
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return "", fmt.Errorf("%s has several manifests: %s; name one", path, strings.Join(found, ", "))
		}
	}
	return "", fmt.Errorf("%s has no manifest of an append-only file; name the file itself", path)
}

// escape makes a path a pattern that only matches itself.
func escape(path string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func withoutTemp(paths []string) (kept []string) {
	for _, path := range paths {
		if !strings.HasPrefix(filepath.Base(path), "temp-") {
			kept = append(kept, path)
		}
	}
	return kept
}

// manifestText reads a file if it is a manifest by its name or its beginning.
func manifestText(path string) (text []byte, is bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	text, err = io.ReadAll(io.LimitReader(file, aof.MaxManifestBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, false, err
	}
	is = strings.HasSuffix(path, ".manifest") || bytes.HasPrefix(text, []byte("file "))
	return text, is, nil
}

type checker struct {
	until    int64
	progress Progress
}

// check reads one file.
func (c *checker) check(path, kind string, last bool) (found AOFFile, err error) {
	found = AOFFile{File: path, Type: kind, Last: last, Later: -1}
	file, err := os.Open(path)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return found, err
	}
	found.SizeBytes = info.Size()
	r := aof.NewReader(c.progress.count(file, info.Size()))
	r.Strict = true
	r.Preamble = found.preamble
	r.Remark = func(line []byte, offset int64) error {
		if sec, ok := timestamp(line); ok && c.until != 0 && sec > c.until && found.Later < 0 {
			found.Later = r.Whole()
		}
		return nil
	}
	return found, found.read(r)
}

// errDamagedRDB ends the reading of a file whose RDB part is damaged.
var errDamagedRDB = errors.New("the RDB part is damaged")

func (f *AOFFile) preamble(from io.Reader) (io.Reader, int64, error) {
	r := newRDBReader(from)
	f.RDB = &RDBReport{File: f.File, SizeBytes: f.SizeBytes}
	if err := f.RDB.read(r, time.Now().UnixMilli()); err != nil {
		return nil, 0, err
	}
	if f.RDB.Problem != "" {
		return nil, 0, errDamagedRDB
	}
	f.RDB.SizeBytes = r.Offset()
	return r.Rest(), r.Offset(), nil
}

func (f *AOFFile) read(r *aof.Reader) error {
	var torn *aof.TornError
	var damaged *aof.FormatError
	for read := 1; ; read++ {
		request, err := r.Next()
		f.OKUpTo, f.At = r.Whole(), r.Whole()
		switch {
		case err == nil:
			if r.Whole() == request.End { // not within a transaction
				f.Requests = read
			}
			continue
		case errors.Is(err, io.EOF):
		case errors.As(err, &torn):
			f.Problem, f.Torn = torn.Reason, true
		case errors.As(err, &damaged):
			f.Problem, f.At = damaged.Reason, damaged.At
		case errors.Is(err, errDamagedRDB):
			f.Problem, f.At = "the RDB part: "+f.RDB.Problem, f.RDB.OKUpTo
		default:
			return err
		}
		return nil
	}
}

// timestamp reads the time of a remark, in seconds since the epoch.
func timestamp(line []byte) (sec int64, ok bool) {
	_, err := fmt.Sscanf(string(line), "#TS:%d", &sec)
	return sec, err == nil
}

// Tail is what lies behind the whole part of a file.
type Tail struct {
	Bytes    int64    `json:"bytes"`
	Requests int      `json:"requests"` // lines in it that look like the beginning of one
	Lines    []string `json:"lines"`    // the first ones, cut short
}

// TailOf looks at what would be discarded by Trim.
func TailOf(path string, sizeBytes int64) (tail Tail, err error) {
	file, err := os.Open(path)
	if err != nil {
		return tail, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return tail, err
	}
	tail.Bytes = info.Size() - sizeBytes
	return tail, tail.read(io.NewSectionReader(file, sizeBytes, tail.Bytes))
}

const (
	tailLines = 8
	tailBytes = 100 // of a line
)

func (tail *Tail) read(from io.Reader) error {
	var line []byte
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		for _, c := range buffer[:n] {
			if len(line) < tailBytes {
				line = append(line, c)
			}
			if c == '\n' {
				line = tail.add(line)
			}
		}
		if err != nil {
			tail.add(line)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
	}
}

func (tail *Tail) add(line []byte) []byte {
	if len(line) > 1 && line[0] == '*' && line[1] >= '0' && line[1] <= '9' {
		tail.Requests++
	}
	if text := strings.TrimRight(string(line), "\r\n"); len(line) > 0 && len(tail.Lines) < tailLines {
		tail.Lines = append(tail.Lines, text)
	}
	return line[:0]
}

// Trim cuts a file to a size, and returns when that is durable.
func Trim(path string, sizeBytes int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err = file.Truncate(sizeBytes); err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
