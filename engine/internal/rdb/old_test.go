package rdb_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// No server is left that writes the encodings of old versions. The bytes here are
// put together by hand from the published format; Redis 7.0, which still reads
// them, says what they mean.

// str is a string with a length of six, fourteen or 32 bits.
func str(s string) string {
	switch n := len(s); {
	case n < 64:
		return string([]byte{byte(n)}) + s
	case n < 1<<14:
		return string([]byte{0x40 | byte(n>>8), byte(n)}) + s
	default:
		return "\x80" + string(binary.BigEndian.AppendUint32(nil, uint32(n))) + s
	}
}

func le32(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

// zipEntries are entries of a ziplist without the length of the one before, one of
// each encoding.
var zipEntries = []string{
	"\x00", "\x05hello", "\x40\x46" + strings.Repeat("y", 70), "\x80\x00\x00\x50\x00" + strings.Repeat("z", 20480),
	"\xc0\x00\x80", "\xc0\xff\x7f", "\xd0\x00\x00\x00\x80", "\xd0\x15\xcd\x5b\x07",
	"\xe0\x00\x00\x00\x00\x00\x00\x00\x80", "\xe0\xff\xff\xff\xff\xff\xff\xff\x7f",
	"\xf0\x00\x00\x80", "\xf0\xff\xff\x7f", "\xfe\x80", "\xfe\x7f", "\xf1", "\xf2", "\xfd",
}

// ziplist is a ziplist of entries.
func ziplist(entries ...string) string {
	var body strings.Builder
	before, tail := 0, 10
	for _, entry := range entries {
		tail = 10 + body.Len()
		if before < 254 {
			body.WriteByte(byte(before))
			before = 1 + len(entry)
		} else {
			body.WriteString("\xfe" + le32(before))
			before = 5 + len(entry)
		}
		body.WriteString(entry)
	}
	count := string([]byte{byte(len(entries)), byte(len(entries) >> 8)})
	return le32(10+body.Len()+1) + le32(tail) + count + body.String() + "\xff"
}

// zipPairs are the entries by twos: each with a number for its partner.
func zipPairs() (pairs []string) {
	for i, entry := range zipEntries {
		pairs = append(pairs, entry, "\xc0"+string([]byte{byte(i * 40), byte(i)}))
	}
	return pairs
}

// oldValues are values in encodings that Redis 7.0 does not write: the number of
// the type and what follows the key.
func oldValues() map[string]string {
	return map[string]string{
		"string of 6 bits":     "\x00" + str("short"),
		"string of 14 bits":    "\x00" + str(noise(300)),
		"string of 32 bits":    "\x00" + str(noise(20_000)),
		"string of 64 bits":    "\x00\x81\x00\x00\x00\x00\x00\x00\x00\x03abc",
		"short in a long form": "\x00\x80\x00\x00\x00\x03abc",
		"int8":                 "\x00\xc0\x80",
		"int16":                "\x00\xc1\x00\x80",
		"int32":                "\x00\xc2\x00\x00\x00\x80",
		"compressed":           "\x00\xc3\x05\x0a\x00a\xe0\x00\x00",
		"linked list":          "\x01\x04" + str("a") + str("") + "\xc1\x39\x30" + str(noise(100)),
		"set":                  "\x02\x02" + str("a") + "\xc0\x05",
		"set of integers":      "\x02\x02" + str("12") + "\xc0\x05",
		"zset, decimal":        "\x03\x05" + str("a") + "\x031.5" + str("b") + "\xfe" + str("c") + "\xff" + str("d") + "\x02-2" + str("e") + "\x160.10000000000000000555",
		"hash":                 "\x04\x02" + str("f") + str("v") + "\xc0\x05" + str(noise(100)),
		"zipmap":               "\x09" + str("\x02\x01f\x01\x00v\x03abc\xfe\x2c\x01\x00\x00\x02"+noise(300)+"--\xff"),
		"zipmap uncounted":     "\x09" + str("\xfe\x01f\x00\x03---\xff"),
		"list ziplist":         "\x0a" + str(ziplist(zipEntries...)),
		"intset of 2":          "\x0b" + str(le32(2)+le32(2)+"\x00\x80\x05\x00"),
		"intset of 8":          "\x0b" + str(le32(8)+le32(1)+"\x05\x00\x00\x00\x00\x00\x00\x00"),
		"zset ziplist":         "\x0c" + str(ziplist(append(zipPairs(), "\x01m", "\x031.5", "\x01n", "\x04-inf")...)),
		"hash ziplist":         "\x0d" + str(ziplist(zipPairs()...)),
		"quicklist":            "\x0e\x03" + str(ziplist(zipEntries[:5]...)) + str(ziplist()) + str(ziplist(zipEntries[5:]...)),
		"quicklist with plain": "\x12\x02\x01" + str("plain") + "\x02" + str(listpack("\x81a")),
	}
}

// listpack is a listpack of elements of less than 128 bytes.
func listpack(elements ...string) string {
	body := ""
	for _, e := range elements {
		body += e + string([]byte{byte(len(e))})
	}
	return le32(7+len(body)) + string([]byte{byte(len(elements)), byte(len(elements) >> 8)}) + body + "\xff"
}

// oldFile is a file of a version with the values, which has no checksum to check.
func oldFile(version int, values map[string]string) []byte {
	var file bytes.Buffer
	fmt.Fprintf(&file, "REDIS%04d\xfe\x00", version)
	for key, value := range values {
		if strings.HasPrefix(key, "zset") {
			file.WriteString("\xfd" + le32(2_000_000_000))
		}
		file.WriteString(value[:1] + str(key) + value[1:])
	}
	file.WriteString("\xfe\x0b\x00\x01k\x01v\xff")
	if version >= 5 {
		file.Write(make([]byte, 8))
	}
	return file.Bytes()
}

func TestOldEncodingsMeanWhatTheyMeanToRedis(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, 4, 6, 9, 10} {
		file := oldFile(version, oldValues())
		redis := serverLoading(t, file)
		space := load(readFile(t, file))
		if got, want := command.Digest(space, 0), do(t, redis, "DEBUG", "DIGEST").Text; got != want {
			t.Errorf("version %d: digest %s, want %s", version, got, want)
		}
		for key := range oldValues() {
			o := space.DB(0).Peek([]byte(key), 0)
			if got, want := command.DigestValue(o), digestValue(t, redis, key); got != want {
				t.Errorf("version %d, %s: digest %s, want %s", version, key, got, want)
			}
			want := do(t, redis, "OBJECT", "ENCODING", key).Text
			if e, ok := o.Value().(interface{ Encoding() string }); ok && e.Encoding() != want {
				t.Errorf("version %d, %s: encoding %s, want %s", version, key, e.Encoding(), want)
			}
		}
	}
}

