package lua

import (
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// hoist moves the making of functions from each run of a script to its loading.
// Of
//
//	local n = tonumber(ARGV[1])
//	local function twice() return 2 * n end
//	return twice()
//
// it makes
//
//	local n, twice
//	twice = function() return 2 * n end
//	return function()
//	  n = tonumber(ARGV[1])
//	  return twice()
//	end
//
// The outer part runs once for an interpreter, the inner one in each run (see
// vm.go). No script can tell. It runs once at a time, and nothing outlives a
// run: so a variable of its main part may be at one place for all runs, if it
// is emptied after each. And what stands in the main part, outside of loops,
// is done once in a run at most: so nobody can hold two functions from there
// against each other to see whether they are one. A function that is called
// where it is made, and only there, is as much done once as what is around it.
//
// Only variables that functions share move. Others stay in registers, where
// they are faster. And what never changes needs no variable: a number, or
// redis.call under a name of the script's own, stands where it is used.
//
// Libraries are not hoisted: they make their functions once anyway.
type hoister struct {
	scope    []*variable // what is visible, innermost last
	function int         // where this is: 0 is the main part
	made     int         // functions so far
	once     bool        // this is done once in a run at most
	varargs  bool        // the main part uses "..."

	declarations []declaration
	functions    []*ast.Expr // made once in a run at most, and not declared

	tail      *ast.FunctionExpr // what the chunk ends with, if with "return (function() ... end)()"
	tailFirst int               // it, and the functions in it, have numbers from here on
}

// variable is a local variable of the script.
type variable struct {
	name     string
	function int  // that it is a variable of
	shared   bool // another function uses it
	changed  bool // after it was declared
	uses     []use
}

// use is a place where a variable is named.
type use struct {
	slot     *ast.Expr
	function int // that it is in
}

// declaration is a statement "local ..." that is done once in a run at most.
type declaration struct {
	block     []ast.Stmt
	at        int
	variables []*variable
}

// maxHoisted bounds the variables of the main part that may move: the compiler
// has room for 200 in a function, and for what a call needs.
const maxHoisted = 180

// hoist returns a chunk that returns the script, or nil for a script that is
// to stay as it is: there is nothing to move, or too much. The chunk has been
// through rewrite, which bounds its depth.
func hoist(chunk []ast.Stmt) []ast.Stmt {
	h := &hoister{once: true, tail: tailOf(chunk)}
	h.block(chunk)
	functions, variables := h.count()
	if h.varargs || functions == 0 || functions+variables > maxHoisted {
		return nil
	}
	outer := &outerPart{tailFirst: h.tailFirst}
	for _, f := range h.functions {
		*f = outer.function(*f)
	}
	for _, d := range h.declarations {
		outer.take(d.withoutConstants())
	}
	main := &ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: outer.handOver(chunk)}
	before := &ast.LocalAssignStmt{Names: outer.names}
	return append(append([]ast.Stmt{before}, outer.makings...), &ast.ReturnStmt{Exprs: []ast.Expr{main}})
}

// tailOf is the function with which a chunk ends that is called where it is made.
func tailOf(chunk []ast.Stmt) *ast.FunctionExpr {
	if len(chunk) == 0 {
		return nil
	}
	last, ok := chunk[len(chunk)-1].(*ast.ReturnStmt)
	if !ok || len(last.Exprs) != 1 {
		return nil
	}
	call, ok := last.Exprs[0].(*ast.FuncCallExpr)
	if !ok || len(call.Args) > 0 {
		return nil
	}
	f, _ := call.Func.(*ast.FunctionExpr)
	return f
}

// count says what there is to move, at most.
func (h *hoister) count() (functions, variables int) {
	functions = len(h.functions)
	for _, d := range h.declarations {
		if d.isFunction() {
			functions++
		} else {
			variables += len(d.variables)
		}
	}
	return functions, variables
}

