package command

import "github.com/signalbox-io/signalbox/engine/internal/ds"

// pendingRange is the long form of XPENDING.
type pendingRange struct {
	from, to  ds.StreamID
	count     int64
	minIdleMs int64
	consumer  []byte // nil: all of them
}

// parsePendingRange reads XPENDING key group [IDLE ms] start end count [consumer].
func parsePendingRange(c *Ctx) (r pendingRange, err error) {
	args := c.Args[3:]
	if Is(args[0], "IDLE") {
		if r.minIdleMs, err = c.Int(4); err != nil {
			return r, err
		}
		if args = args[2:]; len(args) < 3 {
			return r, ErrSyntax
		}
	}
	var ok bool
	if r.count, ok = ParseInt(args[2]); !ok {
		return r, ErrNotInteger
	}
	if r.from, err = parseStreamStart(args[0]); err != nil {
		return r, err
	}
	if r.to, err = parseStreamEnd(args[1]); err != nil {
		return r, err
	}
	if len(args) > 3 {
		r.consumer = args[3]
	}
	return r, nil
}

func xpending(c *Ctx) error {
	const leastArgs, mostArgs = 6, 9
	isSummary := len(c.Args) == 3
	var r pendingRange
	var err error
	if !isSummary {
		if len(c.Args) < leastArgs || len(c.Args) > mostArgs {
			return ErrSyntax
		}
		if r, err = parsePendingRange(c); err != nil {
			return err
		}
	}
	_, group, err := readGroup(c)
	switch {
	case err != nil:
		return err
	case group == nil:
		return noKeyOrGroup(c.Args[1], c.Args[2])
	case isSummary:
		writePendingSummary(c, group)
	default:
		r.write(c, group)
	}
	return nil
}

// writePendingSummary replies with how many entries are pending, the first and the last
// of them, and how many each consumer has.
func writePendingSummary(c *Ctx, group *ds.StreamGroup) {
	pending := group.Pending()
	c.Out.Array(4)
	c.Out.Int(int64(pending.Len()))
	if pending.Len() == 0 {
		c.Out.Null()
		c.Out.Null()
		c.Out.NullArray()
		return
	}
	writeStreamID(c.Out, pending.First().ID)
	writeStreamID(c.Out, pending.Last().ID)
	var busy []*ds.StreamConsumer
	for _, consumer := range group.Consumers() {
		if consumer.Pending().Len() > 0 {
			busy = append(busy, consumer)
		}
	}
	c.Out.Array(len(busy))
	for _, consumer := range busy {
		c.Out.Array(2)
		c.Out.BulkString(consumer.Name)
		c.Out.BulkInt(int64(consumer.Pending().Len()))
	}
}

func (r *pendingRange) write(c *Ctx, group *ds.StreamGroup) {
	pending := group.Pending()
	if r.consumer != nil {
		consumer := group.Consumer(r.consumer)
		if consumer == nil {
			c.Out.Array(0)
			return
		}
		pending = consumer.Pending()
	}
	var found []*ds.StreamPending
	for p := range pending.From(r.from) {
		if int64(len(found)) >= r.count || r.to.Less(p.ID) {
			break
		}
		if r.minIdleMs == 0 || c.NowMs()-p.DeliveredMs >= r.minIdleMs {
			found = append(found, p)
		}
	}
	c.Out.Array(len(found))
	for _, p := range found {
		c.Out.Array(4)
		writeStreamID(c.Out, p.ID)
		c.Out.BulkString(p.Consumer.Name)
		c.Out.Int(max(c.NowMs()-p.DeliveredMs, 0))
		c.Out.Int(p.Deliveries)
	}
}
