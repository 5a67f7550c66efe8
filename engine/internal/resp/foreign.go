package resp

import "bytes"

// A web page can have the browser that shows it send a request to any port of the machine
// on which that runs. To a parser of inline requests a request of HTTP is a few lines with
// commands that do not exist, and then, in its body, whatever the page wants run. So the
// first line of HTTP ends the connection, and nothing behind it is looked at. Redis does so
// at POST and at Host:, in either form of a request; here it is every request line, those of
// HTTP/0.9 but for POST excepted, since "GET key" is a request like any other.
//
// Behind the first bytes of TLS no line ever ends, for there is a NUL byte among them. Who
// speaks it would wait for ever, and is better told to take another port.

// ForeignError says that what has been received is of another protocol. Like a
// [ProtocolError] it is final. Whoever sent it would not understand an answer.
type ForeignError struct {
	Protocol string // HTTP or TLS
	Seen     string // the word by which it was known; "" for TLS
}

// Error says what was seen.
func (e ForeignError) Error() string {
	if e.Seen == "" {
		return "the beginning of " + e.Protocol
	}
	return e.Protocol + " (" + e.Seen + ")"
}

// httpMethods are those of RFC 9110, PATCH, and the first word of HTTP/2.
var httpMethods = [][]byte{
	[]byte("GET"), []byte("POST"), []byte("HEAD"), []byte("PUT"), []byte("DELETE"), []byte("OPTIONS"),
	[]byte("CONNECT"), []byte("TRACE"), []byte("PATCH"), []byte("PRI"),
}

// requestLine refuses a line that is the first one of an HTTP request: a method, a
// target and a version.
func requestLine(line []byte) error {
	if !bytes.Contains(line, []byte(" HTTP/")) { // as good as always
		return nil
	}
	words := bytes.Fields(line)
	if len(words) < 3 || !bytes.HasPrefix(words[len(words)-1], []byte("HTTP/")) {
		return nil
	}
	for _, method := range httpMethods {
		if bytes.EqualFold(words[0], method) {
			return ForeignError{Protocol: "HTTP", Seen: string(method)}
		}
	}
	return nil
}

// httpWord refuses a request that is, by its first word, a line of HTTP. No command has
// such a name.
func httpWord(name []byte) error {
	switch {
	case len(name) == 4 && name[1]|0x20 == 'o' && bytes.EqualFold(name, []byte("post")):
		return ForeignError{Protocol: "HTTP", Seen: "POST"}
	case len(name) == 5 && name[4] == ':' && bytes.EqualFold(name, []byte("host:")):
		return ForeignError{Protocol: "HTTP", Seen: "Host:"}
	}
	return nil
}

// handshake refuses bytes that begin as a TLS connection does: with a record of kind 22.
func handshake(received []byte) error {
	if len(received) >= 2 && received[0] == 22 && received[1] == 3 {
		return ForeignError{Protocol: "TLS"}
	}
	return nil
}
