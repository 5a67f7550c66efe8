package lua

import (
	"strconv"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// gopher-lua makes room for n values when a script sets t[n], up to a
// gigabyte in one instruction. So an index that may be far behind the end of
// a table goes through a function that reports the gap. These do not:
//
//   - texts and small numbers written in the script, and concatenations;
//   - #t + 1 as an index of t;
//   - the variable of "for i = 1, n do", unless the loop changes it.

// watchName is the global that looks at an index.
const watchName = "=[]"

// smallIndex is up to where nobody looks.
const smallIndex = 4096

// watchIndex returns its second argument, the index; the first is the table,
// if it can be named twice.
func (s *state) watchIndex(l *glua.LState) int {
	if f, ok := l.Get(2).(glua.LNumber); ok && f > smallIndex && f < glua.LNumber(glua.MaxArrayIndex) {
		s.reserveIndex(l, l.Get(1), int(f))
	}
	return 1
}

// reserveIndex reports what setting t[n] takes.
func (s *state) reserveIndex(l *glua.LState, v glua.LValue, n int) {
	if t, ok := v.(*glua.LTable); ok {
		n -= t.MaxN()
	}
	if n > smallIndex && n < glua.MaxArrayIndex {
		s.meter.reserve(l, slotBytes*n)
	}
}

// reserveKey does so for a key of any kind.
func (s *state) reserveKey(l *glua.LState, t *glua.LTable, key glua.LValue) {
	if f, ok := key.(glua.LNumber); ok && f > smallIndex {
		s.reserveIndex(l, t, int(min(f, glua.LNumber(glua.MaxArrayIndex))))
	}
}

// counter is the variable of a numeric loop: the indices that hang on it, and
// whether the loop changes it.
type counter struct {
	changed bool
	uses    []*ast.AttrGetExpr
}

// watch makes an assignment to e.Object[e.Key], which are rewritten already,
// go through the global; before is the key as it was.
func (r *rewriter) watch(e *ast.AttrGetExpr, before ast.Expr) {
	if name, ok := before.(*ast.IdentExpr); ok {
		if c := r.counterOf(name.Value); c != nil {
			c.uses = append(c.uses, e)
			return
		}
	}
	if !isNear(e.Object, before) {
		e.Key = watched(e.Object, e.Key)
	}
}

// endLoop watches the uses of a loop's variable after all.
func (c *counter) endLoop() {
	if c.changed {
		for _, e := range c.uses {
			e.Key = watched(e.Object, e.Key)
		}
	}
}

// isNear says that an index cannot be far behind the end of its table.
func isNear(object, key ast.Expr) bool {
	switch key := key.(type) {
	case *ast.StringExpr, *ast.StringConcatOpExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.FunctionExpr, *ast.TableExpr:
		return true
	case *ast.NumberExpr:
		return isSmall(key)
	case *ast.ArithmeticOpExpr:
		length, ok := key.Lhs.(*ast.UnaryLenOpExpr)
		return ok && key.Operator == "+" && isSmall(key.Rhs) && sameName(object, length.Expr)
	}
	return false
}

func isSmall(e ast.Expr) bool {
	number, ok := e.(*ast.NumberExpr)
	if !ok {
		return false
	}
	f, err := strconv.ParseFloat(number.Value, 64)
	return err == nil && f <= smallIndex
}

func sameName(a, b ast.Expr) bool {
	x, ok := a.(*ast.IdentExpr)
	y, alsoName := b.(*ast.IdentExpr)
	return ok && alsoName && x.Value == y.Value
}

func watched(object, key ast.Expr) ast.Expr {
	table, ok := repeat(object)
	if !ok {
		table = &ast.NilExpr{}
	}
	name := &ast.IdentExpr{Value: watchName}
	call := &ast.FuncCallExpr{Func: name, Args: []ast.Expr{table, key}, AdjustRet: true}
	for _, node := range []ast.PositionHolder{table, name, call} {
		node.SetLine(key.Line())
		node.SetLastLine(key.LastLine())
	}
	return call
}

// repeat copies an expression that may be evaluated twice: names, and what is
// looked up by names and constants.
func repeat(e ast.Expr) (ast.Expr, bool) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return &ast.IdentExpr{Value: e.Value}, true
	case *ast.StringExpr:
		return &ast.StringExpr{Value: e.Value}, true
	case *ast.NumberExpr:
		return &ast.NumberExpr{Value: e.Value}, true
	case *ast.AttrGetExpr:
		object, ok := repeat(e.Object)
		key, alsoKey := repeat(e.Key)
		if ok && alsoKey {
			copied := &ast.AttrGetExpr{Object: object, Key: key}
			copied.SetLine(e.Line())
			copied.SetLastLine(e.LastLine())
			return copied, true
		}
	}
	return nil, false
}
