package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Restoring puts what a history leaves onto a server, in calls of restore.lua that say nothing of transitions: records as they
// are, and where each job belongs by the state that its record has. Those that ran wait again, as if their workers had
// been told to stop. Lanes and index follow from what waits; a lane that has to be parked the first claim parks.

// NotEmptyError says what a server has already where a queue was to be made.
type NotEmptyError struct{ Jobs, Results int64 }

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("there is one already: jobs %d, results that are kept %d", e.Jobs, e.Results)
}

// Continue is how the history of a queue that was made goes on.
type Continue struct {
	Number int64  // of its next entry; 0: it has none
	Keep   int64  // how many entries the server keeps at most
	After  string // the ID of the last one that there is
}

// restoring is one rebuild.
type restoring struct {
	*Store
	r     *Replay
	who   string
	nowMs int64 // by the history
	done  func(jobs int)
	told  []string
}

// A batch has at most so many words, and so many bytes unless one word has more.
const (
	batchWords = 1000
	batchBytes = 1 << 20
)

// Restore makes the queue that r is on a server that has none: *NotEmptyError if it has. Until it ends the server answers all
// other calls that they are to come again; if it fails on its way, so it does until it is called again. It returns the jobs
// that ran and were to be canceled. Done is told how many jobs are there.
func (s *Store) Restore(ctx context.Context, r *Replay, who string, on Continue, done func(jobs int)) (told []string, err error) {
	w := &restoring{Store: s, r: r, who: who, nowMs: r.Clock / 1000, done: done}
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{w.jobs, w.lanes, w.links, w.times, w.hashes, w.ended, w.producers} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	end := []any{r.Clock, "", "", "", "", ""}
	if on.Number > 0 {
		end = []any{r.Clock, on.Number, on.Keep, on.After, on.After, r.ID}
	}
	return w.told, w.call(ctx, "end", end...)
}

const rebuild = "rebuild"

func (w *restoring) begin(ctx context.Context) error {
	reply, err := w.run(ctx, rebuild, restoreScript, []any{"begin", w.who})
	if err != nil || len(reply) == 1 && reply[0] == "ok" {
		return err
	}
	if len(reply) != 2 {
		return w.unexpected(rebuild, reply)
	}
	there := &NotEmptyError{}
	there.Jobs, _ = reply[0].(int64)
	there.Results, _ = reply[1].(int64)
	return fmt.Errorf("%s %q: %w", rebuild, w.Name, there)
}

func (w *restoring) call(ctx context.Context, verb string, words ...any) error {
	reply, err := w.run(ctx, rebuild, restoreScript, append([]any{verb, w.who}, words...))
	if err == nil && (len(reply) != 1 || reply[0] != "ok") {
		err = fmt.Errorf("%s %q: somebody else has begun to do so: this one has ended", rebuild, w.Name)
	}
	return err
}

// put runs one command with many words on a key, in pieces. Words come in twos.
func (w *restoring) put(ctx context.Context, command, key string, words []string) error {
	at := slices.Index(keyNames, key) + 1
	for len(words) > 0 {
		n, bytes := 0, 0
		for n < len(words) && n < batchWords && (n == 0 || bytes < batchBytes) {
			bytes += len(words[n]) + len(words[n+1])
			n += 2
		}
		args := make([]any, 0, 2+n)
		args = append(args, at, command)
		for _, word := range words[:n] {
			args = append(args, word)
		}
		if err := w.call(ctx, "put", args...); err != nil {
			return err
		}
		words = words[n:]
	}
	return nil
}

// waits says that a job waits for its turn, or did before it was claimed.
func waits(record string) bool { return strings.HasPrefix(record, "w") }

