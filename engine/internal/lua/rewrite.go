package lua

import (
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// rewrite changes what gopher-lua would do differently from Lua 5.1, or
// slower, in the syntax tree of a script:
//
//   - a .. b becomes a call of the global "..", because the interpreter
//     writes numbers in its own format;
//   - an assignment to a global gets a name that no global has ("=name"), so
//     that it always meets the metatable that refuses it. Reading globals
//     then needs no indirection at all;
//   - redis.call and the like, when redis is the global, become one look-up
//     of the global "redis.call" (libraries cannot change);
//   - numbers with leading zeros are decimal; there is no goto;
//   - an index that is assigned to may go through a look at the memory it
//     takes (see watch.go).
//
// The names made here hold characters that no name in a script can hold.
func rewrite(chunk []ast.Stmt, isMember func(name string) bool) {
	r := rewriter{isMember: isMember}
	r.block(chunk)
}

// concatName is the global that concatenates.
const concatName = ".."

// maxConcat bounds the operands of one call, which sit in registers.
const maxConcat = 40

// rewriter knows the local names in scope, innermost last.
type rewriter struct {
	locals   []local
	depth    int
	isMember func(name string) bool
}

type local struct {
	name    string
	counter *counter // of a numeric loop's variable
}

func (r *rewriter) declare(names ...string) {
	for _, name := range names {
		r.locals = append(r.locals, local{name: name})
	}
}

func (r *rewriter) isLocal(name string) bool {
	_, ok := r.find(name)
	return ok
}

func (r *rewriter) find(name string) (local, bool) {
	for i := len(r.locals) - 1; i >= 0; i-- {
		if r.locals[i].name == name {
			return r.locals[i], true
		}
	}
	return local{}, false
}

func (r *rewriter) counterOf(name string) *counter {
	found, _ := r.find(name)
	return found.counter
}

// maxSyntaxDepth keeps a script from filling Go's stack, here and in the
// compiler, which no recover survives.
const maxSyntaxDepth = 10000

func (r *rewriter) descend() {
	r.depth++
	if r.depth > maxSyntaxDepth {
		panic("chunk has too many syntax levels") // compile recovers
	}
}

// mistake is a syntax error that the parser lets pass; compile recovers it.
type mistake struct {
	line int
	text string
}

func (r *rewriter) ascend() { r.depth-- }

func (r *rewriter) block(stmts []ast.Stmt) {
	depth := len(r.locals)
	r.stmts(stmts)
	r.locals = r.locals[:depth]
}

func (r *rewriter) stmts(stmts []ast.Stmt) {
	for _, s := range stmts {
		r.stmt(s)
	}
}

func (r *rewriter) stmt(s ast.Stmt) {
	r.descend()
	defer r.ascend()
	switch s := s.(type) {
	case *ast.AssignStmt:
		r.exprs(s.Rhs)
		for i := range s.Lhs {
			s.Lhs[i] = r.target(s.Lhs[i])
		}
	case *ast.LocalAssignStmt:
		r.localAssign(s)
	case *ast.FuncCallStmt:
		s.Expr = r.expr(s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt: // the condition sees the locals of the body
		depth := len(r.locals)
		r.stmts(s.Stmts)
		s.Condition = r.expr(s.Condition)
		r.locals = r.locals[:depth]
	case *ast.IfStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		r.numberFor(s)
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		r.loop(s.Names, s.Stmts)
	case *ast.FuncDefStmt:
		r.funcDef(s)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	case *ast.GotoStmt: // a name in Lua 5.1
		panic(mistake{s.Line(), "'=' expected near '" + s.Label + "'"})
	case *ast.LabelStmt:
		panic(mistake{s.Line(), "unexpected symbol near ':'"})
	}
}

func (r *rewriter) numberFor(s *ast.NumberForStmt) {
	variable := local{name: s.Name}
	if isSmall(s.Init) && s.Step == nil {
		variable.counter = new(counter)
	}
	s.Init, s.Limit, s.Step = r.expr(s.Init), r.expr(s.Limit), r.expr(s.Step)
	depth := len(r.locals)
	r.locals = append(r.locals, variable)
	r.stmts(s.Stmts)
	r.locals = r.locals[:depth]
	if variable.counter != nil {
		variable.counter.endLoop()
	}
}

func (r *rewriter) loop(names []string, body []ast.Stmt) {
	depth := len(r.locals)
	r.declare(names...)
	r.stmts(body)
	r.locals = r.locals[:depth]
}

// localAssign declares after the values, except for "local function f",
// which parses to the same statement and may call itself.
func (r *rewriter) localAssign(s *ast.LocalAssignStmt) {
	if len(s.Names) == 1 && len(s.Exprs) == 1 {
		if f, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			// gopher-lua treats "local f = function" alike: f sees itself.
			r.declare(s.Names[0])
			r.function(f)
			return
		}
	}
	r.exprs(s.Exprs)
	r.declare(s.Names...)
}

func (r *rewriter) funcDef(s *ast.FuncDefStmt) {
	if s.Name.Func != nil {
		s.Name.Func = r.target(s.Name.Func)
	}
	if s.Name.Receiver != nil {
		s.Name.Receiver = r.expr(s.Name.Receiver)
	}
	depth := len(r.locals)
	if s.Name.Method != "" {
		r.declare("self")
	}
	r.function(s.Func)
	r.locals = r.locals[:depth]
}

func (r *rewriter) function(f *ast.FunctionExpr) {
	depth := len(r.locals)
	r.declare(f.ParList.Names...)
	if f.ParList.HasVargs {
		r.declare("arg")
	}
	r.stmts(f.Stmts)
	r.locals = r.locals[:depth]
}

// target rewrites what is assigned to.
func (r *rewriter) target(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if found, ok := r.find(e.Value); !ok {
			e.Value = "=" + e.Value
		} else if found.counter != nil {
			found.counter.changed = true
		}
	case *ast.AttrGetExpr:
		before := e.Key
		e.Object, e.Key = r.expr(e.Object), r.expr(e.Key)
		r.watch(e, before)
	}
	return e
}

