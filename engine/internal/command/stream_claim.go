package command

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// noKeyOrGroup is the error for a group that has to exist, together with its stream.
func noKeyOrGroup(key, group []byte) error {
	return Error("NOGROUP No such key '" + string(cString(key)) + "' or consumer group '" + string(cString(group)) + "'")
}

// readGroup looks up the stream at argument 1 and the group at argument 2. The group is
// nil if there is no such one, or no stream.
func readGroup(c *Ctx) (stream *ds.Stream, group *ds.StreamGroup, err error) {
	c.Space.Reading = true // also where the group changes
	stream, found, err := Read[*ds.Stream](c, c.Args[1])
	if err != nil || !found {
		return nil, nil, err
	}
	return stream, stream.Group(c.Args[2]), nil
}

func xack(c *Ctx) error {
	_, group, err := readGroup(c)
	if err != nil {
		return err
	}
	if group == nil {
		c.Out.Int(0)
		return nil
	}
	ids, err := parseStreamIDs(c.Args[3:])
	if err != nil {
		return err
	}
	acknowledged := 0
	for _, id := range ids {
		acknowledged += oneIf(group.Ack(id))
	}
	if acknowledged > 0 {
		changedGroup(c, c.Args[1])
	}
	c.Out.Int(int64(acknowledged))
	return nil
}

// claim hands entries of a group to a consumer. It keeps what it claims, to be written
// when it is known how many there are.
type claim struct {
	c         *Ctx
	stream    *ds.Stream
	group     *ds.StreamGroup
	name      []byte
	consumer  *ds.StreamConsumer // nil until the first entry is claimed
	minIdleMs int64
	justIDs   bool
	claimed   []ds.StreamID

	propagated bool // a claim, and with it how far the group has read
}

// owner is the consumer, which comes into being with the first entry it gets.
func (cl *claim) owner() *ds.StreamConsumer {
	if cl.consumer == nil {
		cl.consumer = seenConsumer(cl.c, cl.c.Args[1], cl.group, cl.name)
	}
	return cl.consumer
}

// isIdle reports whether p has been pending for long enough to be claimed.
func (cl *claim) isIdle(p *ds.StreamPending) bool {
	return cl.minIdleMs == 0 || cl.c.NowMs()-p.DeliveredMs >= cl.minIdleMs
}

// forget drops a pending entry that is no longer in the stream.
func (cl *claim) forget(id ds.StreamID) {
	if p := cl.group.Pending().Find(id); p != nil {
		cl.propagate(p)
		cl.group.Ack(id)
		changedGroup(cl.c, cl.c.Args[1])
	}
}

// propagateClaim tells that p is pending as it is, which is said by a claim of it. Where
// its entry has been deleted, the claim forgets it.
func propagateClaim(c *Ctx, key, name []byte, group *ds.StreamGroup, p *ds.StreamPending) {
	c.Propagate(14).Word("XCLAIM").Bytes(key).Bytes(name).Word(p.Consumer.Name).Word("0").ID(p.ID).
		Word("TIME").Int(p.DeliveredMs).Word("RETRYCOUNT").Int(p.Deliveries).
		Word("FORCE").Word("JUSTID").Word("LASTID").ID(group.LastID)
}

// propagateGroupID tells how far a group has read.
func propagateGroupID(c *Ctx, key, name []byte, group *ds.StreamGroup) {
	c.Propagate(7).Word("XGROUP").Word("SETID").Bytes(key).Bytes(name).ID(group.LastID).
		Word("ENTRIESREAD").Int(group.EntriesRead)
}

// take hands p to the consumer. Its delivery is counted only if the entry itself is sent.
func (cl *claim) take(p *ds.StreamPending, deliveredMs int64) {
	cl.group.Transfer(p, cl.owner())
	p.DeliveredMs = deliveredMs
	if !cl.justIDs {
		p.Deliveries++
	}
	cl.claimed = append(cl.claimed, p.ID)
	changedGroup(cl.c, cl.c.Args[1])
}

