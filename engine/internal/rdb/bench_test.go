package rdb_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// benchmarked are values as they are found in data, by name.
func benchmarked() map[string]any {
	return map[string]any{
		"string":     keyspace.NewString([]byte("some short value")),
		"json":       keyspace.NewString([]byte(strings.Repeat(`{"id":17,"name":"someone","tags":["a","b"]},`, 2000))),
		"noise":      keyspace.NewString([]byte(noise(1 << 20))),
		"list":       list(numbered(10_000, "element-")...),
		"set":        set(numbered(10_000, "member-")...),
		"small hash": hash("field", "value", "count", "17", "name", "someone"),
		"hash":       hash(numbered(20_000, "text-")...),
		"zset":       zset(make([]float64, 10_000), "member-"),
	}
}

func BenchmarkEncode(b *testing.B) {
	for name, value := range benchmarked() {
		b.Run(name, func(b *testing.B) {
			var payload []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if payload, err = rdb.AppendPayload(payload[:0], value); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(payload)))
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, value := range benchmarked() {
		b.Run(name, func(b *testing.B) {
			payload, err := rdb.AppendPayload(nil, value)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode(payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeFile(b *testing.B) {
	key := rdb.Key{Name: []byte("key"), Value: hash("field", "value", "count", "17", "name", "someone")}
	b.ReportAllocs()
	w := rdb.NewWriter(io.Discard)
	for b.Loop() {
		if err := w.Write(key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeFile(b *testing.B) {
	const keys = 10_000
	var file bytes.Buffer
	w := rdb.NewWriter(&file)
	for range keys {
		if err := w.Write(rdb.Key{Name: []byte("key"), Value: hash("field", "value", "count", "17", "name", "someone")}); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readRecords(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	p := []byte(noise(1 << 20))
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		rdb.Checksum(p)
	}
}
