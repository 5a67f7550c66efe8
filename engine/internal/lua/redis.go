package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"io"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// The version that scripts are told, and the one whose behaviour this is.
const (
	redisVersion       = "7.0.15"
	redisVersionNumber = 0x0007000f
)

func (s *state) redisLibrary() library {
	table := map[string]lua51.GoFunction{
		"call":  func(l *lua51.Thread) int { return s.call(l, true) },
		"pcall": func(l *lua51.Thread) int { return s.call(l, false) },
		"log":   s.logMessage, "setresp": s.setresp, "sha1hex": s.sha1hex,
		"error_reply": s.errorReply, "status_reply": s.statusReply,
		"set_repl": s.setRepl, "acl_check_cmd": s.aclCheck,
	}
	if s.chunk == scriptChunk {
		table["replicate_commands"] = func(l *lua51.Thread) int { l.Push(lua51.True); return 1 }
		table["breakpoint"] = func(l *lua51.Thread) int { l.Push(lua51.False); return 1 }
		table["debug"] = func(*lua51.Thread) int { return 0 }
	}
	members := s.functions(table)
	for name, value := range map[string]int{
		"LOG_DEBUG": 0, "LOG_VERBOSE": 1, "LOG_NOTICE": 2, "LOG_WARNING": 3,
		"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3,
		"REDIS_VERSION_NUM": redisVersionNumber,
	} {
		members[name] = lua51.Int(value)
	}
	members["REDIS_VERSION"] = lua51.String(redisVersion)
	return members
}

// call is redis.call and, with raise false, redis.pcall.
func (s *state) call(l *lua51.Thread, raise bool) int {
	if !s.collect(l) {
		return s.fail(l, raise, callArguments(l), false)
	}
	l.Pass(stepsPerCall)
	s.reply.Reset()
	s.host.Call(s.argv, &s.reply)
	if cap(s.arena) > longBytes { // it is garbage before the reply is a text
		s.arena = nil
		clear(s.argv)
	}
	bytes := s.reply.Bytes()
	if len(bytes) == 0 {
		return s.fail(l, raise, "ERR The command gave no reply to the script", true)
	}
	l.PassBytes(len(bytes))
	if bytes[0] == '-' {
		end := strings.IndexByte(string(bytes), '\r')
		return s.fail(l, raise, string(bytes[1:end]), true)
	}
	d := decoder{state: s, l: l, rest: bytes}
	l.Push(d.value())
	return 1
}

// stepsPerCall is what a command counts for.
const stepsPerCall = 512

func callArguments(l *lua51.Thread) string {
	if l.Top() == 0 {
		return "ERR Please specify at least one argument for this redis lib call"
	}
	return "ERR Lua redis lib command arguments must be strings or integers"
}

// maxCallBytes bounds the arguments of one command together.
const maxCallBytes = 1 << 30

// collect copies the arguments of a call into one buffer that is used again.
// It reports whether all of them are strings or numbers.
func (s *state) collect(l *lua51.Thread) bool {
	args := l.Args(1)
	s.argv, s.arena = s.argv[:0], s.arena[:0]
	for _, arg := range args {
		start := len(s.arena)
		if text, ok := arg.AsString(); ok {
			if len(s.arena)+len(text) > maxCallBytes {
				l.OutOfMemory()
			}
			s.gather(l, text)
		} else if f, ok := arg.AsNumber(); ok {
			s.arena = lua51.AppendG(s.arena, f, 17)
		} else {
			return false
		}
		// A later append may move the buffer; this part then stays behind,
		// unchanged, for as long as argv points to it.
		s.argv = append(s.argv, s.arena[start:len(s.arena):len(s.arena)])
	}
	return len(args) > 0
}

// gather adds a text to the arena, a long one piece by piece.
func (s *state) gather(l *lua51.Thread, text string) {
	const pieceBytes = 1 << 20
	if need := len(s.arena) + len(text); len(text) > pieceBytes && need > cap(s.arena) {
		old := s.arena
		l.Charge(need)
		for s.arena = lua51.Room(need); len(old) > 0; {
			n := min(pieceBytes, len(old))
			s.arena = append(s.arena, old[:n]...)
			old = old[n:]
			l.PassBytes(n)
		}
	}
	for ; len(text) > pieceBytes; text = text[pieceBytes:] {
		s.arena = append(s.arena, text[:pieceBytes]...)
		l.PassBytes(pieceBytes)
	}
	s.arena = append(s.arena, text...)
}

