package command

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// Streams. One file per concept:
//
//	stream.go          entries: add, delete, count; the stream's own counters
//	stream_id.go       how IDs are read and entries are written
//	stream_trim.go     the options that trim, and XTRIM
//	stream_range.go    ranges by ID
//	stream_read.go     what comes after an ID, with waiting; for a group, too
//	stream_group.go    consumer groups: make, move, remove
//	stream_claim.go    acknowledge, and take over from another consumer
//	stream_pending.go  what is not acknowledged
//	stream_info.go     everything about a stream, told
//
// A stream may be empty: it remembers its last ID and has groups.
//
// Other than elsewhere there are three ways to report a change. What adds entries is a
// Touch. What removes some is a Change, since nobody waits for it, and a client that was
// woken could see that the last ID is above its own and answer with nothing. And what only
// concerns a group is no change to those who watch the key: see changedGroup.

const (
	errXaddZeroID  Error = "ERR The ID specified in XADD must be greater than 0-0"
	errXaddLowID   Error = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
	errXaddNoID    Error = "ERR The stream has exhausted the last possible ID, unable to add more items"
	errXaddTooLong Error = "ERR Elements are too large to be stored"
)

// changedGroup reports a change of a group, or of counters, of the stream under key.
func changedGroup(c *Ctx, key []byte, events ...keyspace.Event) {
	c.Space.Dirty++
	for _, event := range events {
		c.DB.Notify(event, key)
	}
}

// addRequest is a call of XADD.
type addRequest struct {
	trim     trimOptions
	noCreate bool
	id       ds.StreamID
	idAt     int  // the argument
	idGiven  bool // not *
	seqGiven bool // not ms-*
	pairs    [][]byte
}

func parseXadd(c *Ctx) (r addRequest, err error) {
	args, i := c.Args, 2
	r.trim.exact = c.Space.Loading
	for ; i < len(args); i++ {
		if string(args[i]) == "*" {
			break
		}
		taken, err := r.trim.parse(args, i)
		if err != nil {
			return r, err
		}
		if taken > 0 {
			i += taken - 1
			continue
		}
		if Is(args[i], "NOMKSTREAM") {
			r.noCreate = true
			continue
		}
		if r.id, r.seqGiven, err = parseStreamParts(args[i], 0); err != nil {
			return r, err
		}
		r.idGiven = true
		break
	}
	if err := r.trim.check(&c.Space.Limits); err != nil {
		return r, err
	}
	r.idAt = i
	if r.pairs = args[min(i+1, len(args)):]; len(r.pairs) < 2 || len(r.pairs)%2 != 0 {
		return r, Error("ERR wrong number of arguments for 'xadd' command")
	}
	if r.idGiven && r.seqGiven && r.id.IsZero() {
		return r, errXaddZeroID
	}
	return r, nil
}

// nextID is the ID of the entry to be added.
func (r *addRequest) nextID(last ds.StreamID, nowMs int64) (ds.StreamID, error) {
	id := r.id
	switch {
	case !r.idGiven && uint64(nowMs) > last.Ms:
		id = ds.StreamID{Ms: uint64(nowMs)}
	case !r.idGiven:
		id, _ = last.Next() // the clock stood still or went back
	case !r.seqGiven && id.Ms == last.Ms && last.Seq == math.MaxUint64:
		return id, errXaddTooLong // the text that 7.0 has for it
	case !r.seqGiven && id.Ms == last.Ms:
		id.Seq = last.Seq + 1
	}
	if !last.Less(id) {
		return id, errXaddLowID
	}
	return id, nil
}

func xadd(c *Ctx) error {
	r, err := parseXadd(c)
	if err != nil {
		return err
	}
	key := c.Args[1]
	stream, found, err := Read[*ds.Stream](c, key)
	if err != nil {
		return err
	}
	if !found && r.noCreate {
		c.Out.Null()
		return nil
	}
	if !found {
		stream = ds.NewStream()
	}
	if stream.LastID == ds.MaxStreamID {
		return errXaddNoID
	}
	id, err := r.nextID(stream.LastID, c.NowMs())
	if err != nil {
		return err
	}
	if !stream.Append(id, r.pairs) {
		return errXaddTooLong
	}
	if !found {
		c.DB.Put(key, stream, c.NowMs())
	}
	c.Touch(key, eventXAdd)
	if r.trim.given && stream.Trim(r.trim.StreamTrim) > 0 {
		c.DB.Notify(eventXTrim, key)
	}
	if c.Journal != nil {
		r.propagate(c, stream, id)
	}
	writeStreamID(c.Out, id)
	return nil
}