// Version 11 is of Redis 7.2, which a 7.0 cannot be asked about.
func TestEncodingsOfVersion11(t *testing.T) {
	t.Parallel()
	members := listpack("\x81a", "\x05", "\x82bc")
	stream := str(strings.Repeat("\x00", 7)+"\x01"+strings.Repeat("\x00", 8)) +
		str(listpack("\x01", "\x00", "\x01", "\x81f", "\x00", "\x02", "\x00", "\x00", "\x81v", "\x04")) +
		"\x01" + "\x01\x00" + "\x01\x00" + "\x00\x00" + "\x01" +
		"\x01" + str("group") + "\x01\x00" + "\x01" + "\x00" +
		"\x01" + str("consumer") + "\x07\x00\x00\x00\x00\x00\x00\x00" + "\xff\xff\xff\xff\xff\xff\xff\xff" + "\x00"
	space := load(readFile(t, oldFile(11, map[string]string{"set": "\x14" + str(members), "stream": "\x15\x01" + stream})))
	if got, want := command.DigestValue(space.DB(0).Peek([]byte("set"), 0)), digestOf(set("a", "5", "bc")); got != want {
		t.Errorf("set: digest %s, want %s", got, want)
	}
	s := plain(space.DB(0).Peek([]byte("stream"), 0).Value().(*ds.Stream))
	if s.Chunks[0][0].Pairs[1] != "v" || s.Groups[0].Consumers[0] != (plainConsumer{Name: "consumer", SeenMs: 7}) {
		t.Errorf("stream: %+v", s)
	}
}

