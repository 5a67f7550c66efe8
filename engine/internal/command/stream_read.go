package command

import (
	"math"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// XREAD and XREADGROUP take, from each of several streams, the entries after an ID. For a
// group there are two ways: with > an entry goes to one consumer of the group, which has
// to acknowledge it; with an ID it is what the consumer was given before and has not
// acknowledged.
//
// A call that has to wait is run again when one of its keys is touched, and then differs:
//
//   - $ means the last ID at the time of the first run, so it is put in its place in the
//     request that is run again.
//   - Only the key that was touched is read, and at most a thousand entries unless COUNT
//     says otherwise.
//   - The client is served if the stream's last ID is above its own, even if there is no
//     entry any more; on the first run there must be one.
//   - A group that has gone, or a key, is told to whoever waits for it.

const (
	unlimitedEntries = math.MaxInt
	wokenEntries     = 1000

	errStreamGone Error = "UNBLOCKED the stream key no longer exists"
	errGroupGone  Error = "NOGROUP the consumer group this client was blocked on no longer exists"
)

// readRequest is a call of XREAD or XREADGROUP.
type readRequest struct {
	grouped         bool // XREADGROUP
	group, consumer []byte
	blocks          bool
	timeoutUs       int64
	count           int // 0 is no limit
	noAck           bool
	streamsAt       int // the argument where the keys begin
	keys, ids       [][]byte
}

func parseRead(c *Ctx, grouped bool) (r readRequest, err error) {
	r.grouped = grouped
	for i := 1; i < len(c.Args); {
		taken, err := r.parseOption(c, i)
		if err != nil {
			return r, err
		}
		i += taken
	}
	switch {
	case r.streamsAt == 0:
		return r, ErrSyntax
	case grouped && r.group == nil:
		return r, Error("ERR Missing GROUP option for XREADGROUP")
	}
	return r, nil
}

// parseOption takes in the option at argument i, and returns how many arguments it is.
func (r *readRequest) parseOption(c *Ctx, i int) (taken int, err error) {
	rest := c.Args[i:]
	switch {
	case len(rest) >= 2 && Is(rest[0], "BLOCK"):
		return 2, r.parseBlock(c, rest[1])
	case len(rest) >= 2 && Is(rest[0], "COUNT"):
		count, ok := ParseInt(rest[1])
		if !ok {
			return 0, ErrNotInteger
		}
		r.count = int(max(count, 0))
		return 2, nil
	case len(rest) >= 2 && Is(rest[0], "STREAMS"):
		return len(rest), r.parseStreams(i+1, rest[1:])
	case len(rest) >= 3 && Is(rest[0], "GROUP"):
		if !r.grouped {
			return 0, Error("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
		}
		r.group, r.consumer = rest[1], rest[2]
		return 3, nil
	case Is(rest[0], "NOACK"):
		if !r.grouped {
			return 0, Error("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
		}
		r.noAck = true
		return 1, nil
	default:
		return 0, ErrSyntax
	}
}

func (r *readRequest) parseBlock(c *Ctx, arg []byte) error {
	if c.InScript {
		return Error("ERR " + string(cString(c.Args[0])) + " command is not allowed with BLOCK option from scripts")
	}
	timeoutMs, ok := ParseInt(arg)
	switch {
	case !ok:
		return Error("ERR timeout is not an integer or out of range")
	case timeoutMs < 0:
		return ErrNegative
	}
	r.blocks = true
	r.timeoutUs = min(timeoutMs, math.MaxInt64/2000) * 1000
	return nil
}

// parseStreams reads the keys and as many IDs after them, all the rest of the arguments.
func (r *readRequest) parseStreams(at int, args [][]byte) error {
	if len(args)%2 != 0 {
		return Error("ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.")
	}
	r.streamsAt = at
	r.keys, r.ids = args[:len(args)/2], args[len(args)/2:]
	return nil
}

// streamSource is one stream to be read: the entries after an ID, or what is pending.
type streamSource struct {
	key     []byte
	stream  *ds.Stream // nil if there is none
	group   *ds.StreamGroup
	after   ds.StreamID
	pending bool // instead of new entries
}

// sources looks up all streams and reads all IDs. It finds everything that is wrong, and
// changes nothing.
func (r *readRequest) sources(c *Ctx) ([]streamSource, error) {
	sources := make([]streamSource, len(r.keys))
	for i, key := range r.keys {
		stream, _, err := Read[*ds.Stream](c, key)
		if err != nil {
			return nil, err
		}
		sources[i] = streamSource{key: key, stream: stream}
		s := &sources[i]
		if r.grouped {
			if s.stream != nil {
				s.group = stream.Group(r.group)
			}
			if s.group == nil {
				return nil, Error("NOGROUP No such key '" + string(cString(key)) + "' or consumer group '" +
					string(cString(r.group)) + "' in XREADGROUP with GROUP option")
			}
			err = s.parseGroupID(r.ids[i])
		} else {
			err = s.parseID(r.ids[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return sources, nil
}

func (s *streamSource) parseID(arg []byte) (err error) {
	switch string(arg) {
	case "$":
		if s.stream != nil {
			s.after = s.stream.LastID
		}
		return nil
	case ">":
		return Error("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")
	}
	s.after, err = parseStreamID(arg, 0)
	return err
}

func (s *streamSource) parseGroupID(arg []byte) (err error) {
	switch string(arg) {
	case "$":
		return Error("ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of " +
			"this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would " +
			"just return an empty result set.")
	case ">":
		return nil
	}
	s.after, err = parseStreamID(arg, 0)
	s.pending = s.after != ds.MaxStreamID // which Redis takes for >
	return err
}

// sourceOf is the source for a key that was touched while the client waited; ok is false
// if there is nothing to wake up for. A key given twice counts where it is first.
func (r *readRequest) sourceOf(c *Ctx, key []byte) (s streamSource, ok bool, err error) {
	stream, found, err := Read[*ds.Stream](c, key)
	if err != nil || !found {
		if r.grouped {
			return s, false, errStreamGone
		}
		return s, false, nil
	}
	s = streamSource{key: key, stream: stream}
	if r.grouped {
		if s.group = stream.Group(r.group); s.group == nil {
			return s, false, errGroupGone
		}
		s.after = s.group.LastID
	} else {
		i := slices.IndexFunc(r.keys, func(k []byte) bool { return string(k) == string(key) })
		if err := s.parseID(r.ids[i]); err != nil {
			return s, false, err
		}
	}
	return s, s.after.Less(stream.LastID), nil
}

// hasNews reports whether there is something to read. For new entries of a group it sets
// where they begin, which may have moved since another source of this call was read.
func (s *streamSource) hasNews() bool {
	if s.stream == nil || s.pending {
		return s.pending
	}
	if s.group != nil {
		s.after = s.group.LastID
	}
	return s.stream.Len() > 0 && s.after.Less(s.stream.LastEntryID())
}

// reading is what was taken from a source and is to be written.
type reading struct {
	streamSource
	from    ds.StreamID
	count   int
	history []*ds.StreamPending
}

// take reads a source: it counts the entries and hands them to the consumer.
func (r *readRequest) take(c *Ctx, s streamSource, count int) reading {
	taken := reading{streamSource: s}
	taken.from, _ = s.after.Next()
	if s.group == nil {
		taken.count = s.stream.Count(taken.from, ds.MaxStreamID, count)
		return taken
	}
	changedGroup(c, s.key)
	c.PropagateNothing() // but what it comes to
	if r.noAck && s.group.Consumer(r.consumer) == nil {
		c.Propagate(5).Word("XGROUP").Word("CREATECONSUMER").Bytes(s.key).Bytes(r.group).Bytes(r.consumer)
	}
	consumer := seenConsumer(c, s.key, s.group, r.consumer)
	if s.pending {
		for p := range consumer.Pending().From(taken.from) {
			if len(taken.history) == count {
				break
			}
			if _, exists := s.stream.Entry(p.ID); exists {
				p.DeliveredMs = c.NowMs()
				p.Deliveries++
			}
			taken.history = append(taken.history, p)
		}
		return taken
	}
	for e := range s.stream.Range(taken.from, ds.MaxStreamID) {
		if taken.count == count {
			break
		}
		s.stream.Advance(s.group, e.ID)
		if !r.noAck {
			p := s.group.Assign(e.ID, consumer, c.NowMs())
			propagateClaim(c, s.key, r.group, s.group, p)
		}
		taken.count++
	}
	if r.noAck && s.after.Less(s.group.LastID) {
		propagateGroupID(c, s.key, r.group, s.group)
	}
	return taken
}

// seenConsumer is a consumer of a group of the stream under key. It does something now,
// and is made if it does not exist.
func seenConsumer(c *Ctx, key []byte, group *ds.StreamGroup, name []byte) *ds.StreamConsumer {
	consumer := group.Consumer(name)
	if consumer == nil {
		changedGroup(c, key, eventConsumerCreated)
		return group.CreateConsumer(name, c.NowMs())
	}
	consumer.SeenMs = c.NowMs()
	return consumer
}

func (t *reading) write(c *Ctx) {
	if c.Out.Proto != 3 {
		c.Out.Array(2)
	}
	c.Out.Bulk(t.key)
	if !t.pending {
		writeStreamRange(c, t.stream, t.from, ds.MaxStreamID, t.count, false)
		return
	}
	c.Out.Array(len(t.history))
	for _, p := range t.history {
		if e, exists := t.stream.Entry(p.ID); exists {
			writeStreamEntry(c.Out, e)
			continue
		}
		c.Out.Array(2)
		writeStreamID(c.Out, p.ID)
		c.Out.NullArray()
	}
}

// xread makes XREAD and XREADGROUP.
func xread(grouped bool) func(c *Ctx) error {
	return func(c *Ctx) error {
		c.Space.Reading = true // for a group, too
		r, err := parseRead(c, grouped)
		if err != nil {
			return err
		}
		if c.Ready != nil {
			return r.runWoken(c)
		}
		sources, err := r.sources(c)
		if err != nil {
			return err
		}
		var taken []reading
		for _, s := range sources {
			c.DB.Inspect(s.key, c.NowMs()) // Redis looks twice, and its events and counters show it
			if s.hasNews() {
				taken = append(taken, r.take(c, s, r.limit(unlimitedEntries)))
			}
		}
		if len(taken) == 0 {
			return r.wait(c, sources)
		}
		writeReadings(c, taken)
		return nil
	}
}

// runWoken runs a call that has waited until c.Ready was touched.
func (r *readRequest) runWoken(c *Ctx) error {
	s, ok, err := r.sourceOf(c, c.Ready)
	switch {
	case err != nil:
		return err
	case !ok:
		return r.wait(c, nil)
	}
	writeReadings(c, []reading{r.take(c, s, r.limit(wokenEntries))})
	return nil
}

// limit is how many entries to read of one stream, where COUNT does not say it.
func (r *readRequest) limit(otherwise int) int {
	if r.count > 0 {
		return r.count
	}
	return otherwise
}

func writeReadings(c *Ctx, taken []reading) {
	if c.Out.Proto == 3 {
		c.Out.Map(len(taken))
	} else {
		c.Out.Array(len(taken))
	}
	for i := range taken {
		taken[i].write(c)
	}
}

// wait blocks on the keys if the call asks for that. What is run again has the IDs of
// sources in the place of $.
func (r *readRequest) wait(c *Ctx, sources []streamSource) error {
	if !r.blocks {
		c.Out.NullArray()
		return nil
	}
	again := c.Args
	for i := range sources {
		if string(r.ids[i]) == "$" {
			if &again[0] == &c.Args[0] {
				again = slices.Clone(c.Args)
			}
			again[r.streamsAt+len(r.keys)+i] = []byte(sources[i].after.String())
		}
	}
	return c.Await(Block{
		Keys: r.keys, TimeoutUs: r.timeoutUs, OnTimeout: (*resp.Writer).NullArray,
		Again: again, Bound: r.grouped,
	})
}

// readKeys finds the keys of XREAD and XREADGROUP: the first half of what comes after the
// word STREAMS. It is looked for from an argument on that spares the names of a group and
// its consumer.
func readKeys(from int) func(args [][]byte) []int {
	return func(args [][]byte) []int {
		for i := from; i < len(args); i++ {
			if !Is(args[i], "STREAMS") {
				continue
			}
			positions := make([]int, (len(args)-i-1)/2)
			for j := range positions {
				positions[j] = i + 1 + j
			}
			return positions
		}
		return nil
	}
}

var streamReadSpecs = []Spec{
	{
		Name: "xread", Arity: -4, Flags: ReadOnly | Blocking | MovableKeys, FindKeys: readKeys(1), Group: "stream", Since: "5.0.0",
		Summary:    "Returns the entries of several streams after an ID each, and waits if there are none and it is asked to.",
		Complexity: "O(log(N)+M) for each stream, N being the number of its entries and M that of those returned.",
		Run:        xread(false),
	},
	{
		Name: "xreadgroup", Arity: -7, Flags: Write | Blocking | MovableKeys, FindKeys: readKeys(4), Group: "stream", Since: "5.0.0",
		Summary:    "Hands new entries of several streams to a consumer of a group, or returns again what it has not acknowledged.",
		Complexity: "O(log(N)+M) for each stream, N being the number of its entries and M that of those returned.",
		Run:        xread(true),
	},
}
