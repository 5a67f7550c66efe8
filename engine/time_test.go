package engine_test

import "testing"

// TestTimeStandsStillInAScript: what a script decides by the time holds until its end, however
// long it runs, and in a transaction too.
func TestTimeStandsStillInAScript(t *testing.T) {
	t.Parallel()
	conn := connect(t, dial(t))
	script := "local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end " +
		"local began = now() for i = 1, 1000000 do end return now() - began"
	if got := do(t, conn, "EVAL", script, "0").Text; got != "0" {
		t.Errorf("it went on by %s µs", got)
	}
	do(t, conn, "MULTI")
	do(t, conn, "TIME")
	do(t, conn, "EVAL", script, "0")
	do(t, conn, "TIME")
	if got := do(t, conn, "EXEC").Elems; len(got) != 3 || got[0].String() != got[2].String() {
		t.Errorf("in a transaction: %v", got)
	}
}