// TestOldStreams: what Redis 5 and 6 wrote, which did not count what was added.
func TestOldStreams(t *testing.T) {
	t.Parallel()
	node := str("\x00\x00\x00\x00\x00\x00\x00\x05"+strings.Repeat("\x00", 8)) +
		str(listpack("\x02", "\x01", "\x01", "\x81f", "\x00",
			"\x02", "\x00", "\x00", "\x81v", "\x04", "\x03", "\x01", "\x00", "\x81w", "\x04", "\x02", "\x02", "\x07", "\x81x", "\x04"))
	value := func(group string) string {
		return "\x0f\x01" + node + "\x02" + "\x07\x07" + "\x01" + str("group") + group + "\x00\x00"
	}
	values := map[string]string{
		"behind": value("\x04\x00"), "first": value("\x05\x00"), "between": value("\x06\x00"), "last": value("\x07\x07"), "beyond": value("\x07\x08"),
	}
	file := oldFile(9, values)
	redis := serverLoading(t, file)
	again := serverLoading(t, writeFile(t, readFile(t, file)))
	for key := range values {
		if want, got := strings.Join(tellStream(t, redis, key), "\n"), strings.Join(tellStream(t, again, key), "\n"); got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
}

func TestWhatCannotBeReadSaysWhy(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]rdb.Error{
		"RADIS0010":         {Offset: 0, Reason: "this is no RDB file"},
		"REDIS00x0":         {Offset: 0, Reason: "this is no RDB file"},
		"REDIS0012":         {Offset: 0, Reason: "a file of version 12; versions 1 to 11 can be read"},
		"REDIS0000":         {Offset: 0, Reason: "a file of version 0; versions 1 to 11 can be read"},
		"REDIS0010\xfe\x10": {Offset: 10, Reason: "the database 16: there are only 16"},
		"REDIS0010\xf7\x81" + moduleID("ReJSON-RL", 3):      {Offset: 9, Reason: "data of the module ReJSON-RL: modules cannot be read"},
		"REDIS0010\x07\x01k\x81" + moduleID("MBbloom--", 3): {Offset: 10, Reason: "a value of the module MBbloom--: modules cannot be read"},
		"REDIS0010\xf6":                                           {Offset: 9, Reason: "functions in a format that only release candidates of Redis 7.0 had"},
		"REDIS0010\xf4":                                           {Offset: 9, Reason: "neither an opcode nor a type of value: 244"},
		"REDIS0010\x00\x01k\xc4":                                  {Offset: 12, Reason: "no such encoding of a string: 4"},
		"REDIS0010\x00\x01k\x82":                                  {Offset: 12, Reason: "no such form of a length: 130"},
		"REDIS0010\x08\x01k":                                      {Offset: 10, Reason: "no such type of value: 8"},
		"REDIS0010\x02\x01k\x02\x01a\x01a":                        {Offset: 15, Reason: "a set has a member twice"},
		"REDIS0010\x04\x01k\x02\x01f\x00\x01f\x00":                {Offset: 16, Reason: "a hash has a field twice"},
		"REDIS0010\x03\x01k\x01\x01m\xfd":                         {Offset: 13, Reason: "a score is no number"},
		"REDIS0010\x12\x01k\x01\x02" + str(listpack("\x81a")[:8]): {Offset: 14, Reason: "a listpack does not have the length that it says"},
		"REDIS0010\x12\x01k\x01\x01\x00":                          {Offset: 14, Reason: "a large element of a list is empty"},
		"REDIS0010\x00\x01k\x01v\xff\x001234567":                  {Offset: 15, Reason: "the checksum is wrong: the file is damaged"},
	} {
		_, err := readRecords(strings.NewReader(input))
		var got *rdb.Error
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%q: got %v, want %v", input, err, want.Error())
		}
	}
}

// moduleID is the ID under which a module's data is written.
func moduleID(name string, version uint64) string {
	id := version
	for i, c := range name {
		id |= uint64(strings.IndexRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", c)) << (58 - 6*i)
	}
	return string(binary.BigEndian.AppendUint64(nil, id))
}
