package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// feed gives the stream to r in pieces of the sizes that next chooses, and
// collects copies of the requests until the stream ends or is refused.
func feed(r *Requests, stream []byte, next func(left int) int) (requests [][]string, err error) {
	for {
		for {
			argv, ok, err := r.Next()
			if err != nil {
				return requests, err
			}
			if !ok {
				break
			}
			request := make([]string, len(argv))
			for i, arg := range argv {
				request[i] = string(arg)
			}
			requests = append(requests, request)
		}
		if len(stream) == 0 {
			return requests, nil
		}
		space := r.Space()
		n := copy(space, stream[:min(max(next(len(stream)), 1), len(stream))])
		r.Advance(n)
		stream = stream[n:]
	}
}

// requestCases are streams and what Redis 7.0.15 makes of them. The oracle
// test sends the same ones to a real server.
var requestCases = []struct {
	name, input string
	want        [][]string
	err         string
}{
	{name: "multibulk", input: "*2\r\n$3\r\nfoo\r\n$0\r\n\r\n", want: [][]string{{"foo", ""}}},
	{name: "pipeline", input: "*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\nc d\r\n", want: [][]string{{"a"}, {"b"}, {"c", "d"}}},
	{name: "argument of any bytes", input: "*1\r\n$4\r\n\x00\r\n\xff\r\n", want: [][]string{{"\x00\r\n\xff"}}},
	{name: "empty requests", input: "*0\r\n*-1\r\n*-100\r\n\r\n\n  \t\r\n*1\r\n$1\r\na\r\n", want: [][]string{{"a"}}},
	{name: "line ends are not looked at", input: "*1\rx$1\rxaxx*1\r\n$1\r\nb\r\n", want: [][]string{{"a"}, {"b"}}},
	{name: "cut in count", input: "*1", want: nil},
	{name: "cut after CR", input: "*1\r\n$1\r", want: nil},
	{name: "cut in argument", input: "*1\r\n$1\r\na\r", want: nil},
	{name: "largest count", input: "*2147483647\r\n$1\r\na\r\n", want: nil},
	{name: "count too large", input: "*2147483648\r\n", err: "invalid multibulk length"},
	{name: "count overflows", input: "*99999999999999999999\r\n", err: "invalid multibulk length"},
	{name: "count is empty", input: "*\r\n", err: "invalid multibulk length"},
	{name: "count with sign", input: "*+1\r\n", err: "invalid multibulk length"},
	{name: "count with zero", input: "*01\r\n", err: "invalid multibulk length"},
	{name: "minus zero", input: "*-0\r\n", err: "invalid multibulk length"},
	{name: "count with blank", input: "* 1\r\n", err: "invalid multibulk length"},
	{name: "count ends with LF", input: "*1\n$1\r\na\r\n", err: "invalid multibulk length"},
	{name: "count with NUL", input: "*1\x00\r\n$1\r\na\r\n", want: nil},
	{name: "largest bulk", input: "*1\r\n$536870912\r\n", want: nil},
	{name: "bulk too large", input: "*1\r\n$536870913\r\n", err: "invalid bulk length"},
	{name: "negative bulk", input: "*1\r\n$-1\r\n", err: "invalid bulk length"},
	{name: "bulk is no number", input: "*1\r\n$a\r\n", err: "invalid bulk length"},
	{name: "no bulk", input: "*1\r\nfoo\r\n", err: "expected '$', got 'f'"},
	{name: "no bulk but an integer", input: "*1\r\n:99999999999999999999\r\n", err: "expected '$', got ':'"},
	{name: "no bulk but a line end", input: "*1\r\n\r\n", err: "expected '$', got ' '"},
	{name: "no bulk but a line feed", input: "*1\r\n\n\r\n", err: "expected '$', got ' '"},
	{name: "no bulk but a high byte", input: "*1\r\n\xff\r\n", err: "expected '$', got '\xff'"},
	{name: "requests before an error count", input: "a\r\n*x\r\nb\r\n", want: [][]string{{"a"}}, err: "invalid multibulk length"},

	{name: "inline", input: "foo  bar\tbaz \r\n", want: [][]string{{"foo", "bar", "baz"}}},
	{name: "inline with LF", input: "foo bar\nbaz\n", want: [][]string{{"foo", "bar"}, {"baz"}}},
	{name: "inline with CR inside", input: "foo\rbar\r\r\n", want: [][]string{{"foo", "bar"}}},
	{name: "inline with other blanks", input: "\v\ffoo\vbar \fbaz\r\n", want: [][]string{{"foo\vbar", "baz"}}},
	{name: "inline with NUL", input: "fo\x00o\r\nbar\r\n", want: nil},
	{name: "inline is cut", input: "foo bar", want: nil},
	{name: "double quotes", input: `x "a b" "" "\n\r\t\b\a\\\"\q"` + "\n", want: [][]string{{"x", "a b", "", "\n\r\t\b\a\\\"q"}}},
	{name: "hexadecimal", input: `x "\x41\xfF\x00\xg1\x4"` + "\n", want: [][]string{{"x", "A\xff\x00xg1x4"}}},
	{name: "single quotes", input: `x 'a b' '' 'it\'s' '\n\\ ' '"'` + "\n", want: [][]string{{"x", "a b", "", "it's", `\n\\ `, `"`}}},
	{name: "quotes open inside a word", input: `x ab"c d" e'f g'` + "\n", want: [][]string{{"x", "abc d", "ef g"}}},
	{name: "backslash outside quotes", input: `x \n a\"b"` + "\n", want: [][]string{{"x", `\n`, `a\b`}}},
	{name: "blank after quote", input: "'x'\v\"y\"\f'z'\r\n", want: [][]string{{"x", "y", "z"}}},
	{name: "quote closes inside a word", input: `x "a"b` + "\n", err: "unbalanced quotes in request"},
	{name: "quote after quote", input: `x "a"'b'` + "\n", err: "unbalanced quotes in request"},
	{name: "double quote stays open", input: `x "a` + "\r\n", err: "unbalanced quotes in request"},
	{name: "single quote stays open", input: `x 'a` + "\r\n", err: "unbalanced quotes in request"},
	{name: "backslash at the end", input: `x "a\` + "\r\n", err: "unbalanced quotes in request"},
	{name: "escaped quote at the end", input: `x 'a\'` + "\r\n", err: "unbalanced quotes in request"},

	{name: "the word POST", input: "a\r\npost\r\nb\r\n", want: [][]string{{"a"}}, err: "HTTP (POST)"},
	{name: "POST as an array", input: "*1\r\n$4\r\nPOST\r\n*1\r\n$1\r\nb\r\n", err: "HTTP (POST)"},
	{name: "a header of HTTP", input: "hOST: a\r\nb\r\n", err: "HTTP (Host:)"},

	{name: "longest count line", input: "*" + strings.Repeat("1", maxLineBytes-1), want: nil},
	{name: "count line too long", input: "*" + strings.Repeat("1", maxLineBytes), err: "too big mbulk count string"},
	{name: "longest bulk line", input: "*1\r\n$" + strings.Repeat("1", maxLineBytes-1), want: nil},
	{name: "bulk line too long", input: "*1\r\n$" + strings.Repeat("1", maxLineBytes), err: "too big bulk count string"},
	{name: "longest inline", input: strings.Repeat("a", maxLineBytes), want: nil},
	{name: "inline too long", input: strings.Repeat("a", maxLineBytes+1), err: "too big inline request"},
	{name: "inline with NUL too long", input: "a\x00\r\n" + strings.Repeat("a", maxLineBytes), err: "too big inline request"},
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, c := range requestCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, piece := range []int{len(c.input), 1, 2, 3, 7} {
				r := Requests{Trusted: true}
				got, err := feed(&r, []byte(c.input), func(int) int { return piece })
				if !slices.EqualFunc(got, c.want, slices.Equal) {
					t.Fatalf("in pieces of %d: got %q, want %q", piece, got, c.want)
				}
				if errText(err) != c.err {
					t.Fatalf("in pieces of %d: error %q, want %q", piece, errText(err), c.err)
				}
			}
		})
	}
}

