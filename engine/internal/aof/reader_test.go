package aof_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
)

// readAll reads a file and shows its requests.
func readAll(r *aof.Reader) (requests []string, err error) {
	for {
		request, err := r.Next()
		if err != nil {
			return requests, err
		}
		requests = append(requests, fmt.Sprintf("%d-%d %s", request.Offset, request.End, bytes.Join(request.Args, []byte(" "))))
	}
}

const (
	set   = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
	multi = "*1\r\n$5\r\nMULTI\r\n"
	exec  = "*1\r\n$4\r\nEXEC\r\n"
)

func TestReaderSaysWhereEachRequestIs(t *testing.T) {
	var remarks []string
	r := aof.NewReader(strings.NewReader("#TS:17\r\n" + set + multi + set + exec))
	r.Remark = func(line []byte, offset int64) error {
		remarks = append(remarks, fmt.Sprintf("%d %s", offset, line))
		return nil
	}
	requests, err := readAll(r)
	want := "[8-35 SET a 1 35-50 MULTI 50-77 SET a 1 77-91 EXEC]"
	if got := fmt.Sprint(requests); got != want || !errors.Is(err, io.EOF) || fmt.Sprint(remarks) != "[0 #TS:17]" {
		t.Errorf("%s %v %v, want %s", got, err, remarks, want)
	}
}

// Wherever a file is cut, it is whole up to the end of a request or transaction, and torn there.
func TestTornTailIsFoundAtEveryByte(t *testing.T) {
	file := set + multi + set + set + exec + "#TS:17\r\n" + set
	whole := map[int]bool{0: true, 27: true, 110: true, 118: true, len(file): true}
	last := 0
	for cut := range len(file) + 1 {
		for _, strict := range []bool{false, true} {
			r := aof.NewReader(strings.NewReader(file[:cut]))
			r.Strict = strict
			_, err := readAll(r)
			var torn *aof.TornError
			switch {
			case whole[cut]:
				last = cut
				if !errors.Is(err, io.EOF) {
					t.Errorf("cut at %d: %v", cut, err)
				}
			case !errors.As(err, &torn) || torn.Offset != int64(last) || torn.Size != int64(cut):
				t.Errorf("cut at %d: %v, want that it is whole up to %d", cut, err, last)
			}
		}
	}
}

func TestDamageIsRefused(t *testing.T) {
	for text, strictOnly := range map[string]bool{
		"hello\r\n":                       false,
		"*0\r\n":                          false,
		"*-1\r\n":                         false,
		"*\r\n":                           false,
		"*99999999999999999999\r\n":       false,
		"*1\r\n+OK\r\n":                   false,
		"*1\r\n$-1\r\n":                   false,
		"*1\r\n$999999999999\r\n":         false,
		"*1\x00\r\n$1\r\na\r\n":           false,
		"*1\r\n$4\r\nPI\x00\x00\x00\x00":  false,
		"REDIS0010 and so on":             false,
		"*1x\r\n$4\r\nPING\r\n":           false,
		"*1\r\n$4\r\r\nPING\r\n":          false,
		"*1\r\n$4\x0d\x0bPING\r\n":        false,
		"*1\r\n$+4\r\nPING\r\n":           false,
		"*1\r\n$ 4\r\nPING\r\n":           false,
		"*2\r\n$4\r\nPING\r\n$\r\n\r\n":   false,
		"*1\n$4\r\nPING\r\n":              true,
		"*1\r\n$4\r\nPINGxx":              true,
		"*1\r\n$4 \r\nPING\r\n":           false,
		multi + multi:                     true,
		exec:                              true,
		"#" + strings.Repeat("x", 200):    false,
		"*1\r\n$3\r\nSE" + "T\r\n" + "\n": false,
	} {
		for _, strict := range []bool{false, true} {
			r := aof.NewReader(strings.NewReader(set + text))
			r.Strict = strict
			_, err := readAll(r)
			var damaged *aof.FormatError
			if got := errors.As(err, &damaged); got != (strict || !strictOnly) {
				t.Errorf("%q, strict %v: %v", text, strict, err)
			} else if got && damaged.Offset < int64(len(set)) {
				t.Errorf("%q: whole up to %d only", text, damaged.Offset)
			}
		}
	}
}

func TestPreambleIsTheCallers(t *testing.T) {
	r := aof.NewReader(strings.NewReader("REDIS12345" + set))
	r.Preamble = func(from io.Reader) (io.Reader, int64, error) {
		text := make([]byte, 10)
		_, err := io.ReadFull(from, text)
		if string(text) != "REDIS12345" {
			t.Errorf("%q", text)
		}
		return from, 10, err
	}
	requests, err := readAll(r)
	if got := fmt.Sprint(requests); got != "[10-37 SET a 1]" || !errors.Is(err, io.EOF) {
		t.Error(got, err)
	}
}