func (w *restoring) jobs(ctx context.Context) error {
	var records, entries []string
	there := 0
	flush := func() error {
		if err := w.put(ctx, "HSET", "jobs", records); err != nil {
			return err
		}
		there += len(records) / 2
		err := w.put(ctx, "ZADD", "waiting", entries)
		records, entries = records[:0], entries[:0]
		w.done(there)
		return err
	}
	for id, record := range w.r.Hashes["jobs"] {
		lane, order, err := placeOf(record)
		if err != nil {
			return fmt.Errorf("%s %q: job %q: %w", rebuild, w.Name, id, err)
		}
		records = append(records, id, record)
		if waits(record) {
			entries = append(entries, "0", lane+"\t"+order+"\t"+id)
		}
		if len(records) >= batchWords {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// placeOf reads of a record where its job waits.
func placeOf(record string) (lane, order string, err error) {
	header, _, ok := strings.Cut(record, "\n")
	f := strings.SplitN(header, "\t", 11)
	if !ok || len(f) != 11 || strings.Count(f[10], "\t") != 3 {
		return "", "", fmt.Errorf("a record that no version of Signalbox writes: %.100q", record)
	}
	return f[10], f[1], nil
}

// lanes follow from what waits: each has the order of its first job, and is in the index by it.
func (w *restoring) lanes(ctx context.Context) error {
	heads := map[string]string{}
	reserved := false
	for _, record := range w.r.Hashes["jobs"] {
		lane, order, _ := placeOf(record) // jobs has read it
		reserved = reserved || strings.Contains(lane, "\t\x01")
		if head, there := heads[lane]; waits(record) && (!there || order < head) {
			heads[lane] = order
		}
	}
	var lanes, index []string
	for lane, order := range heads {
		at := strings.LastIndexByte(lane, '\t')
		lanes = append(lanes, lane, order)
		index = append(index, "0", lane[:at]+"\t"+order+lane[at:])
	}
	if err := w.put(ctx, "HSET", "lanes", lanes); err != nil {
		return err
	}
	if reserved {
		if err := w.put(ctx, "HSET", "counts", []string{"r", "1"}); err != nil {
			return err
		}
	}
	return w.put(ctx, "ZADD", "index", index)
}

// links are those of jobs that wait for others. A job that ran and was to be canceled is told by Restore.
func (w *restoring) links(ctx context.Context) error {
	jobs, claims := w.r.Hashes["jobs"], w.r.Hashes["claims"]
	var words []string
	for member := range w.r.Sets["links"] {
		f := strings.SplitN(member, "\t", 3)
		if len(f) < 3 {
			continue
		}
		child, _, _ := strings.Cut(f[2], "\t")
		if _, there := jobs[child]; f[0] == "f" && there {
			words = append(words, "0", member)
		}
		if claim, there := claims[f[2]]; f[0] == "x" && there && strings.HasPrefix(claim, f[1]+"\t") {
			w.told = append(w.told, f[2])
		}
	}
	slices.Sort(w.told)
	return w.put(ctx, "ZADD", "links", words)
}

// times are those of delayed jobs, of reservations, and of parents that have ended.
func (w *restoring) times(ctx context.Context) error {
	jobs, times := w.r.Hashes["jobs"], w.r.Sets["times"]
	var words []string
	for member, ms := range times {
		what, id, _ := strings.Cut(member, "\t")
		record, there := jobs[id]
		if what == "j" && there && strings.HasPrefix(record, "l") || what == "u" && there || what == "f" {
			words = append(words, strconv.FormatInt(ms, 10), member)
		}
	}
	return w.put(ctx, "ZADD", "times", words)
}

func (w *restoring) hashes(ctx context.Context) error {
	unique := maps.Clone(w.r.Hashes["unique"])
	for id := range w.r.Hashes["claims"] {
		// One that ran may have let another of its fingerprint in. It has it again, if there is none.
		if record, ok := ParseRecord(w.r.Hashes["jobs"][id]); ok {
			if fingerprint := fieldOf(w.r.Hashes["jobs"][id], 7); fingerprint != "" {
				if field := record.Lane.Kind + "\t" + fingerprint; unique[field] == "" {
					unique[field] = id
				}
			}
		}
	}
	used, last := map[string]string{}, int64(0)
	for field, text := range w.r.Hashes["rates"] {
		if us := whole(text); us > w.r.Clock {
			used[field], last = text, max(last, us)
		}
	}
	for key, hash := range map[string]map[string]string{
		"settings": w.r.Hashes["settings"], "schedules": w.r.Hashes["schedules"], "unique": unique, "rates": used,
	} {
		if err := w.put(ctx, "HSET", key, flat(hash)); err != nil {
			return err
		}
	}
	if err := w.put(ctx, "ZADD", "ticks", scores(w.r.Sets["ticks"])); err != nil {
		return err
	}
	return w.expire(ctx, last/1000+1000, "rates")
}

// expire has keys go when nothing in them matters any more, as transitions do.
func (w *restoring) expire(ctx context.Context, atMs int64, keys ...string) error {
	for _, key := range keys {
		if err := w.call(ctx, "put", slices.Index(keyNames, key)+1, "PEXPIRE", max(atMs-w.nowMs, 1)); err != nil {
			return err
		}
	}
	return nil
}

func fieldOf(record string, n int) string {
	f := strings.SplitN(record, "\t", n+2)
	if len(f) < n+2 {
		return ""
	}
	return f[n]
}

// ended are the jobs whose result is kept, as long as they were to be.
func (w *restoring) ended(ctx context.Context) error {
	kept, until := map[string]string{}, map[string]int64{}
	last := int64(0)
	for id, text := range w.r.Hashes["ended"] {
		if ms := w.r.Sets["endings"][id]; ms > w.nowMs {
			kept[id], until[id] = text, ms
			last = max(last, ms)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	if err := w.put(ctx, "HSET", "ended", flat(kept)); err != nil {
		return err
	}
	if err := w.put(ctx, "ZADD", "endings", scores(until)); err != nil {
		return err
	}
	return w.expire(ctx, last+60000, "ended", "endings")
}

// producers are the last calls of those that may still repeat them: a quarter of an hour, a sequence for good.
func (w *restoring) producers(ctx context.Context) error {
	for name, last := range w.r.Producers {
		words := []any{len(w.keys), "SET", last.Text, "NX"}
		if !last.For {
			left := last.At/1000 + 900000 - w.nowMs
			if left <= 0 {
				continue
			}
			words = append(words, "PX", left)
		}
		one := *w
		one.Store = w.as(strings.TrimPrefix(name, "producer:"))
		if err := one.call(ctx, "put", words...); err != nil {
			return err
		}
	}
	return nil
}

func flat(hash map[string]string) []string {
	words := make([]string, 0, 2*len(hash))
	for field, value := range hash {
		words = append(words, field, value)
	}
	return words
}

func scores(set map[string]int64) []string {
	words := make([]string, 0, 2*len(set))
	for member, score := range set {
		words = append(words, strconv.FormatInt(score, 10), member)
	}
	return words
}
