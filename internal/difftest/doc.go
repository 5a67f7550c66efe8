// Package difftest holds our engine against a real redis-server: what Redis
// answers is right, and what we answer has to be the same.
//
// It has five parts, each usable alone:
//
//   - Redis starts a real redis-server, or what REDIS_SERVER names, for one test
//     and ends it with the test (server.go). Other test packages use it as their
//     backend too.
//   - Conn is a raw RESP2/RESP3 connection and Value what it receives, down to
//     the kind of every element (conn.go, value.go). It is deliberately not a
//     client library: those hide the kinds, and hide a null array from a null
//     string.
//   - Transcripts plays the files of requests and replies under testdata
//     against any server and compares; Record writes the replies down
//     (transcript.go, play.go). Replies are only ever recorded from a
//     redis-server that this package started, so that the oracle is never
//     ourselves.
//   - Pages does the same with the examples of Markdown pages (page.go).
//   - Fuzz sends one seeded stream of random commands to two servers and
//     compares every reply and, now and then, the digest of all data (fuzz.go,
//     grammar.go).
//
// The package must not know the engine, which the import rules keep in
// another building: whoever tests a server hands in a Dial.
//
// # Transcripts
//
// A file is a list of requests, each followed by its reply:
//
//	// Text after two slashes is for the reader.
//	> SADD s a a
//	:1
//	# sorted
//	> SMEMBERS s
//	*1
//	  "a"
//
// Requests are split as redis-cli splits them: words, "text with \x00 escapes"
// and 'plain text'. A bare word {1..3} stands for 1 2 3, {1..2:f%,v%} for f1
// v1 f2 v2, {64*x} for x 64 times, and {id:c2} for the client id of the
// connection c2. Requests may name their connection, c2> PING, which is opened
// when it is first named; a bare > is connection c1.
//
// Replies show the kind each value has on the wire:
//
//	+OK -ERR text :1 "bulk" (nil) (nil array) *2 with indented elements,
//	and of RESP3: (null) #t ,3.5 (big)123 =txt"verbatim" %1 with "key" = value,
//	~2 (set) and >3 (push). (closed) says that the server hung up.
//
// A line c2< (or < alone) reads one more reply from a connection: what a
// blocked request answers in the end, or a published message.
//
// Directives stand before the request that they are about:
//
//	# sorted        elements in any order: arrays without arrays in them, sets,
//	                maps, and such within other replies, are sorted before
//	                they are compared
//	# pairs         as sorted, for arrays that alternate fields and values
//	# loose         only the kinds and the numbers of elements count
//	# match REGEX   the reply as written above has to match; it reads (match)
//	# await REGEX   as match, and the request is sent again until it does: what
//	                the server does in the background
//	# within N      an integer that is up to N less than written is as good:
//	                a time that runs down
//	# blocks        there is no reply yet; goes on when the server says that
//	                one more client is blocked
//	# silent        there is no reply at all
//	# raw           the one word of the request is sent as it is
//
// and some act by themselves:
//
//	# flush         removes all keys and scripts
//	# proto 3       all connections, open or yet to come, speak RESP3
//	# close c2      hangs up
//
// To add a transcript write the requests into a file of its own under
// engine/testdata/transcripts and record it:
//
//	go test ./engine -run Transcript -record
//
// Markdown pages have transcripts, too, in blocks that are fenced as redis
// (page.go). There replies are written as redis-cli shows them, and every
// heading begins with an empty server. Pages plays them, RecordPages records:
//
//	go test ./engine -run BookExamples -record
package difftest