func TestManifestSurvivesItsText(t *testing.T) {
	for text, want := range map[string]string{
		"file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n":       "",
		"# a remark\r\n file \"a b\\x01\" SEQ 7x type incremental new thing\r\n": "file \"a b\\x01\" seq 7 type i\n",
		"file a seq 1 type h\nfile b seq 2 type i\nfile c seq 1 type b\n":        "file c seq 1 type b\nfile a seq 1 type h\nfile b seq 2 type i\n",
		"type i file 'it''s' seq 1\n":                                            "error",
		"":                                                                       "error",
		"file a seq 1 type b":                                                    "error",
		"\n":                                                                     "error",
		"file a seq 1\n":                                                         "error",
		"file a seq 0 type b\n":                                                  "error",
		"file a seq 1 type x\n":                                                  "error",
		"file ../a seq 1 type b\n":                                               "error",
		"file a\\b seq 1 type b\n":                                               "error",
		"file .. seq 1 type b\n":                                                 "error",
		"file a seq 1 type b\nfile b seq 2 type b\n":                             "error",
		"file a seq 2 type i\nfile b seq 2 type i\n":                             "error",
		"file a\x00 seq 1 type b\n":                                              "error",
		"file " + strings.Repeat("a", 1100) + " seq 1 type b\n":                  "error",
	} {
		m, err := aof.ParseManifest([]byte(text))
		var bad *aof.ManifestError
		switch {
		case want == "error":
			if !errors.As(err, &bad) {
				t.Errorf("%.80q is accepted: %v", text, err)
			}
		case err != nil:
			t.Errorf("%q: %v", text, err)
		case want == "" && string(m.Format()) != text, want != "" && string(m.Format()) != want:
			t.Errorf("%q: %q", text, m.Format())
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte("file \"a b.1.base.rdb\" seq 1 type b\nfile a.1.incr.aof seq 1 type i\n"))
	f.Add([]byte("# x\nfile a seq -9 type h other 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := aof.ParseManifest(text)
		if err != nil || len(m.Format()) == 0 {
			return
		}
		again, err := aof.ParseManifest(m.Format())
		long := false // quoting may make a line too long
		for _, line := range bytes.SplitAfter(m.Format(), []byte("\n")) {
			long = long || len(line) > 1000
		}
		if !long && (err != nil || !bytes.Equal(again.Format(), m.Format())) {
			t.Errorf("%q becomes %q: %v", text, m.Format(), err)
		}
	})
}

// Requests lie one behind the other, and what is torn or damaged lies behind what is whole. What Strict accepts is
// read the same without it.
func FuzzReader(f *testing.F) {
	f.Add([]byte("#TS:17\r\n" + set + multi + set + exec))
	f.Add([]byte("*3\r\n$99999999\r\nab"))
	f.Fuzz(func(t *testing.T, file []byte) {
		strict := aof.NewReader(bytes.NewReader(file))
		strict.Strict = true
		want, strictErr := readAll(strict)
		r := aof.NewReader(bytes.NewReader(file))
		end := int64(0)
		for {
			request, err := r.Next()
			if err != nil {
				checkEnd(t, err, int64(len(file)), end, r.Whole())
				break
			}
			if request.Offset < end || request.End <= request.Offset || request.End > int64(len(file)) {
				t.Fatalf("a request at %d to %d after %d", request.Offset, request.End, end)
			}
			end = request.End
		}
		got, err := readAll(aof.NewReader(bytes.NewReader(file)))
		if errors.Is(strictErr, io.EOF) && (!errors.Is(err, io.EOF) || fmt.Sprint(got) != fmt.Sprint(want)) {
			t.Errorf("%v %v, strictly %v", got, err, want)
		}
	})
}

func checkEnd(t *testing.T, err error, size, end, whole int64) {
	t.Helper()
	var torn *aof.TornError
	var damaged *aof.FormatError
	switch {
	case errors.As(err, &torn):
		if torn.Size != size || torn.Offset > size || torn.Offset != whole {
			t.Errorf("%+v of %d", torn, size)
		}
	case errors.As(err, &damaged):
		if damaged.Offset > damaged.At || damaged.At >= size || damaged.Offset != whole {
			t.Errorf("%+v of %d", damaged, size)
		}
	case !errors.Is(err, io.EOF) || whole < end:
		t.Errorf("%v, whole up to %d of %d", err, whole, end)
	}
}
