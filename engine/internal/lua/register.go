package lua

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// redis.register_function(name, callback), or with named arguments in a table.

func (s *state) registerFunction(l *lua51.Thread) int {
	if s.loading == nil {
		return s.raiseReply(l, "ERR redis.register_function can only be called on FUNCTION LOAD command")
	}
	fn := &Function{Library: s.loading}
	var problem string
	switch l.Top() {
	case 1:
		problem = fn.readNamed(l, l.Arg(1))
	case 2:
		problem = fn.readPositional(l)
	default:
		problem = "wrong number of arguments to redis.register_function"
	}
	switch {
	case problem != "":
	case !validName(fn.Name):
		problem = invalidName
	case s.loading.find(fn.Name) != nil:
		problem = "Function already exists in the library"
	}
	if problem != "" {
		return s.raiseReply(l, "ERR "+problem)
	}
	s.loading.Functions = append(s.loading.Functions, fn)
	s.kept[fn.fn] = struct{}{}
	return 0
}

func (fn *Function) readPositional(l *lua51.Thread) (problem string) {
	var ok bool
	if fn.Name, ok = l.Arg(1).ToText(); !ok {
		return "first argument to redis.register_function must be a string"
	}
	if fn.fn = l.Arg(2).AsFunction(); fn.fn == nil {
		return "second argument to redis.register_function must be a function"
	}
	return ""
}

func (fn *Function) readNamed(l *lua51.Thread, v lua51.Value) (problem string) {
	t := v.AsTable()
	if t == nil {
		return "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
	}
	named := false
	for k, v := range l.All(t) {
		key, ok := k.ToText()
		if !ok {
			return "named argument key given to redis.register_function is not a string"
		}
		if strings.EqualFold(key, "function_name") {
			named = true
		}
		if problem := fn.readArgument(strings.ToLower(key), v); problem != "" {
			return problem
		}
	}
	switch {
	case !named:
		return "redis.register_function must get a function name argument"
	case fn.fn == nil:
		return "redis.register_function must get a callback argument"
	}
	return ""
}

func (fn *Function) readArgument(key string, v lua51.Value) (problem string) {
	var ok bool
	switch key {
	case "function_name":
		if fn.Name, ok = v.ToText(); !ok {
			return "function_name argument given to redis.register_function must be a string"
		}
	case "description":
		if fn.Description, ok = v.ToText(); !ok {
			return "description argument given to redis.register_function must be a string"
		}
		fn.Described = true
	case "callback":
		if fn.fn = v.AsFunction(); fn.fn == nil {
			return "callback argument given to redis.register_function must be a function"
		}
	case "flags":
		list := v.AsTable()
		if list == nil {
			return "flags argument to redis.register_function must be a table representing function flags"
		}
		if fn.Flags, ok = readFlags(list); !ok {
			return "unknown flag given"
		}
	default:
		return "unknown argument given to redis.register_function"
	}
	return ""
}

func readFlags(list *lua51.Table) (flags Flags, ok bool) {
	for i := 1; ; i++ {
		v := list.GetInt(i)
		if v.IsNil() {
			return flags, true
		}
		name, _ := v.ToText()
		f, ok := flag(name, strings.EqualFold)
		if !ok {
			return 0, false
		}
		flags |= f
	}
}
