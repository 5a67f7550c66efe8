-- values and operators
local function show(t) if type(t) == 'table' then local s = '{' for i = 1, #t do s = s .. tostring(t[i]) .. ',' end return s .. '}' end return tostring(t) end
print(1, 1.5, -0.25, 1e15, 1e100, 2^53, 0x10, 1/0, -1/0, 10 % 3, -10 % 3, 10 % -3, 5.5 % 2, 2^0.5, 7/2)
print('10' + 5, '0x10' * 2, ' 5 ' - 1, 10 .. 20, 'a' .. 1.5 .. 'b')
print(1 < 2, 1 <= 1, 'a' < 'b', 'a' <= 'a', 'Z' < 'a', 1 == 1.0, '1' == 1, nil == false)
print(not nil, not 0, nil and 1, false or 'x', 1 and 2, nil or false, 1 or error('no'))
print(#'abc', #{1, 2, 3}, #{n = 1}, -'2', - -3)
local a, b, c = (function() return 1, 2, 3 end)()
print(a, b, c, ((function() return 1, 2 end)()))
print((function(...) return select('#', ...), ... end)(nil, nil))
local t = {1, 2, x = 3, [4] = 4, ['y'] = 5, (function() return 6, 7 end)()}
print(#t, t[1], t[2], t[3], t[4], t.x, t.y)
print(show{(function() return 1, 2, 3 end)(), (function() return 1, 2, 3 end)()}, show{((function() return 1, 2 end)())})
t = {} for i = 1, 10 do t[i] = i * i end print(#t, t[10]) t[#t] = nil print(#t)
for i = 10, 1, -3 do print(i) end
for i = 1, 0 do print('never') end
for i = 0.1, 0.5, 0.1 do print(i) end
local n = 0 while true do n = n + 1 if n > 5 then break end end print(n)
repeat local z = n n = n - 1 until z < 3 print(n)
local s = 0 for k, v in pairs{10, 20, 30} do s = s + k * v end print(s)
for i, v in ipairs{1, 2, nil, 4} do print(i, v) end
-- closures
local fs = {} for i = 1, 3 do fs[i] = function() i = i + 1 return i end end
print(fs[1](), fs[1](), fs[2](), fs[3]())
local function counter() local n = 0 return function() n = n + 1 return n end, function() return n end end
local inc, get = counter() inc() inc() print(get())
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end print(fib(20))
local fns = {} for i = 1, 3 do local j = i * 10 fns[#fns + 1] = function() j = j + i return j end end
print(fns[1](), fns[1](), fns[3]())
do local x = 1 local function f() return x end x = 2 print(f()) end
local w = {} local k = 1 while k < 4 do local q = k w[k] = function() q = q + 1 return q end if k == 3 then break end k = k + 1 end print(w[1](), w[3](), w[3]())
repeat local u = 7 local g = function() return u end until g() == 7
-- multiple assignment
local i, arr = 1, {} i, arr[i] = i + 1, 20 print(i, arr[1], arr[2])
local x, y = 1, 2 x, y = y, x print(x, y)
local p, q, r = 1 print(p, q, r) p, q = 1, 2, 3 print(p, q)
do local a = {} local b = a a.x, a = 1, 2 print(b.x, a) end
-- varargs and arg
local function v(...) local a, b = ... return a, b, ... end print(v(1), v(1, 2, 3)) print((v(1, 2, 3)))
local function old(...) return arg.n, arg[1], arg[2] end print(old(5, 6, 7))
local function tail(n) if n == 0 then return 'done' end return tail(n - 1) end print(tail(100000))
print(select(-1, 1, 2, 3), select(2, 'a', 'b', 'c'))
-- metatables
local mt = {__add = function(a, b) return 'add' end, __sub = function() return 'sub' end, __mul = function() return 'mul' end,
  __div = function() return 'div' end, __mod = function() return 'mod' end, __pow = function() return 'pow' end,
  __unm = function() return 'unm' end, __concat = function(a, b) return 'cat' end, __len = function() return 'len' end,
  __eq = function() return true end, __lt = function() return true end, __le = function() return false end,
  __call = function(self, ...) return 'call', ... end, __index = function(t, k) return k .. '!' end,
  __newindex = function(t, k, v) print('new', k, v) end}
local o, o2 = setmetatable({}, mt), setmetatable({}, mt)
print(o + 1, 1 + o, o - 1, o * 2, o / 2, o % 2, o ^ 2, -o, o .. 'x', 'x' .. o, 1 .. o, o == o2, o ~= o2, o < o2, o <= o2, o > o2, o(1, 2))
print(#o, o.foo, rawget(o, 'foo')) o.bar = 1
print(setmetatable({}, {__index = {z = 26}}).z, setmetatable({}, {__index = setmetatable({}, {__index = {z = 27}})}).z)
print('a' .. 'b' .. o .. 'c' .. 'd')
local lt = setmetatable({}, {__lt = function(a, b) return false end}) print(lt <= lt)
local prox = {} setmetatable(prox, {__newindex = prox2}) prox.a = 1 print(prox.a)
-- strings
print('a\65\066\n\t\\\'"', "x\
y", [[
long]], [==[a]]b]==], #'\0a\0', 'tab\tq')
print(0x7fffffff, 1e3, .5, 3., 0xA, 1E-2)
-- goto is a name
local goto = 1 print(goto)
-- coroutines
local co = coroutine.create(function(a, b) print('start', a, b) local c = coroutine.yield(a + b) print('got', c) local d, e = coroutine.yield(c * 2) print(d, e) return 'end', 99 end)
print(coroutine.resume(co, 1, 2)) print(coroutine.status(co)) print(coroutine.resume(co, 10)) print(coroutine.resume(co, 'x', 'y')) print(coroutine.resume(co)) print(coroutine.status(co))
local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(gen(), gen(), gen(), gen())
print(pcall(gen))
local co2 = coroutine.wrap(function() error('inside') end) print(pcall(co2))
local co3 = coroutine.wrap(function() error({}) end) print(pcall(co3))
print(coroutine.resume(coroutine.create(function() pcall(coroutine.yield, 1) end)))
for v in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do print(v) end
local function deepyield(n) if n == 0 then coroutine.yield('deep') else deepyield(n - 1) end return n end
local dco = coroutine.wrap(function() deepyield(10) return 'out' end) print(dco(), dco())
print(coroutine.resume(coroutine.create(function() return coroutine.resume(coroutine.create(function() coroutine.yield(5) end)) end)))
-- large constructor, many constants
local src = {} local big = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,66,67,68,69,70,71,72,73,74,75,76,77,78,79,80,81,82,83,84,85,86,87,88,89,90,91,92,93,94,95,96,97,98,99,100,101}
print(#big, big[50], big[51], big[100], big[101])
-- while with complex conditions
local m, l = 0, 5 while (m < 3 or m == 4) and l ~= 0 do m = m + 1 l = l - 1 end print(m, l)
local e1 = (nil or 2) == 2 and 'yes' or 'no' print(e1, not (1 == 2) and 3, (1 > 2) == false, 1 < 2 == true)
if nil then print(1) elseif false then print(2) else print(3) end
if 1 then print'one' end
print(2 ^ 3 ^ 2, -2 ^ 2, not 1 == 2, 1 .. 2 == '12', 2 * 3 + 4 * 5 - 6 / 2)
