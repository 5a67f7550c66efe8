package aof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// A manifest is lines such as
//
//	file appendonly.aof.2.base.rdb seq 2 type b
//
// pairs of a keyword and a value, in any order, quoted as redis-cli quotes if need be.
// Unknown keywords are for later versions and passed over. Lines with # are remarks.

// Type is the part that a file plays.
type Type byte

// The types of file.
const (
	Base    Type = 'b'
	Incr    Type = 'i'
	History Type = 'h' // counts no longer and is to be removed
)

// Entry is one file of a manifest.
type Entry struct {
	Name string
	Seq  int64
	Type Type
}

// Manifest is which files there are.
type Manifest struct {
	Base    *Entry // nil if there is none
	Incrs   []Entry
	History []Entry
}

// MaxManifestBytes bounds a manifest: some ten thousand files.
const MaxManifestBytes = 4 << 20

const maxManifestLine = 1024 // as Redis has it, line end included

// ManifestError says what is wrong with a manifest.
type ManifestError struct {
	Line   int // from 1; 0 is the whole
	Reason string
}

func (e *ManifestError) Error() string {
	if e.Line == 0 {
		return "aof: the manifest: " + e.Reason
	}
	return fmt.Sprintf("aof: line %d of the manifest: %s", e.Line, e.Reason)
}

// ParseManifest reads a manifest. The error is a *ManifestError. O(n).
func ParseManifest(text []byte) (*Manifest, error) {
	m := &Manifest{}
	if len(text) == 0 {
		return nil, &ManifestError{Reason: "it is empty"}
	}
	if len(text) > MaxManifestBytes {
		return nil, &ManifestError{Reason: fmt.Sprintf("it is longer than %d bytes", MaxManifestBytes)}
	}
	for number := 1; len(text) > 0; number++ {
		line := text[:min(len(text), maxManifestLine)]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		text = text[len(line):]
		if line[0] == '#' {
			continue
		}
		if reason := m.line(line); reason != "" {
			return nil, &ManifestError{Line: number, Reason: reason}
		}
	}
	return m, nil
}

// line takes one line in, or says what is wrong with it.
func (m *Manifest) line(line []byte) string {
	if line[len(line)-1] != '\n' || bytes.IndexByte(line, 0) >= 0 {
		return "it is too long, or does not end"
	}
	words, ok := resp.SplitArguments(strings.Trim(string(line), " \t\r\n"))
	if !ok || len(words) < 6 || len(words)%2 != 0 {
		return "this is not: file NAME seq NUMBER type LETTER"
	}
	entry := Entry{}
	for i := 0; i < len(words); i += 2 {
		switch value := words[i+1]; strings.ToLower(words[i]) {
		case "file":
			if strings.ContainsAny(value, "/\\") {
				return fmt.Sprintf("%q is a path, not the name of a file", value)
			}
			entry.Name = value
		case "seq":
			entry.Seq = leadingInt(value)
		case "type":
			entry.Type = 0
			if value != "" {
				entry.Type = Type(value[0])
			}
		}
	}
	if entry.Name == "" || entry.Name == "." || entry.Name == ".." || strings.Contains(entry.Name, "\x00") || entry.Seq == 0 || entry.Type == 0 {
		return "the name, the number or the type of the file is missing"
	}
	return m.add(entry)
}

func (m *Manifest) add(entry Entry) string {
	switch entry.Type {
	case Base:
		if m.Base != nil {
			return "there is a base already"
		}
		m.Base = &entry
	case Incr:
		if entry.Seq <= m.lastIncrSeq() {
			return "the numbers of the incremental files do not increase"
		}
		m.Incrs = append(m.Incrs, entry)
	case History:
		m.History = append(m.History, entry)
	default:
		return fmt.Sprintf("there is no type of file %q", string(entry.Type))
	}
	return ""
}

func (m *Manifest) lastIncrSeq() int64 {
	if len(m.Incrs) == 0 {
		return 0
	}
	return m.Incrs[len(m.Incrs)-1].Seq
}

