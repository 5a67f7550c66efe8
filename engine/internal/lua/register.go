package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// redis.register_function(name, callback), or with named arguments in a table.

func (s *state) registerFunction(l *glua.LState) int {
	if s.loading == nil {
		return raiseReply(l, "ERR redis.register_function can only be called on FUNCTION LOAD command")
	}
	fn := &Function{Library: s.loading}
	var problem string
	switch l.GetTop() {
	case 1:
		problem = fn.readNamed(l.Get(1))
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
		return raiseReply(l, "ERR "+problem)
	}
	s.loading.Functions = append(s.loading.Functions, fn)
	s.kept[fn.fn] = struct{}{}
	return 0
}

func (fn *Function) readPositional(l *glua.LState) (problem string) {
	var ok bool
	if fn.Name, ok = toText(l.Get(1)); !ok {
		return "first argument to redis.register_function must be a string"
	}
	if fn.fn, ok = l.Get(2).(*glua.LFunction); !ok {
		return "second argument to redis.register_function must be a function"
	}
	return ""
}

func (fn *Function) readNamed(v glua.LValue) (problem string) {
	t, ok := v.(*glua.LTable)
	if !ok {
		return "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
	}
	named := false
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		key, ok := toText(k)
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

func (fn *Function) readArgument(key string, v glua.LValue) (problem string) {
	var ok bool
	switch key {
	case "function_name":
		if fn.Name, ok = toText(v); !ok {
			return "function_name argument given to redis.register_function must be a string"
		}
	case "description":
		if fn.Description, ok = toText(v); !ok {
			return "description argument given to redis.register_function must be a string"
		}
		fn.Described = true
	case "callback":
		if fn.fn, ok = v.(*glua.LFunction); !ok {
			return "callback argument given to redis.register_function must be a function"
		}
	case "flags":
		list, ok := v.(*glua.LTable)
		if !ok {
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

func readFlags(list *glua.LTable) (flags Flags, ok bool) {
	for i := 1; ; i++ {
		v := list.RawGetInt(i)
		if v == glua.LNil {
			return flags, true
		}
		name, _ := toText(v)
		f, ok := flag(name, strings.EqualFold)
		if !ok {
			return 0, false
		}
		flags |= f
	}
}