func (r *rewriter) exprs(list []ast.Expr) {
	for i := range list {
		list[i] = r.expr(list[i])
	}
}

func (r *rewriter) expr(e ast.Expr) ast.Expr {
	r.descend()
	defer r.ascend()
	switch e := e.(type) {
	case *ast.NumberExpr:
		f, ok := parseNumber(e.Value)
		if !ok {
			// The scanner takes the end of the text for a byte of the number.
			panic(mistake{e.Line(), "malformed number near '" + strings.TrimSuffix(e.Value, "\xff") + "'"})
		}
		e.Value = strconv.FormatFloat(float64(f), 'g', -1, 64)
	case *ast.AttrGetExpr:
		return r.attribute(e)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			before := f.Key
			f.Key, f.Value = r.expr(f.Key), r.expr(f.Value)
			if f.Key != nil && !isNear(nil, before) {
				f.Key = watched(nil, f.Key)
			}
		}
	case *ast.FuncCallExpr:
		e.Func, e.Receiver = r.expr(e.Func), r.expr(e.Receiver)
		r.exprs(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.FunctionExpr:
		r.function(e)
	}
	return e
}

func (r *rewriter) attribute(e *ast.AttrGetExpr) ast.Expr {
	library, isName := e.Object.(*ast.IdentExpr)
	member, isText := e.Key.(*ast.StringExpr)
	if isName && isText && !r.isLocal(library.Value) && r.isMember(library.Value+"."+member.Value) {
		direct := &ast.IdentExpr{Value: library.Value + "." + member.Value}
		direct.SetLine(e.Line())
		direct.SetLastLine(e.LastLine())
		return direct
	}
	e.Object, e.Key = r.expr(e.Object), r.expr(e.Key)
	return e
}

// concat gathers the operands of a .. b .. c, which groups to the right.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var operands []ast.Expr
	var rest ast.Expr = e
	for {
		c, ok := rest.(*ast.StringConcatOpExpr)
		if !ok || len(operands) == maxConcat {
			break
		}
		operands = append(operands, single(r.expr(c.Lhs)))
		rest = c.Rhs
	}
	operands = append(operands, single(r.expr(rest)))
	name := &ast.IdentExpr{Value: concatName}
	call := &ast.FuncCallExpr{Func: name, Args: operands, AdjustRet: true}
	for _, node := range []ast.PositionHolder{name, call} {
		node.SetLine(e.Line())
		node.SetLastLine(e.LastLine())
	}
	return call
}

// single makes an operand that may give several values give one, as an
// operand does and a last argument does not.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}
