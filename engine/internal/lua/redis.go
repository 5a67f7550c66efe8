package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// The version that scripts are told, and the one whose behaviour this is.
const (
	redisVersion       = "7.0.15"
	redisVersionNumber = 0x0007000f
)

func (s *state) redisLibrary() library {
	table := map[string]glua.LGFunction{
		"call":  func(l *glua.LState) int { return s.call(l, true) },
		"pcall": func(l *glua.LState) int { return s.call(l, false) },
		"log":   s.logMessage, "setresp": s.setresp, "sha1hex": s.sha1hex,
		"error_reply": s.errorReply, "status_reply": s.statusReply,
		"set_repl": s.setRepl, "acl_check_cmd": s.aclCheck,
	}
	if s.chunk == scriptChunk {
		table["replicate_commands"] = func(l *glua.LState) int { l.Push(glua.LTrue); return 1 }
		table["breakpoint"] = func(l *glua.LState) int { l.Push(glua.LFalse); return 1 }
		table["debug"] = func(*glua.LState) int { return 0 }
	}
	members := s.functions(table)
	for name, value := range map[string]int{
		"LOG_DEBUG": 0, "LOG_VERBOSE": 1, "LOG_NOTICE": 2, "LOG_WARNING": 3,
		"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3,
		"REDIS_VERSION_NUM": redisVersionNumber,
	} {
		members[name] = glua.LNumber(value)
	}
	members["REDIS_VERSION"] = glua.LString(redisVersion)
	return members
}

// call is redis.call and, with raise false, redis.pcall.
func (s *state) call(l *glua.LState, raise bool) int {
	if !s.collect(l) {
		return s.misuse(l, raise, callArguments(l))
	}
	s.meter.left -= stepsPerCall
	s.reply.Reset()
	s.host.Call(s.argv, &s.reply)
	bytes := s.reply.Bytes()
	if len(bytes) == 0 {
		return s.fail(l, raise, "ERR The command gave no reply to the script")
	}
	s.meter.reserve(l, replyFactor*len(bytes))
	if bytes[0] == '-' {
		end := strings.IndexByte(string(bytes), '\r')
		return s.fail(l, raise, string(bytes[1:end]))
	}
	d := decoder{state: s, l: l, rest: bytes}
	l.Push(d.value(0))
	return 1
}

// replyFactor is what a reply grows by when it becomes values of Lua.
const replyFactor = 8

func callArguments(l *glua.LState) string {
	if l.GetTop() == 0 {
		return "ERR Please specify at least one argument for this redis lib call"
	}
	return "ERR Lua redis lib command arguments must be strings or integers"
}

// maxCallBytes bounds the arguments of one command together.
const maxCallBytes = 1 << 30

// collect copies the arguments of a call into one buffer that is used again.
// It reports whether all of them are strings or numbers.
func (s *state) collect(l *glua.LState) bool {
	n := l.GetTop()
	s.argv, s.arena = s.argv[:0], s.arena[:0]
	for i := 1; i <= n; i++ {
		start := len(s.arena)
		switch v := l.Get(i).(type) {
		case glua.LString:
			if len(s.arena)+len(v) > maxCallBytes {
				raise(l, noMemory)
			}
			s.arena = append(s.arena, v...)
		case glua.LNumber:
			s.arena = appendG(s.arena, float64(v), 17)
		default:
			return false
		}
		// A later append may move the buffer; this part then stays behind,
		// unchanged, for as long as argv points to it.
		s.argv = append(s.argv, s.arena[start:len(s.arena):len(s.arena)])
	}
	return n > 0
}

// fail raises or returns the error of a command, which has been counted.
func (s *state) fail(l *glua.LState, raise bool, message string) int {
	t := errorTable(l, message)
	t.RawSetString("ignore_error_stats_update", glua.LTrue)
	if raise {
		l.Error(t, 0)
	}
	l.Push(t)
	return 1
}

// misuse raises or returns the error of a call that reached no command.
func (s *state) misuse(l *glua.LState, raise bool, message string) int {
	t := errorTable(l, message)
	if raise {
		l.Error(t, 0)
	}
	l.Push(t)
	return 1
}

