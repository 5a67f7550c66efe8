package exec

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// debugProtocol answers with a value of the wanted kind, so that a client can try how it
// reads it.
func debugProtocol(c *command.Ctx) error {
	kind := strings.ToLower(c.Arg(2))
	write, ok := protocolSamples[kind]
	switch {
	case !ok:
		return command.Error("ERR Wrong protocol type name. Please use one of the following: " +
			"string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false")
	case kind == "push" && c.Out.Proto != 3:
		return command.Error("ERR RESP2 is not supported by this command")
	}
	write(c.Out)
	return nil
}

// protocolSamples are the values that Redis has for each kind.
var protocolSamples = map[string]func(out *resp.Writer){
	"string":   func(out *resp.Writer) { out.BulkString("Hello World") },
	"integer":  func(out *resp.Writer) { out.Int(12345) },
	"double":   func(out *resp.Writer) { out.Double(3.141) },
	"bignum":   func(out *resp.Writer) { out.BigNumber("1234567999999999999999999999999999999") },
	"null":     func(out *resp.Writer) { out.Null() },
	"verbatim": func(out *resp.Writer) { out.Verbatim("txt", "This is a verbatim\nstring") },
	"true":     func(out *resp.Writer) { out.Bool(true) },
	"false":    func(out *resp.Writer) { out.Bool(false) },
	"array": func(out *resp.Writer) {
		out.Array(3)
		writeNumbers(out)
	},
	"set": func(out *resp.Writer) {
		out.Set(3)
		writeNumbers(out)
	},
	"map": func(out *resp.Writer) {
		out.Map(3)
		for i := range int64(3) {
			out.Int(i)
			out.Bool(i == 1)
		}
	},
	"attrib": func(out *resp.Writer) {
		if out.Proto == 3 {
			out.Raw([]byte("|1\r\n"))
			out.BulkString("key-popularity")
			out.Array(2)
			out.BulkString("key:123")
			out.Int(90)
		}
		out.BulkString("Some real reply following the attribute")
	},
	"push": func(out *resp.Writer) { // what is pushed is no reply, so one follows
		out.Push(2)
		out.BulkString("server-cpu-usage")
		out.Int(42)
		out.BulkString("Some real reply following the push reply")
	},
}

func writeNumbers(out *resp.Writer) {
	for i := range int64(3) {
		out.Int(i)
	}
}
