package command

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// infoStream looks up the stream of XINFO, which has to exist.
func infoStream(c *Ctx) (*ds.Stream, error) {
	stream, found, err := Read[*ds.Stream](c, c.Args[2])
	if err == nil && !found {
		err = ErrNoSuchKey
	}
	return stream, err
}

// parseInfoStream reads the options of XINFO STREAM: FULL, and with it COUNT. A count of
// 0 is no limit.
func parseInfoStream(c *Ctx) (full bool, count int, err error) {
	const defaultCount = 10
	options := c.Args[3:]
	switch {
	case len(options) == 0:
		return false, 0, nil
	case len(options) == 1 && Is(options[0], "FULL"):
		return true, defaultCount, nil
	case len(options) != 3 || !Is(options[0], "FULL") || !Is(options[1], "COUNT"):
		return false, 0, WrongSubcommand("XINFO", c.Args[1])
	}
	n, ok := ParseInt(options[2])
	switch {
	case !ok:
		return false, 0, ErrNotInteger
	case n < 0:
		n = defaultCount
	case n == 0:
		n = math.MaxInt
	}
	return true, int(n), nil
}

func xinfoStream(c *Ctx) error {
	stream, err := infoStream(c)
	if err != nil {
		return err
	}
	full, count, err := parseInfoStream(c)
	if err != nil {
		return err
	}
	if full {
		c.Out.Map(9)
	} else {
		c.Out.Map(10)
	}
	writeIntFact(c, "length", int64(stream.Len()))
	writeIntFact(c, "radix-tree-keys", int64(stream.ChunkCount()))
	writeIntFact(c, "radix-tree-nodes", int64(stream.TreeNodes()))
	writeIDFact(c, "last-generated-id", stream.LastID)
	writeIDFact(c, "max-deleted-entry-id", stream.MaxDeletedID)
	writeIntFact(c, "entries-added", stream.EntriesAdded)
	writeIDFact(c, "recorded-first-entry-id", stream.FirstID())
	if full {
		writeStreamContent(c, stream, count)
	} else {
		writeStreamEnds(c, stream)
	}
	return nil
}

func writeIntFact(c *Ctx, name string, value int64) {
	c.Out.BulkString(name)
	c.Out.Int(value)
}

func writeIDFact(c *Ctx, name string, id ds.StreamID) {
	c.Out.BulkString(name)
	writeStreamID(c.Out, id)
}

// writeStreamEnds writes the short form's facts: how many groups there are, and the first
// and the last entry.
func writeStreamEnds(c *Ctx, stream *ds.Stream) {
	writeIntFact(c, "groups", int64(stream.GroupCount()))
	for _, end := range []struct {
		name string
		id   ds.StreamID
	}{{"first-entry", stream.FirstID()}, {"last-entry", stream.LastEntryID()}} {
		c.Out.BulkString(end.name)
		if e, ok := stream.Entry(end.id); ok {
			writeStreamEntry(c.Out, e)
		} else {
			c.Out.Null()
		}
	}
}

// writeStreamContent writes the long form's facts: up to count of the entries, of what is
// pending in each group, and of what is pending for each consumer.
func writeStreamContent(c *Ctx, stream *ds.Stream, count int) {
	c.Out.BulkString("entries")
	writeStreamRange(c, stream, ds.StreamID{}, ds.MaxStreamID, count, false)
	c.Out.BulkString("groups")
	c.Out.Array(stream.GroupCount())
	for name, group := range stream.Groups() {
		c.Out.Map(7)
		c.Out.BulkString("name")
		c.Out.BulkString(name)
		writeReadFacts(c, stream, group)
		writeIntFact(c, "pel-count", int64(group.Pending().Len()))
		writePendingFact(c, group.Pending(), count, true)
		c.Out.BulkString("consumers")
		c.Out.Array(group.ConsumerCount())
		for _, consumer := range group.Consumers() {
			c.Out.Map(4)
			c.Out.BulkString("name")
			c.Out.BulkString(consumer.Name)
			writeIntFact(c, "seen-time", consumer.SeenMs)
			writeIntFact(c, "pel-count", int64(consumer.Pending().Len()))
			writePendingFact(c, consumer.Pending(), count, false)
		}
	}
}