func errorTable(l *glua.LState, message string) *glua.LTable {
	t := l.CreateTable(0, 2)
	t.RawSetString("err", glua.LString(message))
	return t
}

func (s *state) errorReply(l *glua.LState) int {
	text, ok := l.Get(1).(glua.LString)
	if !ok || l.GetTop() != 1 {
		l.Push(errorTable(l, "ERR wrong number or type of arguments"))
		return 1
	}
	l.Push(errorTable(l, errorText(string(text))))
	return 1
}

// errorText gives a lone word the code ERR, and takes the first of several
// words for the code.
func errorText(text string) string {
	text = strings.TrimRight(strings.TrimPrefix(text, "-"), "\r\n")
	if strings.IndexByte(text, ' ') < 0 {
		return "ERR " + text
	}
	return text
}

func (s *state) statusReply(l *glua.LState) int {
	text, ok := l.Get(1).(glua.LString)
	if !ok || l.GetTop() != 1 {
		l.Push(errorTable(l, "ERR wrong number or type of arguments"))
		return 1
	}
	t := l.CreateTable(0, 1)
	t.RawSetString("ok", text)
	l.Push(t)
	return 1
}

// raiseReply raises an error whose text is the whole reply.
func raiseReply(l *glua.LState, message string) int {
	l.Error(errorTable(l, message), 0)
	return 0
}

func (s *state) sha1hex(l *glua.LState) int {
	if l.GetTop() != 1 {
		return raiseReply(l, "ERR wrong number of arguments")
	}
	text, _ := toText(l.Get(1))
	l.Push(glua.LString(SHA([]byte(text))))
	return 1
}

// maxLogBytes is about where a log line ends.
const maxLogBytes = 64 << 10

func (s *state) logMessage(l *glua.LState) int {
	n := l.GetTop()
	if n < 2 {
		return raiseReply(l, "ERR redis.log() requires two arguments or more.")
	}
	level, ok := l.Get(1).(glua.LNumber)
	if !ok {
		return raiseReply(l, "ERR First argument must be a number (log level).")
	}
	if level < 0 || level > 3 {
		return raiseReply(l, "ERR Invalid debug level.")
	}
	var line strings.Builder
	for i := 2; i <= n && line.Len() < maxLogBytes; i++ {
		if text, ok := toText(l.Get(i)); ok {
			if line.Len() > 0 {
				line.WriteByte(' ')
			}
			line.WriteString(text[:min(len(text), maxLogBytes)])
		}
	}
	s.log(int(level), line.String())
	return 0
}

func (s *state) setresp(l *glua.LState) int {
	if l.GetTop() != 1 {
		return raiseReply(l, "ERR redis.setresp() requires one argument.")
	}
	version, _ := toNumber(l.Get(1))
	if version != 2 && version != 3 {
		return raiseReply(l, "ERR RESP version must be 2 or 3.")
	}
	s.reply.Proto = int(version)
	return 0
}

// setRepl chooses where the changes of commands go: to the append-only file, to replicas.
// Both read one log here, so they are recorded if the file is to have them.
func (s *state) setRepl(l *glua.LState) int {
	const appendOnlyFile = 1
	if l.GetTop() != 1 {
		return raiseReply(l, "ERR redis.set_repl() requires two arguments.")
	}
	flags, _ := toNumber(l.Get(1))
	if int64(flags)&^3 != 0 {
		return raiseReply(l, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	s.host.Record(int64(flags)&appendOnlyFile != 0)
	return 0
}

// aclCheck asks whether a command might be run.
func (s *state) aclCheck(l *glua.LState) int {
	if !s.collect(l) {
		return raiseReply(l, callArguments(l))
	}
	permitted, known := s.host.Permits(s.argv)
	if !known {
		return raiseReply(l, "ERR Invalid command passed to redis.acl_check_cmd()")
	}
	l.Push(glua.LBool(permitted))
	return 1
}