// propagate writes down the ID that the entry has got.
func (r *addRequest) propagate(c *Ctx, stream *ds.Stream, id ds.StreamID) {
	r.trim.propagate(c, stream, func(i int, request Request) bool {
		chosen := i == r.idAt && (!r.idGiven || !r.seqGiven)
		if chosen {
			request.ID(id)
		}
		return chosen
	})
}

func xlen(c *Ctx) error {
	stream, found, err := Read[*ds.Stream](c, c.Args[1])
	if err != nil {
		return err
	}
	length := 0
	if found {
		length = stream.Len()
	}
	c.Out.Int(int64(length))
	return nil
}

func xdel(c *Ctx) error {
	stream, found, err := Read[*ds.Stream](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Int(0)
		return nil
	}
	ids, err := parseStreamIDs(c.Args[2:])
	if err != nil {
		return err
	}
	deleted := 0
	for _, id := range ids {
		deleted += oneIf(stream.Delete(id))
	}
	if deleted > 0 {
		c.Change(c.Args[1], eventXDel)
	}
	c.Out.Int(int64(deleted))
	return nil
}

// setIDRequest is a call of XSETID.
type setIDRequest struct {
	id, maxDeleted ds.StreamID
	added          int64 // -1 if it is not given
}

func parseXsetid(args [][]byte) (r setIDRequest, err error) {
	r.added = -1
	if r.id, err = parseStreamID(args[2], 0); err != nil {
		return r, err
	}
	for i := 3; i < len(args); i += 2 {
		if i+1 == len(args) {
			return r, ErrSyntax
		}
		switch value := args[i+1]; {
		case Is(args[i], "ENTRIESADDED"):
			added, ok := ParseInt(value)
			if !ok {
				return r, ErrNotInteger
			}
			if added < 0 {
				return r, Error("ERR entries_added must be positive")
			}
			r.added = added
		case Is(args[i], "MAXDELETEDID"):
			if r.maxDeleted, err = parseStreamID(value, 0); err != nil {
				return r, err
			}
			if r.id.Less(r.maxDeleted) {
				return r, Error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
			}
		default:
			return r, ErrSyntax
		}
	}
	return r, nil
}

// check makes sure that the stream's counters stay true to its entries.
func (r *setIDRequest) check(stream *ds.Stream) error {
	switch {
	case stream.Len() == 0:
		return nil
	case r.id.Less(stream.LastEntryID()):
		return Error("ERR The ID specified in XSETID is smaller than the target stream top item")
	case r.added != -1 && int64(stream.Len()) > r.added:
		return Error("ERR The entries_added specified in XSETID is smaller than the target stream length")
	default:
		return nil
	}
}

func xsetid(c *Ctx) error {
	r, err := parseXsetid(c.Args)
	if err != nil {
		return err
	}
	stream, found, err := Read[*ds.Stream](c, c.Args[1])
	switch {
	case err != nil:
		return err
	case !found:
		return ErrNoSuchKey
	}
	if err := r.check(stream); err != nil {
		return err
	}
	stream.LastID = r.id
	if r.added != -1 {
		stream.EntriesAdded = r.added
	}
	if !r.maxDeleted.IsZero() {
		stream.MaxDeletedID = r.maxDeleted
	}
	changedGroup(c, c.Args[1], eventXSetID) // the entries are what they were
	c.Out.SimpleString("OK")
	return nil
}

var streamSpecs = []Spec{
	{
		Name: "xadd", Arity: -5, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary:    "Adds an entry at the end of a stream, and trims the front if asked to. Creates the key if it does not exist.",
		Complexity: "O(1), and O(N) for trimming N entries.", Run: xadd,
	},
	{
		Name: "xdel", Arity: -3, Flags: Write | Fast, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary: "Removes entries by their IDs, and returns how many there were.", Complexity: "O(log(N)) for each ID.", Run: xdel,
	},
	{
		Name: "xlen", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary: "Returns the number of entries.", Complexity: "O(1)", Run: xlen,
	},
	{
		Name: "xrange", Arity: -4, Flags: ReadOnly, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary:    "Returns the entries between two IDs.",
		Complexity: rangeOfStreamComplexity, Run: xrange(false),
	},
	{
		Name: "xrevrange", Arity: -4, Flags: ReadOnly, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary:    "Returns the entries between two IDs, the last one first.",
		Complexity: rangeOfStreamComplexity, Run: xrange(true),
	},
	{
		Name: "xsetid", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary: "Sets a stream's last ID and other counters. Meant for replication.", Complexity: "O(1)", Run: xsetid,
	},
	{
		Name: "xtrim", Arity: -4, Flags: Write, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary:    "Removes entries from the front, down to a length or up to an ID.",
		Complexity: "O(N) for removing N entries, with a small factor.", Run: xtrim,
	},
}