// foreignCases are streams of other protocols, and what looks like them and is none.
var foreignCases = []struct {
	input string
	want  [][]string
	err   string
}{
	{input: "GET / HTTP/1.1\r\nb\r\n", err: "HTTP (GET)"},
	{input: "a\r\n\r\nget http://localhost/?a=\"b HTTP/1.0\nb\r\n", want: [][]string{{"a"}}, err: "HTTP (GET)"},
	{input: "HEAD / HTTP/1.1\r\n", err: "HTTP (HEAD)"},
	{input: "PUT /a b HTTP/1.1\r\n", err: "HTTP (PUT)"},
	{input: "PATCH / HTTP/1.1\r\n", err: "HTTP (PATCH)"},
	{input: "DELETE / HTTP/1.1\r\n", err: "HTTP (DELETE)"},
	{input: "OPTIONS * HTTP/1.1\r\n", err: "HTTP (OPTIONS)"},
	{input: "CONNECT localhost:7379 HTTP/1.1\r\n", err: "HTTP (CONNECT)"},
	{input: "TRACE / HTTP/1.1\r\n", err: "HTTP (TRACE)"},
	{input: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", err: "HTTP (PRI)"},
	{input: "\x16\x03\x01\x02\x00\x01\n\x00\r\nb\r\n", err: "the beginning of TLS"},

	{input: "GET /\r\n", want: [][]string{{"GET", "/"}}},
	{input: "GET HTTP/1.1\r\n", want: [][]string{{"GET", "HTTP/1.1"}}},
	{input: "SET a HTTP/1.1\r\n", want: [][]string{{"SET", "a", "HTTP/1.1"}}},
	{input: "HEAD a\r\n", want: [][]string{{"HEAD", "a"}}},
	{input: "*3\r\n$3\r\nGET\r\n$1\r\n/\r\n$8\r\nHTTP/1.1\r\n", want: [][]string{{"GET", "/", "HTTP/1.1"}}},
	{input: "GET \x16\x03\r\n", want: [][]string{{"GET", "\x16\x03"}}},
	{input: "\x16\r\n", want: [][]string{{"\x16"}}},
}

func TestOtherProtocolsEndTheStream(t *testing.T) {
	t.Parallel()
	for _, c := range foreignCases {
		for _, piece := range []int{len(c.input), 1, 5} {
			got, err := feed(&Requests{Trusted: true}, []byte(c.input), func(int) int { return piece })
			if !slices.EqualFunc(got, c.want, slices.Equal) || errText(err) != c.err {
				t.Errorf("%q in pieces of %d: got %q, %v; want %q, %q", c.input, piece, got, err, c.want, c.err)
			}
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRequestsUntrusted(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", untrustedMaxBulkBytes)
	for _, c := range []struct{ name, input, err string }{
		{"ten arguments", "*10\r\n", ""},
		{"eleven arguments", "*11\r\n", "unauthenticated multibulk length"},
		{"far too many arguments", "*2147483648\r\n", "invalid multibulk length"},
		{"16 KiB", "*1\r\n$16384\r\n" + long + "\r\n", ""},
		{"more than 16 KiB", "*1\r\n$16385\r\n", "unauthenticated bulk length"},
		{"far too long", "*1\r\n$536870913\r\n", "invalid bulk length"},
		{"inline is not limited", strings.Repeat("a ", 1000) + "\n", ""},
	} {
		var r Requests
		if _, err := feed(&r, []byte(c.input), func(left int) int { return left }); errText(err) != c.err {
			t.Errorf("%s: error %q, want %q", c.name, errText(err), c.err)
		}
	}
}

// AUTH may be followed, in the same packet, by what it permits.
func TestRequestsTrustTakesEffectAtTheNextRequest(t *testing.T) {
	t.Parallel()
	var r Requests
	r.Advance(copy(r.Space(), "AUTH x\r\n*11\r\n"))
	if _, ok, err := r.Next(); !ok || err != nil {
		t.Fatalf("AUTH: ok %v, error %v", ok, err)
	}
	r.Trusted = true
	if _, ok, err := r.Next(); ok || err != nil {
		t.Fatalf("request of eleven: ok %v, error %v", ok, err)
	}
}

func TestRequestsMaxBulkBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit  int64
		header string
		err    string
	}{
		{5, "$5", ""},
		{5, "$6", "invalid bulk length"},
		{1 << 30, "$1073741824", ""},
		{1<<63 - 1, "$4294967296", ""},
		{1<<63 - 1, "$9223372036854775807", "invalid bulk length"},
	} {
		r := Requests{Trusted: true, MaxBulkBytes: c.limit}
		_, err := feed(&r, []byte("*1\r\n"+c.header+"\r\nabc"), func(int) int { return 1 })
		if errText(err) != c.err {
			t.Errorf("limit %d, %s: error %q, want %q", c.limit, c.header, errText(err), c.err)
		}
	}
}

func TestRequestsErrorIsFinal(t *testing.T) {
	t.Parallel()
	var r Requests
	r.Advance(copy(r.Space(), "*x\r\nPING\r\n"))
	for range 3 {
		argv, ok, err := r.Next()
		if argv != nil || ok || !errors.Is(err, errMultibulkLength) {
			t.Fatalf("got %q, %v, %v", argv, ok, err)
		}
		r.Advance(copy(r.Space(), "PING\r\n"))
	}
}

// All requests of one read may be collected before the first is served, and
// appending to an argument does not reach into the next one.
func TestRequestsArgvLivesUntilSpace(t *testing.T) {
	t.Parallel()
	r := Requests{Trusted: true}
	var stream []byte
	for i := range 50 {
		stream = AppendCommand(stream, "SET", fmt.Sprint("key", i), "value")
	}
	r.Advance(copy(r.Space(), stream))
	var all [][][]byte
	for {
		argv, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		_ = append(argv[0], "overwritten"...)
		_ = append(argv, []byte("overwritten"))
		all = append(all, argv)
	}
	if len(all) != 50 {
		t.Fatalf("got %d requests", len(all))
	}
	for i, argv := range all {
		if want := fmt.Sprint("SET key", i, " value"); string(bytes.Join(argv, []byte(" "))) != want {
			t.Fatalf("request %d is %q, want %q", i, argv, want)
		}
	}
}

func TestRequestsBuffered(t *testing.T) {
	t.Parallel()
	var r Requests
	check := func(want int) {
		t.Helper()
		if got := r.Buffered(); got != want {
			t.Fatalf("Buffered() = %d, want %d", got, want)
		}
	}
	check(0)
	r.Advance(copy(r.Space(), "PING\r\nPING\r\nPI"))
	check(14)
	_, _, _ = r.Next()
	check(8)
	_, _, _ = r.Next()
	check(2)
	_, _, _ = r.Next()
	check(2)
	r.Advance(copy(r.Space(), "NG\r\n"))
	_, _, _ = r.Next()
	check(0)
}

// A reader that breaks the rules of its count cannot make us read what was
// never received.
func TestRequestsAdvanceIsClamped(t *testing.T) {
	t.Parallel()
	var r Requests
	r.Advance(5)
	r.Advance(-5)
	r.Space()
	r.Advance(1 << 30)
	if r.Buffered() != cap(r.buf) {
		t.Fatalf("Buffered() = %d, buffer of %d", r.Buffered(), cap(r.buf))
	}
}

// footprint is the memory that r holds on to.
func footprint(r *Requests) int {
	bytes := cap(r.buf) + cap(r.spans)*16 + cap(r.args)*24 + cap(r.large.arriving)
	for _, own := range slices.Concat(r.large.whole, r.large.handed) {
		bytes += cap(own)
	}
	return bytes
}

func TestRequestsMemoryFollowsWhatWasReceived(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"announced bulk":      "*1\r\n$536870912\r\nabc",
		"announced arguments": "*1048576\r\n$1\r\na\r\n",
		"both":                "*2147483647\r\n$1\r\na\r\n$536870912\r\n",
	} {
		r := Requests{Trusted: true}
		if _, err := feed(&r, []byte(stream), func(int) int { return 1 }); err != nil {
			t.Fatal(err)
		}
		r.Space()
		if got := footprint(&r); got > 2*firstBytes+1024 {
			t.Errorf("%s: %d bytes for %d", name, got, len(stream))
		}
	}
	for name, unit := range map[string]string{
		"long argument":   strings.Repeat("x", 100),
		"short arguments": "$0\r\n\r\n",
		"inline":          "a b c d e f g h\n",
	} {
		r := Requests{Trusted: true}
		stream := strings.Repeat(unit, 1<<20/len(unit))
		switch name {
		case "long argument":
			stream = "*1\r\n$536870912\r\n" + stream
		case "short arguments":
			stream = "*2147483647\r\n" + stream
		}
		received := 0
		_, err := feed(&r, []byte(stream), func(left int) int {
			received = len(stream) - left
			if got := footprint(&r); got > 16*(received+keepBytes) {
				t.Fatalf("%s: %d bytes for %d received", name, got, received)
			}
			return left
		})
		if err != nil {
			t.Fatal(err)
		}
		if name == "long argument" && footprint(&r) > (headStart+1)*len(stream) {
			t.Errorf("%s: %d bytes for %d received", name, footprint(&r), len(stream))
		}
	}
}

func TestRequestsShrinkAfterLargeRequest(t *testing.T) {
	t.Parallel()
	for name, argv := range map[string][]string{
		"long argument":  {"SET", "k", strings.Repeat("x", 4<<20)},
		"many arguments": slices.Repeat([]string{"x"}, 1<<17),
	} {
		for _, tail := range []string{"", "*1\r\n$4\r\nPI"} {
			r := Requests{Trusted: true}
			stream := append(AppendCommand(nil, argv...), tail...)
			got, err := feed(&r, stream, func(left int) int { return left })
			if err != nil || len(got) != 1 || !slices.Equal(got[0], argv) {
				t.Fatalf("%s: %d requests, error %v", name, len(got), err)
			}
			space := r.Space()
			if got := footprint(&r); got > keepBytes+keepArgs*40 {
				t.Errorf("%s, then %q: %d bytes are kept", name, tail, got)
			}
			if tail == "" {
				continue
			}
			r.Advance(copy(space, "NG\r\n"))
			if argv, ok, err := r.Next(); !ok || err != nil || string(argv[0]) != "PING" {
				t.Errorf("%s: after shrinking: %q, %v, %v", name, argv, ok, err)
			}
		}
	}
}

// Reads get longer while they fill the space, up to a bound.
func TestRequestsSpaceAdapts(t *testing.T) {
	t.Parallel()
	r := Requests{Trusted: true}
	request := AppendCommand(nil, "PING")
	stream := bytes.Repeat(request, 64<<10/len(request))
	if got := len(r.Space()); got != firstBytes {
		t.Errorf("first space has %d bytes", got)
	}
	if _, err := feed(&r, stream, func(left int) int { return left }); err != nil {
		t.Fatal(err)
	}
	if got := len(r.Space()); got != keepBytes {
		t.Errorf("after a long pipeline a space has %d bytes, want %d", got, keepBytes)
	}
}

func TestRequestsSteadyStateDoesNotAllocate(t *testing.T) {
	r := Requests{Trusted: true}
	stream := pipelined(100)
	serve := func() {
		for left := stream; len(left) > 0; {
			n := copy(r.Space(), left)
			r.Advance(n)
			left = left[n:]
			for {
				if _, ok, err := r.Next(); err != nil {
					t.Fatal(err)
				} else if !ok {
					break
				}
			}
		}
	}
	serve()
	serve()
	if allocs := testing.AllocsPerRun(100, serve); allocs != 0 {
		t.Errorf("%v allocations for 100 requests", allocs)
	}
}

// A long argument that arrives in tiny pieces is looked at and moved about
// once, not once for every piece, which would take minutes here.
func TestRequestsManyTinyPieces(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("two million pieces")
	}
	r := Requests{Trusted: true}
	stream := AppendCommand(nil, "SET", "k", strings.Repeat("x", 2<<20))
	stream = AppendCommand(stream, slices.Repeat([]string{"x"}, 1<<16)...)
	got, err := feed(&r, stream, func(int) int { return 1 })
	if err != nil || len(got) != 2 {
		t.Fatalf("%d requests, error %v", len(got), err)
	}
}

