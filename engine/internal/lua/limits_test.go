package lua

import (
	"fmt"
	"strings"
	"testing"
)

// TestLargeConstructors counts the elements of constructors on both sides of where an instruction has no room for the
// number of a batch.
func TestLargeConstructors(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	for _, n := range []int{49, 50, 51, 25_549, 25_550, 25_551, 60_000} {
		body := "local t = {" + strings.Repeat("7,", n) + "(function() return 8, 9 end)()} return {#t, t[#t], t[1]}"
		want := fmt.Sprintf("*3\r\n:%d\r\n:9\r\n:7\r\n", n+2)
		if got := eval(t, vm, 2, body); got != want {
			t.Errorf("%d elements: got %q, want %q", n, got, want)
		}
	}
}

// TestManyConstants: more constants than an instruction has room for as an operand, and all different.
func TestManyConstants(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	const n = 20_000
	var body strings.Builder
	body.WriteString("local t, sum = {}, 0\n")
	for i := range n {
		fmt.Fprintf(&body, "t.k%d = %d.5 ", i, i)
	}
	body.WriteString("for k, v in pairs(t) do if k == 'k' .. v - 0.5 then sum = sum + 1 end end return sum")
	if got, want := eval(t, vm, 2, body.String()), fmt.Sprintf(":%d\r\n", n); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestManyVariables: as many as there may be, and one more.
func TestManyVariables(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	for n, want := range map[int]string{
		60:  ":60\r\n",
		61:  "-ERR Error compiling script (new function): user_script:1: function at line 1 has more than 60 upvalues\r\n",
		199: "-ERR Error compiling script (new function): user_script:1: function at line 1 has more than 60 upvalues\r\n",
		201: "-ERR Error compiling script (new function): user_script:1: main function has more than 200 local variables\r\n",
	} {
		var body strings.Builder
		for i := range n {
			fmt.Fprintf(&body, "local v%d = #ARGV + 1 ", i)
		}
		body.WriteString("local function sum() return v0")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&body, " + v%d", i)
		}
		body.WriteString(" end return sum()")
		if got := eval(t, vm, 2, body.String()); got != want {
			t.Errorf("%d variables: got %q, want %q", n, got, want)
		}
	}
}