// writeReadFacts writes how far a group has read.
func writeReadFacts(c *Ctx, stream *ds.Stream, group *ds.StreamGroup) {
	writeIDFact(c, "last-delivered-id", group.LastID)
	c.Out.BulkString("entries-read")
	if group.EntriesRead == ds.UnknownReads {
		c.Out.Null()
	} else {
		c.Out.Int(group.EntriesRead)
	}
	c.Out.BulkString("lag")
	if lag, ok := stream.Lag(group); ok {
		c.Out.Int(lag)
	} else {
		c.Out.Null()
	}
}

// writePendingFact writes the first count pending entries, each with its ID, its consumer
// if withConsumer, the time and the number of its deliveries.
func writePendingFact(c *Ctx, pending *ds.PendingList, count int, withConsumer bool) {
	c.Out.BulkString("pending")
	count = min(count, pending.Len())
	c.Out.Array(count)
	if count == 0 {
		return
	}
	for p := range pending.From(ds.StreamID{}) {
		c.Out.Array(3 + oneIf(withConsumer))
		writeStreamID(c.Out, p.ID)
		if withConsumer {
			c.Out.BulkString(p.Consumer.Name)
		}
		c.Out.Int(p.DeliveredMs)
		c.Out.Int(p.Deliveries)
		if count--; count == 0 {
			return
		}
	}
}

func xinfoGroups(c *Ctx) error {
	stream, err := infoStream(c)
	if err != nil {
		return err
	}
	c.Out.Array(stream.GroupCount())
	for name, group := range stream.Groups() {
		c.Out.Map(6)
		c.Out.BulkString("name")
		c.Out.BulkString(name)
		writeIntFact(c, "consumers", int64(group.ConsumerCount()))
		writeIntFact(c, "pending", int64(group.Pending().Len()))
		writeReadFacts(c, stream, group)
	}
	return nil
}

func xinfoConsumers(c *Ctx) error {
	stream, err := infoStream(c)
	if err != nil {
		return err
	}
	group := stream.Group(c.Args[3])
	if group == nil {
		return noSuchGroup(c.Args[2], c.Args[3])
	}
	c.Out.Array(group.ConsumerCount())
	for _, consumer := range group.Consumers() {
		c.Out.Map(3)
		c.Out.BulkString("name")
		c.Out.BulkString(consumer.Name)
		writeIntFact(c, "pending", int64(consumer.Pending().Len()))
		writeIntFact(c, "idle", max(c.NowMs()-consumer.SeenMs, 0))
	}
	return nil
}

var xinfoHelp = HelpSpec("XINFO", "5.0.0",
	"CONSUMERS <key> <groupname>",
	"    Show consumers of <groupname>.",
	"GROUPS <key>",
	"    Show the stream consumer groups.",
	"STREAM <key> [FULL [COUNT <count>]",
	"    Show information about the stream.",
)

var xinfoSpecs = []Spec{
	{
		Name: "consumers", Arity: 4, Flags: ReadOnly, Keys: Key(2), Since: "5.0.0",
		Summary: "Lists the consumers of a group.", Complexity: "O(N*log(N)) for N consumers.", Run: xinfoConsumers,
	},
	{
		Name: "groups", Arity: 3, Flags: ReadOnly, Keys: Key(2), Since: "5.0.0",
		Summary: "Lists the consumer groups of a stream.", Complexity: "O(N*log(N)) for N groups.", Run: xinfoGroups,
	},
	xinfoHelp,
	{
		Name: "stream", Arity: -3, Flags: ReadOnly, Keys: Key(2), Since: "5.0.0",
		Summary:    "Tells everything about a stream, and with FULL what is in it.",
		Complexity: "O(N/100) for N entries, and with FULL O(M) for what is returned.", Run: xinfoStream,
	},
}

var streamInfoSpecs = []Spec{
	{
		Name: "xinfo", Arity: -2, Group: "stream", Since: "5.0.0",
		Summary: "A container for commands that tell of streams.", Complexity: "that of the subcommand", Sub: xinfoSpecs,
	},
}