// statement is the declaration itself.
func (d declaration) statement() *ast.LocalAssignStmt { return d.block[d.at].(*ast.LocalAssignStmt) }

// isFunction says that it declares a function that nothing else will take the place of.
func (d declaration) isFunction() bool {
	return declaresFunction(d.statement()) && !d.variables[0].changed
}

func (d declaration) isShared() bool {
	for _, v := range d.variables {
		if v.shared {
			return true
		}
	}
	return false
}

// withoutConstants puts what never changes where it is used.
func (d declaration) withoutConstants() declaration {
	s := d.statement()
	if len(s.Names) != len(s.Exprs) {
		return d
	}
	left, variables := placed(&ast.LocalAssignStmt{}, s), []*variable(nil)
	for i, v := range d.variables {
		if !v.changed && isConstant(s.Exprs[i]) {
			v.replace(s.Exprs[i])
			continue
		}
		left.Names, left.Exprs = append(left.Names, s.Names[i]), append(left.Exprs, s.Exprs[i])
		variables = append(variables, v)
	}
	d.block[d.at] = left
	return declaration{d.block, d.at, variables}
}

// isConstant says that an expression is a number or a member of a library.
func isConstant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.NumberExpr:
		return true
	case *ast.IdentExpr:
		return strings.Contains(e.Value, ".") && e.Value != concatName
	}
	return false
}

func declaresFunction(s *ast.LocalAssignStmt) bool {
	if len(s.Names) != 1 || len(s.Exprs) != 1 {
		return false
	}
	_, ok := s.Exprs[0].(*ast.FunctionExpr)
	return ok
}

// outerPart gathers what moves. Its names are none that a script can have.
//
// If the chunk ends with a function that is called there, what comes before has
// its variables to itself until then. They stay in registers, and are handed
// over just before the call.
type outerPart struct {
	names     []string
	makings   []ast.Stmt
	tailFirst int
	handed    ast.AssignStmt
}

// waits says that of the variables of a declaration none is used by a function before the tail.
func (o *outerPart) waits(d declaration) bool {
	for _, v := range d.variables {
		for _, u := range v.uses {
			if v.function != 0 || u.function != 0 && (o.tailFirst == 0 || u.function < o.tailFirst) {
				return false
			}
		}
	}
	return true
}

// hand hands over a variable, if the tail uses it.
func (o *outerPart) hand(v *variable, s ast.Stmt) {
	if !v.shared {
		return
	}
	name := o.name()
	for _, u := range v.uses {
		if u.function != 0 {
			(*u.slot).(*ast.IdentExpr).Value = name
		}
	}
	o.handed.Lhs = append(o.handed.Lhs, placed(&ast.IdentExpr{Value: name}, s))
	o.handed.Rhs = append(o.handed.Rhs, placed(&ast.IdentExpr{Value: v.name}, s))
}

// handOver puts the handing over in front of the tail.
func (o *outerPart) handOver(chunk []ast.Stmt) []ast.Stmt {
	if len(o.handed.Lhs) == 0 {
		return chunk
	}
	last := len(chunk) - 1
	return append(append([]ast.Stmt(nil), chunk[:last]...), placed(&o.handed, chunk[last]), chunk[last])
}

func (o *outerPart) name() string {
	o.names = append(o.names, "=local "+strconv.Itoa(len(o.names)))
	return o.names[len(o.names)-1]
}

// take moves what a declaration declares. If one of several variables moves, all do.
func (o *outerPart) take(d declaration) {
	s := d.statement()
	var left ast.Stmt
	switch {
	case len(s.Names) == 0:
		left = &ast.DoBlockStmt{}
	case d.isFunction():
		d.variables[0].rename(o.function(s.Exprs[0]).(*ast.IdentExpr).Value)
		left = &ast.DoBlockStmt{}
	case o.waits(d):
		for _, v := range d.variables {
			o.hand(v, s)
		}
		return
	case d.isShared():
		assign := &ast.AssignStmt{Rhs: s.Exprs}
		for _, v := range d.variables {
			name := o.name()
			v.rename(name)
			assign.Lhs = append(assign.Lhs, placed(&ast.IdentExpr{Value: name}, s))
		}
		left = assign
	default:
		return
	}
	d.block[d.at] = placed(left, s)
}