func (m *Manifest) baseSeq() int64 {
	if m.Base == nil {
		return 0
	}
	return m.Base.Seq
}

// Files are those that are to be loaded, in order.
func (m *Manifest) Files() []Entry {
	var files []Entry
	if m.Base != nil {
		files = append(files, *m.Base)
	}
	return append(files, m.Incrs...)
}

// clone is for a change that may not come to be.
func (m *Manifest) clone() *Manifest {
	next := &Manifest{Incrs: append([]Entry(nil), m.Incrs...), History: append([]Entry(nil), m.History...)}
	if m.Base != nil {
		base := *m.Base
		next.Base = &base
	}
	return next
}

// Format is the text of the manifest as Redis writes it.
func (m *Manifest) Format() []byte {
	var text []byte
	add := func(e Entry) {
		text = fmt.Appendf(text, "file %s seq %d type %c\n", quoted(e.Name), e.Seq, e.Type)
	}
	if m.Base != nil {
		add(*m.Base)
	}
	for _, e := range m.History {
		add(e)
	}
	for _, e := range m.Incrs {
		add(e)
	}
	return text
}

// readManifest reads the manifest of a folder; the error wraps fs.ErrNotExist if there is none.
func readManifest(d disk.Disk, names Names) (m *Manifest, err error) {
	file, err := d.Open(names.in(names.Manifest()))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, MaxManifestBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return ParseManifest(text)
}

// unsureError says that after a rename its folder could not be synced: after a power cut
// the old file or the new one may be there.
type unsureError struct{ err error }

func (e *unsureError) Error() string { return e.err.Error() }
func (e *unsureError) Unwrap() error { return e.err }

// writeManifest makes m the manifest of the folder. When it returns without error that
// is durable, and so is every other name in the folder. After an *unsureError it may be
// so; after any other error the old manifest is as it was.
func writeManifest(d disk.Disk, names Names, m *Manifest) error {
	temp := names.in(names.tempManifest())
	file, err := d.Create(temp)
	if err != nil {
		return err
	}
	_, err = file.Write(m.Format())
	if err == nil {
		err = file.SyncAside()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, d.Remove(temp))
	}
	// The files that the manifest names must be there whenever it is.
	if err := d.SyncFolder(names.Folder); err != nil {
		return errors.Join(err, d.Remove(temp))
	}
	if err := d.Rename(temp, names.in(names.Manifest())); err != nil {
		return errors.Join(err, d.Remove(temp))
	}
	if err := d.SyncFolder(names.Folder); err != nil {
		return &unsureError{err}
	}
	return nil
}

// leadingInt reads a number as C's atoll does: blanks, a sign, digits, and no matter what
// follows. What is too large is the largest.
func leadingInt(text string) int64 {
	if text != "" && text[0] <= ' ' { // seldom, and trimming is not for nothing
		text = strings.TrimLeft(text, " \t\n\v\f\r")
	}
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	n := int64(0)
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			break
		}
		if n > (math.MaxInt64-9)/10 {
			n = math.MaxInt64
			break
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

// escapes are the control bytes that have a letter.
var escapes = strings.NewReplacer("\\", `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\a", `\a`, "\b", `\b`)

// quoted is a name as a manifest has it: in quotes if it would not be one word otherwise.
func quoted(name string) string {
	need := name == ""
	for _, c := range []byte(name) {
		need = need || c <= ' ' || c >= 0x7f || c == '\\' || c == '"' || c == '\''
	}
	if !need {
		return name
	}
	var text strings.Builder
	for i := range len(name) {
		switch escaped := escapes.Replace(name[i : i+1]); {
		case len(escaped) > 1, name[i] >= ' ' && name[i] < 0x7f:
			text.WriteString(escaped)
		default:
			fmt.Fprintf(&text, `\x%02x`, name[i])
		}
	}
	return `"` + text.String() + `"`
}
