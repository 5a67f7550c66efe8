// Package resp turns bytes into requests and replies into bytes: the Redis
// serialization protocol in its versions 2 and 3, and the inline form that a
// person types into a plain TCP connection. It knows no command, no
// connection and no clock; it imports nothing but the standard library.
//
// There are three parts, one file each:
//
//   - [Writer] appends replies to one buffer. A handler says what it means
//     (a map, a double, a null) and the writer picks the bytes that the
//     client's protocol version has for it.
//   - [Requests] cuts a stream of received bytes into requests. It is push
//     style: whoever owns the connection reads into [Requests.Space], so the
//     parser never blocks, and feeding it by hand in a test is one line.
//   - [Parse] decodes one reply into a [Value]. It serves the reading side:
//     scripts that call commands, replicas, tests, the command line.
//
// Who owns what: the buffers belong to the Writer and to the Requests. What
// [Writer.Bytes] and [Requests.Next] hand out aliases them, and is valid
// until the next call that changes the buffer. A Value owns its strings.
//
// To add a reply type: a method on Writer with the form for either protocol
// version, a [Kind], a case in the parser's switch, a case in
// [Value.String], and a row in the tests' table of encodings.
package resp