// propagate tells of a claim, when all of it is done.
func (cl *claim) propagate(p *ds.StreamPending) {
	cl.propagated = true
	propagateClaim(cl.c, cl.c.Args[1], cl.c.Args[2], cl.group, p)
}

func (cl *claim) write() {
	out := cl.c.Out
	out.Array(len(cl.claimed))
	for _, id := range cl.claimed {
		if e, exists := cl.stream.Entry(id); exists && !cl.justIDs {
			writeStreamEntry(out, e)
		} else {
			writeStreamID(out, id)
		}
	}
}

// claimRequest is a call of XCLAIM.
type claimRequest struct {
	claim
	ids         []ds.StreamID
	lastID      ds.StreamID
	deliveredMs int64
	deliveries  int64 // -1 if it is not given
	force       bool
}

// parse reads the arguments: IDs up to the first that is none, then options.
func (r *claimRequest) parse(c *Ctx) error {
	r.name, r.deliveries, r.deliveredMs = c.Args[3], -1, -1
	var ok bool
	if r.minIdleMs, ok = ParseInt(c.Args[4]); !ok {
		return Error("ERR Invalid min-idle-time argument for XCLAIM")
	}
	r.minIdleMs = max(r.minIdleMs, 0)
	i := 5
	for ; i < len(c.Args); i++ {
		id, err := parseStreamID(c.Args[i], 0)
		if err != nil {
			break
		}
		r.ids = append(r.ids, id)
	}
	for i < len(c.Args) {
		taken, err := r.parseOption(c.Args[i:])
		if err != nil {
			return err
		}
		i += taken
	}
	if r.deliveredMs < 0 || r.deliveredMs > c.NowMs() {
		r.deliveredMs = c.NowMs()
	}
	return nil
}

// parseOption takes in the option at the front of args, and returns how many arguments it
// is.
func (r *claimRequest) parseOption(args [][]byte) (taken int, err error) {
	hasValue := len(args) >= 2
	var ok bool
	switch {
	case Is(args[0], "FORCE"):
		r.force = true
		return 1, nil
	case Is(args[0], "JUSTID"):
		r.justIDs = true
		return 1, nil
	case hasValue && Is(args[0], "IDLE"):
		if r.deliveredMs, ok = ParseInt(args[1]); !ok {
			return 0, Error("ERR Invalid IDLE option argument for XCLAIM")
		}
		r.deliveredMs = r.c.NowMs() - r.deliveredMs
	case hasValue && Is(args[0], "TIME"):
		if r.deliveredMs, ok = ParseInt(args[1]); !ok {
			return 0, Error("ERR Invalid TIME option argument for XCLAIM")
		}
	case hasValue && Is(args[0], "RETRYCOUNT"):
		if r.deliveries, ok = ParseInt(args[1]); !ok {
			return 0, Error("ERR Invalid RETRYCOUNT option argument for XCLAIM")
		}
	case hasValue && Is(args[0], "LASTID"):
		if r.lastID, err = parseStreamID(args[1], 0); err != nil {
			return 0, err
		}
	default:
		return 0, Error("ERR Unrecognized XCLAIM option '" + string(cString(args[0])) + "'")
	}
	return 2, nil
}

func xclaim(c *Ctx) error {
	stream, group, err := readGroup(c)
	switch {
	case err != nil:
		return err
	case group == nil:
		return noKeyOrGroup(c.Args[1], c.Args[2])
	}
	r := claimRequest{claim: claim{c: c, stream: stream, group: group}}
	if err := r.parse(c); err != nil {
		return err
	}
	c.PropagateNothing() // but what it comes to
	advanced := group.LastID.Less(r.lastID)
	if advanced {
		r.advance()
	}
	for _, id := range r.ids {
		r.claimOne(id)
	}
	if advanced && !r.propagated {
		propagateGroupID(c, c.Args[1], c.Args[2], group)
	}
	r.write()
	return nil
}

