"""Ticks of schedules. The server knows no calendars: when a tick has come, the worker that calls next is told, makes the job
and sets the tick after it, in one transition that nobody can make a second time. Schedules are set by Go programs and by the
signalbox program; what they say is read here as there."""

from __future__ import annotations

import datetime
import json
import re
import zoneinfo
from typing import Any, Iterator

from . import errors

MOST_MISSED = 100
_NAMED = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_MONTHS = {name: i + 1 for i, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split())}
_DAYS = {name: i for i, name in enumerate("sun mon tue wed thu fri sat".split())}


def _field(text: str, low: int, high: int, names: dict[str, int]) -> tuple[set[int], bool]:
    """The numbers of a field of cron, and whether it is a star."""
    found: set[int] = set()
    star = False
    for part in text.lower().split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if first in ("*", "?"):
            a, b, star = low, high, star or step in ("", "1")
        else:
            a = names[first] if first in names else int(first)
            b = (names[last] if last in names else int(last)) if dash else high if slash else a
        n = int(step) if slash else 1
        if n < 1 or not low <= a <= b <= high:
            raise ValueError(f"{part!r} is not between {low} and {high}")
        found.update(range(a, b + 1, n))
    return found, star


def next_tick(spec: str, zone: str, after_ms: int) -> int:
    """The first tick behind a time, both in ms since 1970."""
    try:
        if spec.startswith("@every "):
            parts = re.findall(r"([0-9.]+)(ms|us|µs|ns|h|m|s)", spec[7:])
            every = round(1000 * sum(float(n) * _UNITS[unit] for n, unit in parts))
            if every < 1000 or "".join(n + unit for n, unit in parts) != spec[7:]:
                raise ValueError("it is at least a second")
            return (after_ms // every + 1) * every
        return next(_cron(_NAMED.get(spec, spec), zoneinfo.ZoneInfo(zone or "UTC"), after_ms))
    except (ValueError, KeyError, StopIteration, zoneinfo.ZoneInfoNotFoundError) as error:
        raise errors.Invalid(f"schedule {spec!r} in zone {zone!r}: {error or 'it never comes'}") from error


def _cron(spec: str, zone: zoneinfo.ZoneInfo, after_ms: int) -> Iterator[int]:
    minute, hour, day, month, weekday = spec.split()
    minutes, _ = _field(minute, 0, 59, {})
    hours, every_hour = _field(hour, 0, 23, {})
    days, any_day = _field(day, 1, 31, {})
    months, _ = _field(month, 1, 12, _MONTHS)
    weekdays, any_weekday = _field(weekday, 0, 6, _DAYS)
    date = datetime.datetime.fromtimestamp(after_ms / 1000, zone).date() - datetime.timedelta(days=1)
    for _ in range(366 * 5):
        date += datetime.timedelta(days=1)
        of_month, of_week = date.day in days, date.isoweekday() % 7 in weekdays
        # With both given, one is enough.
        if date.month not in months or not (of_month and of_week if any_day or any_weekday else of_month or of_week):
            continue
        found = set()
        for h in hours:
            for m in minutes:
                for fold in (0, 1) if every_hour else (0,):  # an hour that the clocks repeat
                    at = datetime.datetime(date.year, date.month, date.day, h, m, tzinfo=zone, fold=fold)
                    ms = round(at.timestamp() * 1000)
                    shown = datetime.datetime.fromtimestamp(ms / 1000, zone)
                    if ms > after_ms and (shown.hour, shown.minute) == (h, m):  # else the clocks leave it out
                        found.add(ms)
        yield from sorted(found)


def jobs_of(name: str, text: str, now_ms: int) -> tuple[int, int, list[Any]]:
    """What to enqueue for a tick: which tick it is, the next one, and the words of the jobs."""
    tick, _, schedule = text.partition("\n")
    s = json.loads(schedule)
    due, following = [int(tick)], 0
    while True:
        following = next_tick(s["spec"], s.get("zone") or "", due[-1])
        if following > now_ms:
            break
        due = (due + [following])[-MOST_MISSED:]
    missed, last = s["missed"], due[-1]
    if missed != "each":
        due = due[-1:]
    if missed == "skip" and now_ms - last > 60_000:
        due = []
    item = s["item"]
    lane = item["Lane"]
    terms = [str(item.get("Priority") or 0), str((item.get("Retention") or 0) // 1_000_000), item.get("UniqueIn") or "", item.get("UniqueField") or ""]
    words: list[Any] = ["1" if terms == ["0", "0", "", ""] else "0"]
    for at in due:
        words += [f"{name}@{at}", "\t".join((lane["Kind"], ",".join(lane.get("Tags") or ()), lane.get("Cost") or "", lane.get("Key") or "")),
                  "" if words[0] == "1" else "\t".join(["0", *terms, ""]), "\n" + item["Rest"]]
    return int(tick), following, words


def enqueue_arguments(name: str, text: str, seed: str, now_ms: int) -> list[Any]:
    """The arguments of signalbox_queue_enqueue for a tick."""
    tick, following, words = jobs_of(name, text, now_ms)
    return [0, seed, name, tick, following, *words]
