package exec_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// filledMachine has n keys of a kind.
func filledMachine(b *testing.B, kind string, n int) (*exec.Machine, *exec.Session) {
	b.Helper()
	m := exec.New(exec.Options{Seed: 1}, labStartUs)
	b.Cleanup(m.Close)
	s := m.ConnectLocal(labStartUs)
	random := rand.NewChaCha8([32]byte{})
	for i := range n {
		noise := make([]byte, 80)
		_, _ = random.Read(noise) // it never fails
		value := hex.EncodeToString(noise)
		words := map[string][]string{
			"strings": {"SET", "key:" + strconv.Itoa(i), value},
			"hashes":  {"HSET", "key:" + strconv.Itoa(i), "name", value[:20], "mail", value[20:40], "n", strconv.Itoa(i)},
			"large":   {"HSET", "key:" + strconv.Itoa(i%10), value[:20], value},
		}[kind]
		args := make([][]byte, len(words))
		for j, word := range words {
			args[j] = []byte(word)
		}
		m.Step(labStartUs, s, args)
		s.Out.Reset()
	}
	return m, s
}

// record takes a whole snapshot and writes it nowhere, as a shell would.
func record(b *testing.B, m *exec.Machine, to io.Writer) {
	b.Helper()
	sn, err := m.BeginSnapshot(labStartUs, exec.SnapshotOptions{})
	if err != nil {
		b.Fatal(err)
	}
	seal := rdb.NewSeal(to, true)
	var parts [][]byte
	for done := false; !done; {
		if done, err = sn.Step(32<<10, 200); err != nil {
			b.Fatal(err)
		}
		parts = sn.Take(parts)
		for _, part := range parts {
			if _, err := seal.Write(part); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := seal.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	const keys = 200_000
	for _, kind := range []string{"strings", "hashes", "large"} {
		b.Run(kind, func(b *testing.B) {
			m, _ := filledMachine(b, kind, keys)
			b.ReportAllocs()
			for b.Loop() {
				record(b, m, io.Discard)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	const keys = 200_000
	for _, kind := range []string{"strings", "hashes", "large"} {
		b.Run(kind, func(b *testing.B) {
			m, _ := filledMachine(b, kind, keys)
			var file bytes.Buffer
			record(b, m, &file)
			b.ReportAllocs()
			for b.Loop() {
				l := &lab{m: exec.New(exec.Options{}, labStartUs), nowUs: labStartUs}
				if err := l.load(bytes.NewReader(file.Bytes()), exec.LoadOptions{FileBytes: int64(file.Len())}); err != nil {
					b.Fatal(err)
				}
				l.m.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
		})
	}
}

// BenchmarkWriteDuringSnapshot is SET of keys that a snapshot may not have yet, against
// SET without one.
func BenchmarkWriteDuringSnapshot(b *testing.B) {
	const keys = 200_000
	for _, during := range []bool{false, true} {
		b.Run(fmt.Sprint("snapshot=", during), func(b *testing.B) {
			m, s := filledMachine(b, "strings", keys)
			var sn *exec.Snapshot
			var parts [][]byte
			value := bytes.Repeat([]byte("v"), 160)
			for i := 0; b.Loop(); i++ {
				if during && i%keys == 0 {
					if sn != nil {
						for done := false; !done; {
							done, _ = sn.Step(1<<30, 1<<30) // all are in it: it cannot fail
						}
					}
					sn, _ = m.BeginSnapshot(labStartUs, exec.SnapshotOptions{}) // none is under way
				}
				m.Step(labStartUs, s, [][]byte{[]byte("SET"), fmt.Appendf(nil, "key:%d", i%keys), value})
				s.Out.Reset()
				if during && i%100 == 0 {
					parts = sn.Take(parts)
				}
			}
		})
	}
}
