package command

import (
	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// What a change to the data is, for an append-only file or a replica: requests that make
// the same change to the same data, whenever they are run.
//
// Most commands are that themselves. After a handler has changed something, its call is
// written down as it came (Settle). A handler says otherwise where a call depends on
// chance, on the time, or on who waits: Propagate begins a request that stands for the
// call, PropagateNothing says that there is none. So each rule stands in the handler of
// its command.
//
// What belongs together is a group: a transaction, a script, or a call and the expired
// keys that it came across. A group of more than one request goes between MULTI and
// EXEC. Package exec says where a group ends.

// Journal collects requests. The zero value is ready for use.
type Journal struct {
	group           resp.Writer // the requests of the group that is not ended
	count           int
	removals        int // of its requests; see Remove
	firstDB, lastDB int

	ended  resp.Writer // all groups since Take
	taken  []byte
	wrote  bool // there is more among them than removals; see Wrote
	told   bool // a SELECT has been written
	toldDB int

	// What is for replicas alone: its places in group and in ended.
	groupAside, endedAside []span
}

// span is a piece of what was written.
type span struct{ from, to int }

// keepBytes is how large a buffer of a Journal may be to be used again.
const keepBytes = 1 << 20

// Begin begins a request of so many words in a database. A nil Journal takes it and
// writes nothing.
func (j *Journal) Begin(db, words int) Request {
	if j == nil {
		return Request{}
	}
	if j.count == 0 {
		j.firstDB = db
	} else if db != j.lastDB {
		writeSelect(&j.group, db)
	}
	j.lastDB = db
	j.count++
	j.group.Array(words)
	return Request{&j.group}
}

// Remove writes down that a key has gone by itself: it has expired, or was evicted.
func (j *Journal) Remove(db int, key []byte, later bool) {
	j.Begin(db, 2).Word(DelWord(later)).Bytes(key)
	j.removals++
}

// Wrote reports whether anything that has ended since the last call was asked for, and did not go by itself.
func (j *Journal) Wrote() bool {
	wrote := j.wrote
	j.wrote = false
	return wrote
}

// Call writes a request down as it was called.
func (j *Journal) Call(db int, args [][]byte) {
	request := j.Begin(db, len(args))
	for _, arg := range args {
		request.Bytes(arg)
	}
}

// CallAside is Call for what replicas are to hear, and no file is to have.
func (j *Journal) CallAside(db int, args [][]byte) {
	request := j.Begin(db, len(args))
	from := j.group.Len() - headBytes(len(args))
	for _, arg := range args {
		request.Bytes(arg)
	}
	j.groupAside = append(j.groupAside, span{from, j.group.Len()})
}

// headBytes is how long the first line of a request is.
func headBytes(words int) int {
	n := len("*0\r\n")
	for ; words > 9; words /= 10 {
		n++
	}
	return n
}

// End ends a group, and reports whether there was one. Its requests are one transaction if they
// belong together.
func (j *Journal) End(together bool) bool {
	if j.count == 0 {
		return false
	}
	if !j.told || j.toldDB != j.firstDB {
		writeSelect(&j.ended, j.firstDB)
	}
	j.told, j.toldDB = true, j.lastDB
	j.wrote = j.wrote || j.count > j.removals
	together = together && j.count > 1
	if together {
		writeRequest(&j.ended, "MULTI")
	}
	for _, s := range j.groupAside {
		j.endedAside = append(j.endedAside, span{j.ended.Len() + s.from, j.ended.Len() + s.to})
	}
	j.groupAside = j.groupAside[:0]
	switch {
	case together:
		j.ended.Raw(j.group.Bytes())
		writeRequest(&j.ended, "EXEC")
	case j.ended.Len() == 0:
		j.ended, j.group = j.group, j.ended
	default:
		j.ended.Raw(j.group.Bytes())
	}
	j.count, j.removals = 0, 0
	if j.group.Reset(); cap(j.group.Bytes()) > keepBytes {
		j.group.Swap(nil)
	}
	return true
}

// Waiting is how many bytes of ended groups were not taken.
func (j *Journal) Waiting() int { return j.ended.Len() }

// Take returns the groups that have ended since the last Take, as a file is to have them and as
// replicas are, which is nearly always the same; nil if there are none. They are valid until the
// next one, and more than keepBytes of log are the caller's.
func (j *Journal) Take() (log, stream []byte) {
	if j.ended.Len() == 0 {
		return nil, nil
	}
	if cap(j.taken) > keepBytes {
		j.taken = nil
	}
	j.taken = j.ended.Swap(j.taken)
	if len(j.endedAside) == 0 {
		return j.taken, j.taken
	}
	at := 0
	for _, s := range j.endedAside {
		log = append(log, j.taken[at:s.from]...)
		at = s.to
	}
	log = append(log, j.taken[at:]...)
	j.endedAside = j.endedAside[:0]
	return log, j.taken
}

// DB is the database that was selected last; 0 if the next group says which.
func (j *Journal) DB() int {
	if !j.told {
		return 0
	}
	return j.toldDB
}

// Anew makes the next group begin with a SELECT, for a reader who has not seen what came
// before.
func (j *Journal) Anew() { j.told = false }

func writeSelect(out *resp.Writer, db int) {
	out.Array(2)
	out.BulkString("SELECT")
	out.BulkInt(int64(db))
}

func writeRequest(out *resp.Writer, word string) {
	out.Array(1)
	out.BulkString(word)
}

// Request is a request that is being written, word by word: as many as Begin was told.
// The zero value writes nothing.
type Request struct{ out *resp.Writer }

// Word writes a word of text.
func (r Request) Word(text string) Request {
	if r.out != nil {
		r.out.BulkString(text)
	}
	return r
}

// Bytes writes a word of any bytes.
func (r Request) Bytes(b []byte) Request {
	if r.out != nil {
		r.out.Bulk(b)
	}
	return r
}

// Int writes a number.
func (r Request) Int(n int64) Request {
	if r.out != nil {
		r.out.BulkInt(n)
	}
	return r
}

// ID writes the ID of a stream's entry.
func (r Request) ID(id ds.StreamID) Request {
	if r.out != nil {
		writeStreamID(r.out, id)
	}
	return r
}

// Propagate begins a request of so many words that is propagated in the place of the
// call. There may be several; they are run in their order.
func (c *Ctx) Propagate(words int) Request {
	c.rewritten = true
	return c.Journal.Begin(c.DB.Index, words)
}

// PropagateNothing says that the call itself is not propagated.
func (c *Ctx) PropagateNothing() { c.rewritten = true }

// PropagateDel propagates the call as the deletion of a key; later says whether its
// memory may be freed later, which is all that UNLINK means.
func (c *Ctx) PropagateDel(key []byte, later bool) {
	c.Propagate(2).Word(DelWord(later)).Bytes(key)
}

// DelWord is the command that deletes a key.
func DelWord(later bool) string {
	if later {
		return "UNLINK"
	}
	return "DEL"
}

// Settle ends what a call propagates: the call as it came, if it has changed something
// and its handler has not said otherwise.
func (c *Ctx) Settle(changed bool) {
	if changed && !c.rewritten && c.Journal != nil {
		c.Journal.Call(c.DB.Index, c.Args)
	}
	c.rewritten = false
}