// splitRequests feeds the stream whole and in random pieces.
func splitRequests(t *testing.T, stream []byte, seed uint64, trusted bool) {
	t.Helper()
	whole := Requests{Trusted: trusted, MaxBulkBytes: 1 << 20}
	want, wantErr := feed(&whole, stream, func(left int) int { return left })
	rng := rand.New(rand.NewPCG(seed, 0))
	split := Requests{Trusted: trusted, MaxBulkBytes: 1 << 20}
	got, gotErr := feed(&split, stream, func(left int) int { return 1 + rng.IntN(min(left, 1+rng.IntN(64))) })
	if !slices.EqualFunc(got, want, slices.Equal) || errText(gotErr) != errText(wantErr) {
		t.Fatalf("stream %q\nwhole %q, %v\nsplit %q, %v", stream, want, wantErr, got, gotErr)
	}
	if wantErr == nil && whole.Buffered() != split.Buffered() {
		t.Fatalf("stream %q: %d bytes left over, split %d", stream, whole.Buffered(), split.Buffered())
	}
	if limit := 48*len(stream) + 4*keepBytes; footprint(&split) > limit || footprint(&whole) > limit {
		t.Fatalf("stream of %d bytes: memory %d, split %d", len(stream), footprint(&whole), footprint(&split))
	}
}

