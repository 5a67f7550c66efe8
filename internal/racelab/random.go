package racelab

import (
	"math/rand/v2"
	"slices"
)

// Where not everything can be seen, chance looks further: with one client and
// one misfortune more than the bounds allow. Who goes next is the one of the
// highest priority, and priorities change at a few steps only, which finds races
// of few turns more often than a coin at every step (PCT, Burckhardt et al.).

// chanceTurns is how often priorities change in a schedule.
const chanceTurns = 3

// chance runs random schedules of a larger world.
func (s *search) chance(a *Algorithm, seed uint64, schedules int) {
	w := newWorld(a, s.bounds.Clients+1)
	defer w.close()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // schedules must come again by their seed
	for range schedules {
		if len(s.open) == 0 {
			return
		}
		w.begin()
		path := w.wander(random, s.bounds.Faults+1, s.bounds.Depth)
		s.report.Random++
		s.progress()
		if w.violation == nil {
			continue
		}
		if at := slices.Index(s.open, w.violation.Promise); at >= 0 {
			s.open = slices.Delete(s.open, at, at+1)
			s.report.Findings = append(s.report.Findings, w.replay(w.shrink(path)))
		}
	}
}

// wander runs one random schedule to its end, or to its first violation.
func (w *world) wander(random *rand.Rand, faults, depth int) (path []Choice) {
	priority := random.Perm(len(w.clients))
	turns := map[int]bool{}
	for range chanceTurns {
		turns[random.IntN(depth)] = true
	}
	w.probing = true
	defer func() { w.probing = false }()
	for step := 0; step < depth && w.violation == nil; step++ {
		if turns[step] {
			priority = random.Perm(len(w.clients))
		}
		natural := w.choices(false)
		if len(natural) == 0 {
			break
		}
		choice := slices.MaxFunc(natural, func(a, b Choice) int { return priority[a.Client] - priority[b.Client] })
		if w.clients[choice.Client].led() {
			own := slices.DeleteFunc(natural, func(c Choice) bool { return c.Client != choice.Client })
			choice = own[random.IntN(len(own))]
		}
		if all := w.choices(true)[len(natural):]; faults > 0 && len(all) > 0 && random.IntN(8) == 0 {
			choice = all[random.IntN(len(all))]
			faults--
		}
		path = append(path, choice)
		w.do(choice)
	}
	if w.violation == nil && w.ended() {
		w.judgeEnd()
	}
	return path
}

// shrink leaves out of a schedule whatever is not needed to break the promise.
func (w *world) shrink(path []Choice) []Choice {
	promise := w.violation.Promise
	for i := 0; i < len(path); {
		shorter, broken := w.follow(slices.Delete(slices.Clone(path), i, i+1))
		if broken == promise && len(shorter) < len(path) {
			path, i = shorter, 0
			continue
		}
		i++
	}
	return path
}

// follow runs a schedule, leaving out what cannot happen, up to the first
// violation.
func (w *world) follow(path []Choice) (followed []Choice, broken Promise) {
	w.begin()
	w.probing = true
	defer func() { w.probing = false }()
	for _, choice := range path {
		if w.violation != nil {
			break
		}
		if slices.Contains(w.choices(true), choice) {
			w.do(choice)
			followed = append(followed, choice)
		}
	}
	if w.violation == nil && w.ended() {
		w.judgeEnd()
	}
	if w.violation == nil {
		return followed, ""
	}
	return followed, w.violation.Promise
}
