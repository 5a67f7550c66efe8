package server_test

import (
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// nemesis makes the disk fail, sees to it that the engine gets over it, and returns at the moment of
// the power cut. steps is after how many steps of the disk the power goes; negative is at a moment.
func (h *history) nemesis(s *server.Server, d *disktest.Disk, steps int) {
	h.t.Helper()
	end := time.Now().Add(time.Duration(500+h.r.IntN(7000)) * time.Millisecond)
	for quietUntil := end.Add(-time.Duration(h.r.IntN(4000)) * time.Millisecond); steps < 0 && time.Now().Before(quietUntil); {
		h.fault(s, d)
		time.Sleep(time.Duration(h.r.IntN(1500)) * time.Millisecond)
	}
	if steps >= 0 {
		h.outage(s, d, steps)
		return
	}
	if left := time.Until(end); left > 0 {
		time.Sleep(left)
	}
}

// outage makes the power go after some steps. The engine goes on for a while in memory.
func (h *history) outage(s *server.Server, d *disktest.Disk, steps int) {
	const look = 5 * time.Millisecond
	last := d.Steps() + steps
	d.CutAfter(steps)
	watch := func() (gone bool) {
		time.Sleep(look)
		if gone = d.Steps() > last; gone {
			h.hurt(time.Now().Add(-look))
		}
		return gone
	}
	for range 600 { // there are steps each second, if the policy wants any
		if h.r.IntN(40) == 0 {
			h.job(s)
		}
		if watch() {
			break
		}
	}
	for end := time.Now().Add(time.Duration(h.r.IntN(3000)) * time.Millisecond); time.Now().Before(end); {
		watch() // they may have been too few until now
	}
}

// hurt notes, before it is so, that the disk may not keep what it is to keep. What was acknowledged until now was
// written before; what is acknowledged from now on may be among what could not be written, until writes are refused.
func (h *history) hurt(since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hurtSince.IsZero() {
		h.hurtSince, h.sound = since, h.acknowledged()
	}
}

// job asks for a job. It may be refused, fail with the disk, or be of no interest.
func (h *history) job(s *server.Server) {
	name := "BGREWRITEAOF"
	if h.r.IntN(3) == 0 {
		name = "BGSAVE"
	}
	_, _ = s.Do(h.t.Context(), args(name))
}

// fault is a fault of the disk, or something that the engine does, and its end.
func (h *history) fault(s *server.Server, d *disktest.Disk) {
	h.t.Helper()
	moment := func(mostMs int) { time.Sleep(time.Duration(h.r.IntN(mostMs)) * time.Millisecond) }
	kind := h.r.IntN(8)
	if kind < 2 {
		h.job(s)
		return
	}
	h.hurt(time.Now())
	h.faulty = true
	switch kind {
	case 2:
		d.FailSyncs(1 + h.r.IntN(2))
	case 3:
		d.FullAfter(int64(h.r.IntN(3000)))
	case 4:
		d.ReadOnly(true)
	case 5:
		d.FailFolderSyncsAfter(h.r.IntN(4), 1+h.r.IntN(3))
		h.job(s)
	case 6:
		d.FailSyncs(1)
		h.job(s)
	case 7:
		h.job(s)
		moment(100)
		d.FailSyncs(1)
	}
	moment(3000)
	if h.r.IntN(3) == 0 {
		h.job(s)
		moment(50)
	}
	if h.r.IntN(4) == 0 {
		return // the power goes while it fails, or it fails in two ways
	}
	d.FailSyncs(0)
	d.FailFolderSyncs(0)
	d.FullAfter(-1)
	d.ReadOnly(false)
	h.recovers(s)
}

// recovers waits until the engine takes writes again. From then on everything is as safe as ever.
func (h *history) recovers(s *server.Server) {
	h.t.Helper()
	took := func() (string, bool) {
		value, err := s.Do(h.t.Context(), args("SET", "probe", "1"))
		return fmt.Sprintf("%v, %v", value, err), err == nil && value.Str == "OK"
	}
	if _, ok := took(); ok {
		time.Sleep(1500 * time.Millisecond) // a failure that nobody has noticed yet is noticed by now
	}
	for mended := time.Now(); ; {
		answer, ok := took()
		if ok {
			break
		}
		if time.Since(mended) > mendsIn {
			h.t.Fatalf("%v after the disk was mended a write is answered %s", mendsIn, answer)
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.mu.Lock()
	h.faulty, h.hurtSince = false, time.Time{}
	h.mu.Unlock()
}
