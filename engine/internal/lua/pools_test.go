package lua

import (
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// What a script has left in the table of a reply must not be there when another script gets one.
func TestAScriptFindsNothingInItsReplies(t *testing.T) {
	const look = `
local r = redis.call('LRANGE', 'list', '0', '-1')
local seen = {#r, tostring(getmetatable(r))}
for k, v in pairs(r) do seen[#seen + 1] = k .. '=' .. v end
return table.concat(seen, ' ')`
	for _, mess := range []string{
		"r[3], r[4], r[5] = 'x', 'y', 'z'",
		"r[1], r[2] = nil, nil",
		"r.name = 'x'",
		"r[0], r[-1], r[2.5], r[true] = 1, 2, 3, 4",
		"setmetatable(r, {__index = function() return 'x' end})",
		"r[100] = 'far'",
		"table.insert(r, 1, 'first')",
		"r.name = 'x' r.name = nil",
		"redis.call('MGET', 'none', 'none') r[1] = string.rep('x', 100000)",
	} {
		vm := New(nil)
		host := newFakeHost()
		host.lists["list"] = []string{"a", "b"}
		run := func(body string) string {
			script, err := vm.Load([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			var out resp.Writer
			out.Proto = 2
			vm.Run(host, script, nil, nil, &out)
			return string(out.Bytes())
		}
		const want = "$13\r\n2 nil 1=a 2=b\r\n"
		run(look)
		run("local r = redis.call('LRANGE', 'list', '0', '-1') " + mess + " return r")
		for range 2 {
			if got := run(look); got != want {
				t.Errorf("after %q: got %q, want %q", mess, got, want)
			}
		}
		vm.Close()
	}
}
