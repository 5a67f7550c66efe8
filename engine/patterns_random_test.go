package engine_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// randomPatterns makes patterns and texts of a seed, and lists what the functions of Lua that take patterns make of them,
// errors included.
const randomPatterns = `
local seed = tonumber(ARGV[1])
local function random(n) seed = (seed * 16807) % 2147483647 return seed % n + 1 end
local items = {'a', 'b', 'c', '1', ' ', '-', '$', '^', '.', '[', ']', '%', '(', ')', '(', ')', '()', '%1', '%2', '%b()', '%f[a]',
  '%d', '%a', '%S', '%s', '%w', '%D', '%W', '%x', '%u', '%L', '%z', '%p', '%c', '%.', '%%',
  '[ab]', '[^a]', '[a-c]', '[%d_]', '[^%s]', '[]a]'}
local repeats = {'', '', '', '', '*', '+', '-', '?'}
local bytes = {'a', 'a', 'a', 'b', 'b', 'c', 'A', '1', '2', '_', ' ', '(', ')', '.', '%', '-', '\n', '$'}
local function all(text, pattern)
  local found = {}
  for a, b in string.gmatch(text, pattern) do
    found[#found + 1] = tostring(a) .. ':' .. tostring(b)
  end
  return table.concat(found, ',')
end
local lines = {}
for i = 1, 5000 do
  local pattern, text, got = {}, {}
  if random(4) == 1 then pattern[1] = '^' end
  for _ = 1, random(6) do pattern[#pattern + 1] = items[random(#items)] .. repeats[random(#repeats)] end
  for _ = 2, random(14) do text[#text + 1] = bytes[random(#bytes)] end
  pattern, text = table.concat(pattern), table.concat(text)
  local kind = random(4)
  if kind == 1 then got = {pcall(string.find, text, pattern, random(3) - 1)}
  elseif kind == 2 then got = {pcall(string.match, text, pattern)}
  elseif kind == 3 then got = {pcall(string.gsub, text, pattern, '<%1%0>', random(5))}
  else got = {pcall(all, text, pattern)} end
  local line = {pattern, text, kind}
  for j = 1, 8 do line[#line + 1] = tostring(got[j]) end
  lines[i] = table.concat(line, '|')
end
return lines`

func TestRandomPatternsAgainstRedis(t *testing.T) {
	t.Parallel()
	redis, ours := connect(t, difftest.Redis(t).Dial), connect(t, dial(t))
	for seed := range 3 {
		request := []string{"EVAL", randomPatterns, "0", strconv.Itoa(seed*7919 + 1)}
		want, got := do(t, redis, request...), do(t, ours, request...)
		if len(want.Elems) < 5000 {
			t.Fatalf("Redis: %v", want)
		}
		if diff := cmp.Diff(want.Elems, got.Elems); diff != "" {
			t.Errorf("Redis (-), the engine (+):\n%s", diff)
		}
	}
}
