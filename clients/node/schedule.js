// Ticks of schedules. The server knows no calendars: when a tick has come, the worker that calls next is told, makes the job and
// sets the tick after it, in one transition that nobody can make a second time. Schedules are set by Go programs and by the
// signalbox program; what they say is read here as there.

import { Invalid } from './errors.js'

const mostMissed = 100
const dayMs = 86_400_000
const named = {
  '@yearly': '0 0 1 1 *', '@annually': '0 0 1 1 *', '@monthly': '0 0 1 * *', '@weekly': '0 0 * * 0', '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *', '@hourly': '0 * * * *'
}
const unitMs = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, µs: 1e-3, ns: 1e-6 }
const numbered = (words, from) => new Map(words.split(' ').map((word, i) => [word, i + from]))
const months = numbered('jan feb mar apr may jun jul aug sep oct nov dec', 1)
const weekdays = numbered('sun mon tue wed thu fri sat', 0)

// The numbers of a field of cron, and whether it is a star.
function field (text, low, high, names = new Map()) {
  const found = new Set()
  let star = false
  const number = (word) => names.get(word) ?? (/^\d+$/.test(word) ? Number(word) : NaN)
  for (const part of text.toLowerCase().split(',')) {
    const [span, step] = part.split('/')
    const [first, last] = span.split('-')
    let a = number(first)
    let b = last !== undefined ? number(last) : step !== undefined ? high : a
    if (first === '*' || first === '?') {
      [a, b] = [low, high]
      star ||= step === undefined || step === '1'
    }
    const n = step === undefined ? 1 : number(step)
    if (!(n >= 1 && low <= a && a <= b && b <= high)) throw new Error(`${JSON.stringify(part)} is not between ${low} and ${high}`)
    for (let i = a; i <= b; i += n) found.add(i)
  }
  return [found, star]
}

/** The first tick behind a time, both in ms since 1970. */
export function nextTick (spec, zone, afterMs) {
  try {
    if (spec.startsWith('@every ')) {
      const parts = [...spec.slice(7).matchAll(/([0-9.]+)(ms|us|µs|ns|h|m|s)/g)]
      const every = Math.round(parts.reduce((sum, [, n, unit]) => sum + Number(n) * unitMs[unit], 0))
      if (!(every >= 1000) || parts.map(([part]) => part).join('') !== spec.slice(7)) throw new Error('it is at least a second')
      return (Math.floor(afterMs / every) + 1) * every
    }
    return cron(named[spec] ?? spec, zone || 'UTC', afterMs)
  } catch (cause) {
    throw new Invalid(`schedule ${JSON.stringify(spec)} in zone ${JSON.stringify(zone)}: ${cause.message}`, { cause })
  }
}

function cron (spec, zone, afterMs) {
  const words = spec.split(/\s+/)
  if (words.length !== 5) throw new Error('it has five fields')
  const [[minutes], [hours, everyHour], [days, anyDay], [ofYear], [ofWeek, anyWeekday]] = [
    field(words[0], 0, 59), field(words[1], 0, 23), field(words[2], 1, 31), field(words[3], 1, 12, months), field(words[4], 0, 6, weekdays)
  ]
  const offset = offsets(zone)
  const today = afterMs + offset(afterMs)
  for (let day = today - today % dayMs, n = 0; n < 366 * 5; n++, day += dayMs) {
    const date = new Date(day)
    const [inMonth, inWeek] = [days.has(date.getUTCDate()), ofWeek.has(date.getUTCDay())]
    // With both given, one is enough.
    if (!ofYear.has(date.getUTCMonth() + 1) || !(anyDay || anyWeekday ? inMonth && inWeek : inMonth || inWeek)) continue
    // Clocks are changed at most once in these days: an hour may be left out, or come twice.
    const around = [...new Set([offset(day - dayMs), offset(day + 2 * dayMs)])]
    let first = Infinity
    for (const h of hours) {
      for (const m of minutes) {
        const times = around.map((o) => day + h * 3_600_000 + m * 60_000 - o).filter((at, i) => offset(at) === around[i]).sort((a, b) => a - b)
        for (const at of everyHour ? times : times.slice(0, 1)) if (at > afterMs && at < first) first = at
      }
    }
    if (first < Infinity) return first
  }
  throw new Error('it never comes')
}

// By how many ms the clocks of a zone are ahead of UTC at a time.
function offsets (zone) {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric'
  })
  return (ms) => {
    const p = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
    return Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute, p.second) - Math.floor(ms / 1000) * 1000
  }
}

/** The arguments of signalbox_queue_enqueue for a tick. */
export function enqueueArguments (name, text, seed, nowMs) {
  const end = text.indexOf('\n')
  const tick = Number(text.slice(0, end))
  const { spec, zone, missed, item } = JSON.parse(text.slice(end + 1))
  let due = [tick]
  let following
  while ((following = nextTick(spec, zone ?? '', due.at(-1))) <= nowMs) due = [...due, following].slice(-mostMissed)
  if (missed !== 'each') due = due.slice(-1)
  if (missed === 'skip' && nowMs - due.at(-1) > 60_000) due = []
  const terms = [String(item.Priority ?? 0), String(Math.floor((item.Retention ?? 0) / 1e6)), item.UniqueIn ?? '', item.UniqueField ?? '']
  const plain = terms.join() === '0,0,,'
  const { Kind: kind, Tags: tags, Cost: cost, Key: key } = item.Lane
  const lane = [kind, (tags ?? []).join(','), cost ?? '', key ?? ''].join('\t')
  return [0, seed, name, tick, following, plain ? '1' : '0',
    ...due.flatMap((at) => [`${name}@${at}`, lane, plain ? '' : ['0', ...terms, ''].join('\t'), '\n' + item.Rest])]
}