// fail raises or returns the error of a call. That of a command has been
// counted.
func (s *state) fail(l *lua51.Thread, raise bool, message string, counted bool) int {
	t := s.errorTable(message)
	if counted {
		t.SetString(s.vm, "ignore_error_stats_update", lua51.True)
	}
	if raise {
		l.Throw(t.Value())
	}
	l.PushTable(t)
	return 1
}

func (s *state) errorTable(message string) *lua51.Table {
	t := s.vm.NewTable(0, 1)
	t.SetString(s.vm, "err", lua51.String(message))
	return t
}

func (s *state) errorReply(l *lua51.Thread) int {
	text, ok := l.Arg(1).AsString()
	if !ok || l.Top() != 1 {
		l.PushTable(s.errorTable("ERR wrong number or type of arguments"))
		return 1
	}
	l.PushTable(s.errorTable(errorText(text)))
	return 1
}

// errorText gives a lone word the code ERR, and takes the first of several
// words for the code.
func errorText(text string) string {
	const lineEnds = "\r\n"
	code, message, several := strings.Cut(strings.TrimRight(cText(strings.TrimPrefix(text, "-")), lineEnds), " ")
	if !several {
		code, message = "ERR", code
	}
	return code + " " + strings.Trim(message, lineEnds)
}

func (s *state) statusReply(l *lua51.Thread) int {
	text, ok := l.Arg(1).AsString()
	if !ok || l.Top() != 1 {
		l.PushTable(s.errorTable("ERR wrong number or type of arguments"))
		return 1
	}
	t := l.State().NewTable(0, 1)
	t.SetString(s.vm, "ok", lua51.String(text))
	l.PushTable(t)
	return 1
}

// raiseReply raises an error whose text is the whole reply.
func (s *state) raiseReply(l *lua51.Thread, message string) int {
	l.Throw(s.errorTable(message).Value())
	return 0
}

func (s *state) sha1hex(l *lua51.Thread) int {
	if l.Top() != 1 {
		return s.raiseReply(l, "ERR wrong number of arguments")
	}
	text, _ := l.Arg(1).ToText()
	const pieceBytes = 1 << 20
	sum := sha1.New()
	for ; len(text) > pieceBytes; text = text[pieceBytes:] {
		_, _ = io.WriteString(sum, text[:pieceBytes]) // it never fails
		l.Pass(pieceBytes / 4)
	}
	_, _ = io.WriteString(sum, text)
	l.PushString(hex.EncodeToString(sum.Sum(nil)))
	return 1
}

// maxLogBytes is about where a log line ends.
const maxLogBytes = 64 << 10

func (s *state) logMessage(l *lua51.Thread) int {
	n := l.Top()
	if n < 2 {
		return s.raiseReply(l, "ERR redis.log() requires two arguments or more.")
	}
	level, ok := l.Arg(1).AsNumber()
	if !ok {
		return s.raiseReply(l, "ERR First argument must be a number (log level).")
	}
	if level < 0 || level > 3 {
		return s.raiseReply(l, "ERR Invalid debug level.")
	}
	var line strings.Builder
	for i := 2; i <= n && line.Len() < maxLogBytes; i++ {
		if text, ok := l.Arg(i).ToText(); ok {
			if line.Len() > 0 {
				line.WriteByte(' ')
			}
			line.WriteString(text[:min(len(text), maxLogBytes)])
		}
	}
	s.log(int(level), line.String())
	return 0
}

func (s *state) setresp(l *lua51.Thread) int {
	if l.Top() != 1 {
		return s.raiseReply(l, "ERR redis.setresp() requires one argument.")
	}
	version, _ := l.Arg(1).ToNumber()
	if version != 2 && version != 3 {
		return s.raiseReply(l, "ERR RESP version must be 2 or 3.")
	}
	s.reply.Proto = int(version)
	return 0
}

// setRepl chooses where the changes of commands go: to the append-only file, to replicas.
// Both read one log here, so they are recorded if the file is to have them.
func (s *state) setRepl(l *lua51.Thread) int {
	const appendOnlyFile = 1
	if l.Top() != 1 {
		return s.raiseReply(l, "ERR redis.set_repl() requires two arguments.")
	}
	flags, _ := l.Arg(1).ToNumber()
	if int64(flags)&^3 != 0 {
		return s.raiseReply(l, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	s.host.Record(int64(flags)&appendOnlyFile != 0)
	return 0
}

// aclCheck asks whether a command might be run.
func (s *state) aclCheck(l *lua51.Thread) int {
	if !s.collect(l) {
		return s.raiseReply(l, callArguments(l))
	}
	permitted, known := s.host.Permits(s.argv)
	if !known {
		return s.raiseReply(l, "ERR Invalid command passed to redis.acl_check_cmd()")
	}
	l.Push(lua51.Bool(permitted))
	return 1
}
