package ledger

import "fmt"

// Probe is a script for tests and measurements, which look at the keys of a resource from outside, in whichever form they
// are, or do to them what time and accidents do. A transition would settle what it finds. KEYS are those of a resource,
// for `read` of several.
//
//	read        returns what ReadStored reads
//	overdue id  the time of the id's lease, place or bar is over
//	token n     the last token is n
//	sum n       the permits that are held, and the leases, are n; in the full form only
//	later ms    all times are that much later
const Probe = `
local STATE, LEASES, QUEUE, SEEN, line, queue, head, few

local function load(first)
  STATE, LEASES, QUEUE, SEEN = KEYS[first], KEYS[first + 1], KEYS[first + 2], KEYS[first + 3]
  line, queue = redis.call('HGET', STATE, 'clock') or '', redis.call('HGET', STATE, 'queue') or ''
  head, few = string.match(line, '^(3c %d+ %d+ %d+ %d+ %d+)(.*)\n%.$')
end
load(1)

local function each(found)
  return (string.gsub(few, '\n(%d+) (%S+) (L [^\n]*)', found))
end

-- set replaces the words of a text by their places.
local function set(text, words)
  local n = 0
  return (string.gsub(text, '%S+', function(word)
    n = n + 1
    local new = words[n]
    return type(new) == 'function' and string.format('%d', new(word)) or new
  end))
end

local verb = {}

function verb.read()
  local token, leases, waiters, records = string.match(line, '^3c? %d+ %d+ (%d+)'), {}, {}, 0
  local held, count = string.match(line, '^3 %d+ %d+ %d+ (%d+) (%d+)')
  held, count = tonumber(held or 0), tonumber(count or 0)
  for _, field in ipairs(redis.call('HKEYS', STATE)) do
    records = records + (string.find(field, ':', 1, true) and 1 or 0)
  end
  local function add(to, ...)
    for _, word in ipairs({...}) do
      to[#to + 1] = word
    end
  end
  if few then
    each(function(expires, id, record)
      held, count, records = held + string.match(record, '^L (%d+)'), count + 1, records + 1
      add(leases, id, expires, record)
    end)
  end
  for _, id in ipairs(redis.call('ZRANGE', LEASES, 0, -1)) do
    add(leases, id, redis.call('ZSCORE', LEASES, id), redis.call('HGET', STATE, id) or '')
  end
  for _, id in ipairs(redis.call('ZRANGE', QUEUE, 0, -1)) do
    local record = redis.call('HGET', STATE, id) or ''
    local since, claim = string.match(record, '^W %d+ %d+ (%d+) %d+ (%d+) ')
    local untilMs = redis.call('ZSCORE', SEEN, id) or (since and since + claim) or 0
    add(waiters, id, string.format('%d', untilMs), record)
  end
  return {token or '0', tostring(held), tostring(count), redis.call('HGET', STATE, 'operator') or '0', tostring(records),
    leases, waiters}
end

function verb.overdue()
  local id = ARGV[2]
  if few then
    line = head .. each(function(expires, of, record)
      return of == id and '\n1 ' .. id .. ' ' .. record or nil
    end) .. '\n.'
  else
    redis.call('ZADD', LEASES, 'XX', 1, id)
    line = set(line, {[8] = '1'})
  end
  if redis.call('ZSCORE', QUEUE, id) then
    redis.call('ZADD', SEEN, 1, id)
  end
  redis.call('ZADD', SEEN, 'XX', 1, '-' .. id)
  queue = set(queue, {[3] = '1'})
end

function verb.token()
  line = set(head or line, {[4] = ARGV[2]}) .. (few and few .. '\n.' or '')
end

function verb.sum()
  line = set(line, {[5] = ARGV[2], [6] = ARGV[2], [8] = '1'})
end

function verb.later()
  local function later(by)
    return function(word) return tonumber(word) == 0 and 0 or word + by end
  end
  local ms = later(ARGV[2])
  if few then
    line = set(head, {[2] = later(ARGV[2] / 1000), [6] = ms}) .. each(function(expires, id, record)
      return '\n' .. string.format('%d', ms(expires)) .. ' ' .. id .. ' ' .. record
    end) .. '\n.'
  else
    line = set(line, {[2] = later(ARGV[2] / 1000), [7] = ms, [8] = ms, [10] = ms})
  end
  queue = set(queue, {[3] = ms, [4] = ms, [5] = ms})
  for _, id in ipairs(redis.call('ZRANGE', QUEUE, 0, -1)) do
    local record = redis.call('HGET', STATE, id)
    if record then
      redis.call('HSET', STATE, id, set(record, {[4] = ms}))
    end
  end
  for _, key in ipairs({LEASES, SEEN}) do
    for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      redis.call('ZINCRBY', key, ARGV[2], id)
    end
  end
end

if ARGV[1] == 'read' then
  local all = {}
  for first = 1, #KEYS, 4 do
    load(first)
    all[#all + 1] = verb.read()
  end
  return all
end
if line ~= '' then
  verb[ARGV[1]]()
  redis.call('HSET', STATE, 'clock', line)
  if queue ~= '' then
    redis.call('HSET', STATE, 'queue', queue)
  end
end
return 1`

// Stored is what the keys of one resource hold.
type Stored struct {
	Token                          int64
	Held, Count, Operator, Records int // Records is how many there are, of leases and waiters
	Leases, Queue                  []StoredEntry
}

// StoredEntry is a lease, or a waiter in its place. Until is when it expires, or must be heard from.
type StoredEntry struct {
	ID, Record string
	UntilMs    int64
}

// ReadStored reads the reply of the Probe `read`: for each resource {token, held, count, operator, records, {id, expiresMs,
// record, ...}, {id, the ms by which it must be heard from, record, ...}}, all texts.
func ReadStored(reply any) ([]Stored, error) {
	all, ok := reply.([]any)
	stored := make([]Stored, len(all))
	for i, part := range all {
		elements, isList := part.([]any)
		if ok = ok && isList && len(elements) == 7; !ok {
			break
		}
		var n [5]int64
		for j := range n {
			n[j] = integer(fmt.Sprint(elements[j]))
		}
		stored[i] = Stored{
			Token: n[0], Held: int(n[1]), Count: int(n[2]), Operator: int(n[3]), Records: int(n[4]),
			Leases: storedEntries(elements[5]), Queue: storedEntries(elements[6]),
		}
	}
	if !ok {
		return nil, fmt.Errorf("%w: an answer of the probe that is none: %.200q", ErrServer, fmt.Sprint(reply))
	}
	return stored, nil
}

func storedEntries(value any) (entries []StoredEntry) {
	words, _ := value.([]any) // an empty list
	for i := 0; i+2 < len(words); i += 3 {
		entries = append(entries, StoredEntry{fmt.Sprint(words[i]), fmt.Sprint(words[i+2]), integer(fmt.Sprint(words[i+1]))})
	}
	return entries
}