func TestRequestsDoNotDependOnSplits(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		splitRequests(t, []byte(randomStream(rng)), rng.Uint64(), rng.IntN(2) == 0)
	}
}

func FuzzRequests(f *testing.F) {
	for i, c := range requestCases {
		if len(c.input) < 1024 {
			f.Add([]byte(c.input), uint64(i), i%2 == 0)
		}
	}
	f.Fuzz(splitRequests)
}

// What AppendCommand writes, and what Value.String quotes, is read back.
func FuzzRequestsRoundTrip(f *testing.F) {
	f.Add("SET", "key", "value with \"quotes\" \r\n\x00\xff")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		args := []string{a, b, c}
		stream := AppendCommand(nil, args...)
		for i, arg := range args {
			if i > 0 {
				stream = append(stream, ' ')
			}
			stream = append(stream, Value{Kind: BulkString, Str: arg}.String()...)
		}
		r := Requests{Trusted: true}
		got, err := feed(&r, append(stream, '\n'), func(left int) int { return left })
		if len(stream) > maxLineBytes || errors.As(err, new(ForeignError)) {
			return
		}
		if err != nil || len(got) != 2 || !slices.Equal(got[0], args) || !slices.Equal(got[1], args) {
			t.Fatalf("%q came back as %q, %v", args, got, err)
		}
	})
}