// function moves the making of a function, and returns what stands for it.
func (o *outerPart) function(f ast.Expr) ast.Expr {
	name := o.name()
	target := placed(&ast.IdentExpr{Value: name}, f)
	o.makings = append(o.makings, placed(&ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{f}}, f))
	return placed(&ast.IdentExpr{Value: name}, f)
}

func (v *variable) rename(name string) {
	for _, u := range v.uses {
		(*u.slot).(*ast.IdentExpr).Value = name
	}
}

// replace puts a copy of a constant in the place of each use.
func (v *variable) replace(constant ast.Expr) {
	for _, u := range v.uses {
		switch c := constant.(type) {
		case *ast.NumberExpr:
			*u.slot = placed(&ast.NumberExpr{Value: c.Value}, *u.slot)
		case *ast.IdentExpr:
			*u.slot = placed(&ast.IdentExpr{Value: c.Value}, *u.slot)
		}
	}
}

// placed gives a node the lines of another.
func placed[N ast.PositionHolder](node N, like ast.PositionHolder) N {
	node.SetLine(like.Line())
	node.SetLastLine(like.LastLine())
	return node
}

func (h *hoister) declare(names ...string) []*variable {
	first := len(h.scope)
	for _, name := range names {
		h.scope = append(h.scope, &variable{name: name, function: h.function})
	}
	return append([]*variable(nil), h.scope[first:]...)
}

// name notes that a variable is named.
func (h *hoister) name(slot *ast.Expr) *variable {
	name := (*slot).(*ast.IdentExpr).Value
	for i := len(h.scope) - 1; i >= 0; i-- {
		if v := h.scope[i]; v.name == name {
			v.uses = append(v.uses, use{slot, h.function})
			v.shared = v.shared || v.function != h.function
			return v
		}
	}
	return nil
}

// inner visits a part in which variables are its own.
func (h *hoister) inner(once bool, part func()) {
	depth, before := len(h.scope), h.once
	h.once = once && before
	part()
	h.scope, h.once = h.scope[:depth], before
}

func (h *hoister) block(stmts []ast.Stmt) {
	h.inner(true, func() { h.stmts(stmts) })
}

// loop visits what may be done often.
func (h *hoister) loop(names []string, stmts []ast.Stmt) {
	h.inner(false, func() {
		h.declare(names...)
		h.stmts(stmts)
	})
}

func (h *hoister) stmts(stmts []ast.Stmt) {
	for i, s := range stmts {
		if local, ok := s.(*ast.LocalAssignStmt); ok {
			h.local(stmts, i, local)
		} else {
			h.stmt(s)
		}
	}
}

// local declares after the values, but for functions (see rewrite.go).
func (h *hoister) local(block []ast.Stmt, at int, s *ast.LocalAssignStmt) {
	var variables []*variable
	if declaresFunction(s) {
		variables = h.declare(s.Names...)
		h.body(s.Exprs[0].(*ast.FunctionExpr), false)
	} else {
		h.exprs(s.Exprs)
		variables = h.declare(s.Names...)
	}
	if h.once {
		h.declarations = append(h.declarations, declaration{block, at, variables})
	}
}