// advance moves the group to LASTID. A log tells of each entry that was read by a claim
// with the entry's own ID there; then the group has read one entry more.
func (r *claimRequest) advance() {
	if wasRead := len(r.ids) == 1 && r.ids[0] == r.lastID; wasRead && r.c.Space.Loading {
		r.stream.Advance(r.group, r.lastID)
	} else {
		r.group.LastID = r.lastID
	}
	changedGroup(r.c, r.c.Args[1])
}

func (r *claimRequest) claimOne(id ds.StreamID) {
	if _, exists := r.stream.Entry(id); !exists {
		r.forget(id)
		return
	}
	p := r.group.Pending().Find(id)
	switch {
	case p == nil && !r.force:
		return
	case p == nil:
		p = r.group.Assign(id, r.owner(), r.c.NowMs())
	case !r.isIdle(p):
		return
	}
	r.take(p, r.deliveredMs)
	if r.deliveries >= 0 {
		p.Deliveries = r.deliveries
	}
	r.propagate(p)
}

const (
	// autoclaimMost is the highest COUNT of XAUTOCLAIM: what Redis can multiply by 16
	// without an overflow.
	autoclaimMost = math.MaxInt64 / 16
	// autoclaimTries is how many pending entries it looks at for each that it may claim.
	autoclaimTries = 10
)

// autoclaimRequest is a call of XAUTOCLAIM.
type autoclaimRequest struct {
	claim
	start   ds.StreamID
	count   int64
	deleted []ds.StreamID
}

func (r *autoclaimRequest) parse(c *Ctx) (err error) {
	r.name, r.count = c.Args[3], 100
	var ok bool
	if r.minIdleMs, ok = ParseInt(c.Args[4]); !ok {
		return Error("ERR Invalid min-idle-time argument for XAUTOCLAIM")
	}
	r.minIdleMs = max(r.minIdleMs, 0)
	if r.start, err = parseStreamStart(c.Args[5]); err != nil {
		return err
	}
	for i := 6; i < len(c.Args); i++ {
		switch {
		case Is(c.Args[i], "COUNT") && i+1 < len(c.Args):
			i++
			if r.count, ok = ParseInt(c.Args[i]); !ok || r.count < 1 || r.count > autoclaimMost {
				return Error("ERR COUNT must be > 0")
			}
		case Is(c.Args[i], "JUSTID"):
			r.justIDs = true
		default:
			return ErrSyntax
		}
	}
	return nil
}

func xautoclaim(c *Ctx) error {
	r := autoclaimRequest{claim: claim{c: c}}
	if err := r.parse(c); err != nil {
		return err
	}
	var err error
	r.stream, r.group, err = readGroup(c)
	switch {
	case err != nil:
		return err
	case r.group == nil:
		return noKeyOrGroup(c.Args[1], c.Args[2])
	}
	c.PropagateNothing() // but what it comes to
	c.Out.Array(3)
	writeStreamID(c.Out, r.run())
	r.write()
	c.Out.Array(len(r.deleted))
	for _, id := range r.deleted {
		writeStreamID(c.Out, id)
	}
	return nil
}

// run claims what it may from start on, and returns the ID to go on from, or 0-0 if that
// was all.
func (r *autoclaimRequest) run() ds.StreamID {
	next := r.start
	p := r.group.Pending().AtOrAfter(next)
	for tries := r.count * autoclaimTries; p != nil && tries > 0 && r.count > 0; tries-- {
		id := p.ID
		if _, exists := r.stream.Entry(id); !exists {
			r.forget(id)
			r.deleted = append(r.deleted, id)
			r.count--
		} else if r.isIdle(p) {
			r.take(p, r.c.NowMs())
			r.propagate(p)
			r.count--
		}
		following, ok := id.Next()
		if !ok {
			return ds.StreamID{}
		}
		p = r.group.Pending().AtOrAfter(following)
	}
	if p == nil {
		return ds.StreamID{}
	}
	return p.ID
}
