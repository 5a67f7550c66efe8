package lua

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// compile turns a text into what the interpreter runs, after rewriting its
// syntax tree (see rewrite.go). The state says which library members exist.
func (s *state) compile(source, name string) (*glua.FunctionProto, error) {
	proto, _, err := s.compileChunk(source, name, false)
	return proto, err
}

// compileScript compiles a script. If it was hoisted, the code does not run
// it but returns it (see hoist.go).
func (s *state) compileScript(source string) (proto *glua.FunctionProto, hoisted bool, err error) {
	return s.compileChunk(source, scriptChunk, true)
}

func (s *state) compileChunk(source, name string, script bool) (proto *glua.FunctionProto, hoisted bool, err error) {
	defer func() {
		// The compiler of gopher-lua panics on a few inputs (too many
		// registers, for one). For a script that is a syntax error.
		fault := recover()
		if m, ok := fault.(mistake); ok {
			proto, err = nil, fmt.Errorf("%s:%d: %s", name, m.line, m.text)
		} else if fault != nil {
			proto, err = nil, fmt.Errorf("%s:1: %v", name, fault)
		}
	}()
	if len(source) > maxSourceBytes {
		return nil, false, fmt.Errorf("%s:1: %s", name, noMemory)
	}
	source = skipShebang(source)
	chunk, err := parse.Parse(strings.NewReader(source), name)
	if err != nil {
		return nil, false, syntaxError(err, name)
	}
	rewrite(chunk, s.isMember)
	if script {
		if outer := hoist(chunk); outer != nil {
			chunk, hoisted = outer, true
		}
	}
	proto, err = glua.Compile(chunk, name)
	if err != nil {
		return nil, false, compileMessage(err.Error(), name)
	}
	clearNeedsArg(proto, usesArg(source))
	return proto, hoisted, nil
}

func skipShebang(source string) string {
	if !strings.HasPrefix(source, "#!") {
		return source
	}
	if end := strings.IndexByte(source, '\n'); end >= 0 {
		return source[end:]
	}
	return ""
}

// usesArg says whether a script may use the table "arg" that Lua 5.0 gave to
// functions with "...".
func usesArg(source string) bool { return argWord.MatchString(source) }

var argWord = regexp.MustCompile(`\barg\b`)

// clearNeedsArg spares each call of a function with "..." (a script is one)
// the making of that table: half of the time of "return 1".
func clearNeedsArg(proto *glua.FunctionProto, used bool) {
	if used {
		return
	}
	proto.IsVarArg &^= glua.VarArgNeedsArg
	for _, inner := range proto.FunctionPrototypes {
		clearNeedsArg(inner, used)
	}
}

func syntaxError(err error, name string) error {
	var p *parse.Error
	if !errors.As(err, &p) {
		return compileMessage(err.Error(), name)
	}
	token := "near '" + p.Token + "'"
	line := p.Pos.Line
	if line < 0 || p.Token == "" {
		token = "near '<eof>'"
	}
	if line < 1 {
		line = 1
	}
	message := p.Message
	if lua := parserTexts[message]; lua != "" {
		message = lua
	}
	return fmt.Errorf("%s:%d: %s %s", name, line, message, token)
}

// parserTexts are the words of Lua for those of gopher-lua. Where Lua says
// what it expected, this parser does not know.
var parserTexts = map[string]string{
	"syntax error": "unexpected symbol", "unterminated string": "unfinished string",
	"unterminated multiline string": "unfinished long string", "illegal hexadecimal number": "malformed number",
}

var compilerLine = regexp.MustCompile(`(?s)line\((\d+)\) [^:]*: (.*)`)

func compileMessage(text, name string) error {
	if m := compilerLine.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s:%s: %s", name, m[1], strings.TrimSpace(m[2]))
	}
	return fmt.Errorf("%s:1: %s", name, strings.TrimSpace(text))
}