func (h *hoister) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		h.exprs(s.Rhs)
		for i := range s.Lhs {
			h.target(&s.Lhs[i])
		}
	case *ast.FuncCallStmt:
		h.expr(&s.Expr)
	case *ast.DoBlockStmt:
		h.block(s.Stmts)
	case *ast.WhileStmt:
		h.inner(false, func() { h.expr(&s.Condition) })
		h.loop(nil, s.Stmts)
	case *ast.RepeatStmt: // the condition sees the locals of the body
		h.inner(false, func() {
			h.stmts(s.Stmts)
			h.expr(&s.Condition)
		})
	case *ast.IfStmt:
		h.expr(&s.Condition)
		h.block(s.Then)
		h.block(s.Else)
	case *ast.NumberForStmt:
		h.expr(&s.Init)
		h.expr(&s.Limit)
		h.expr(&s.Step)
		h.loop([]string{s.Name}, s.Stmts)
	case *ast.GenericForStmt:
		h.exprs(s.Exprs)
		h.loop(s.Names, s.Stmts)
	case *ast.FuncDefStmt:
		h.funcDef(s)
	case *ast.ReturnStmt:
		h.exprs(s.Exprs)
	}
}

func (h *hoister) funcDef(s *ast.FuncDefStmt) {
	if s.Name.Func != nil {
		h.target(&s.Name.Func)
	}
	if s.Name.Receiver != nil {
		h.expr(&s.Name.Receiver)
	}
	if s.Name.Method != "" {
		h.body(s.Func, false, "self")
	} else {
		h.body(s.Func, false)
	}
}

// body visits a function. One that is called where it is made is done as often as what is around it.
func (h *hoister) body(f *ast.FunctionExpr, direct bool, more ...string) {
	function := h.function
	h.made++
	h.function = h.made
	if f == h.tail {
		h.tailFirst = h.made
	}
	h.inner(direct, func() {
		h.declare(more...)
		h.declare(f.ParList.Names...)
		if f.ParList.HasVargs {
			h.declare("arg")
		}
		h.stmts(f.Stmts)
	})
	h.function = function
}

func (h *hoister) target(e *ast.Expr) {
	if _, ok := (*e).(*ast.IdentExpr); !ok {
		h.expr(e)
	} else if v := h.name(e); v != nil {
		v.changed = true
	}
}

func (h *hoister) exprs(list []ast.Expr) {
	for i := range list {
		h.expr(&list[i])
	}
}

func (h *hoister) expr(slot *ast.Expr) {
	switch e := (*slot).(type) {
	case *ast.IdentExpr:
		h.name(slot)
	case *ast.Comma3Expr:
		h.varargs = h.varargs || h.function == 0
	case *ast.AttrGetExpr:
		h.expr(&e.Object)
		h.expr(&e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			h.expr(&f.Key)
			h.expr(&f.Value)
		}
	case *ast.FuncCallExpr:
		h.call(e)
	case *ast.LogicalOpExpr:
		h.expr(&e.Lhs)
		h.expr(&e.Rhs)
	case *ast.RelationalOpExpr:
		h.expr(&e.Lhs)
		h.expr(&e.Rhs)
	case *ast.ArithmeticOpExpr:
		h.expr(&e.Lhs)
		h.expr(&e.Rhs)
	case *ast.UnaryMinusOpExpr:
		h.expr(&e.Expr)
	case *ast.UnaryNotOpExpr:
		h.expr(&e.Expr)
	case *ast.UnaryLenOpExpr:
		h.expr(&e.Expr)
	case *ast.FunctionExpr:
		h.anonymous(slot, e, false)
	}
}

func (h *hoister) call(e *ast.FuncCallExpr) {
	f, ok := e.Func.(*ast.FunctionExpr)
	if ok && len(f.ParList.Names) == 0 && !f.ParList.HasVargs {
		h.anonymous(&e.Func, f, true)
	} else {
		h.expr(&e.Func)
	}
	h.expr(&e.Receiver)
	h.exprs(e.Args)
}

func (h *hoister) anonymous(slot *ast.Expr, f *ast.FunctionExpr, direct bool) {
	h.body(f, direct)
	if h.once {
		h.functions = append(h.functions, slot)
	}
}
