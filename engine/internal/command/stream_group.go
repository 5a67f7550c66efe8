package command

import (
	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

const errGroupExists Error = "BUSYGROUP Consumer Group name already exists"

// noSuchGroup is the error for a group that does not exist in a stream that does.
func noSuchGroup(key, group []byte) error {
	return Error("NOGROUP No such consumer group '" + string(cString(group)) + "' for key name '" + string(cString(key)) + "'")
}

// groupOptions are the options of XGROUP CREATE and SETID.
type groupOptions struct {
	create      bool // MKSTREAM
	entriesRead int64
}

// parseGroupOptions reads what comes after XGROUP CREATE key group id, or SETID, for which
// MKSTREAM is no option.
func parseGroupOptions(c *Ctx, mayCreate bool) (o groupOptions, err error) {
	o.entriesRead = ds.UnknownReads
	for i := 5; i < len(c.Args); i++ {
		switch {
		case mayCreate && Is(c.Args[i], "MKSTREAM"):
			o.create = true
		case Is(c.Args[i], "ENTRIESREAD") && i+1 < len(c.Args):
			i++
			if o.entriesRead, err = c.Int(i); err != nil {
				return o, err
			}
			if o.entriesRead < 0 && o.entriesRead != ds.UnknownReads {
				return o, Error("ERR value for ENTRIESREAD must be positive or -1")
			}
		default:
			return o, WrongSubcommand("XGROUP", c.Args[1])
		}
	}
	return o, nil
}

// groupStream looks up the stream of XGROUP, which has to exist.
func groupStream(c *Ctx) (*ds.Stream, error) {
	stream, found, err := Read[*ds.Stream](c, c.Args[2])
	if err == nil && !found {
		err = Error("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the " +
			"MKSTREAM option to create an empty stream automatically.")
	}
	return stream, err
}

// namedGroup looks up the stream of XGROUP and the group, both of which have to exist.
func namedGroup(c *Ctx) (*ds.Stream, *ds.StreamGroup, error) {
	stream, err := groupStream(c)
	if err != nil {
		return nil, nil, err
	}
	group := stream.Group(c.Args[3])
	if group == nil {
		return nil, nil, noSuchGroup(c.Args[2], c.Args[3])
	}
	return stream, group, nil
}

func xgroupCreate(c *Ctx) error {
	const mostArgs = 8
	options, err := parseGroupOptions(c, true)
	if err != nil {
		return err
	}
	key, name := c.Args[2], c.Args[3]
	stream, found, err := Read[*ds.Stream](c, key)
	if err == nil && !found && !options.create {
		_, err = groupStream(c)
	}
	switch {
	case err != nil:
		return err
	case len(c.Args) > mostArgs:
		return WrongSubcommand("XGROUP", c.Args[1])
	case !found:
		stream = ds.NewStream()
	}
	id := stream.LastID
	if string(c.Args[4]) != "$" {
		if id, err = parseStreamID(c.Args[4], 0); err != nil {
			return err
		}
	}
	if !stream.CreateGroup(name, id, options.entriesRead) {
		return errGroupExists
	}
	if found {
		changedGroup(c, key, eventGroupCreate)
	} else {
		c.DB.Put(key, stream, c.NowMs())
		c.Touch(key, eventGroupCreate)
	}
	c.Out.SimpleString("OK")
	return nil
}

func xgroupSetID(c *Ctx) error {
	options, err := parseGroupOptions(c, false)
	if err != nil {
		return err
	}
	stream, group, err := namedGroup(c)
	if err != nil {
		return err
	}
	if n := len(c.Args); n != 5 && n != 7 {
		return WrongSubcommand("XGROUP", c.Args[1])
	}
	id := stream.LastID
	if string(c.Args[4]) != "$" {
		if id, err = parseStreamBound(c.Args[4], 0); err != nil {
			return err
		}
	}
	group.LastID, group.EntriesRead = id, options.entriesRead
	changedGroup(c, c.Args[2], eventGroupSetID)
	c.Out.SimpleString("OK")
	return nil
}

func xgroupDestroy(c *Ctx) error {
	stream, err := groupStream(c)
	if err != nil {
		return err
	}
	existed := stream.DeleteGroup(c.Args[3])
	if existed {
		changedGroup(c, c.Args[2], eventGroupDestroy)
		c.DB.Offer(c.Args[2]) // whoever reads for the group has to hear of it
	}
	c.Out.Int(int64(oneIf(existed)))
	return nil
}

func xgroupCreateConsumer(c *Ctx) error {
	_, group, err := namedGroup(c)
	if err != nil {
		return err
	}
	created := group.CreateConsumer(c.Args[4], c.NowMs()) != nil
	if created {
		changedGroup(c, c.Args[2], eventConsumerCreated)
	}
	c.Out.Int(int64(oneIf(created)))
	return nil
}

func xgroupDelConsumer(c *Ctx) error {
	_, group, err := namedGroup(c)
	if err != nil {
		return err
	}
	pending := 0
	if consumer := group.Consumer(c.Args[4]); consumer != nil {
		pending = consumer.Pending().Len()
		group.DeleteConsumer(consumer)
		changedGroup(c, c.Args[2], eventConsumerDeleted)
	}
	c.Out.Int(int64(pending))
	return nil
}

var xgroupHelp = HelpSpec("XGROUP", "5.0.0",
	"CREATE <key> <groupname> <id|$> [option]",
	"    Create a new consumer group. Options are:",
	"    * MKSTREAM",
	"      Create the empty stream if it does not exist.",
	"    * ENTRIESREAD entries_read",
	"      Set the group's entries_read counter (internal use).",
	"CREATECONSUMER <key> <groupname> <consumer>",
	"    Create a new consumer in the specified group.",
	"DELCONSUMER <key> <groupname> <consumer>",
	"    Remove the specified consumer.",
	"DESTROY <key> <groupname>",
	"    Remove the specified group.",
	"SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
	"    Set the current group ID and entries_read counter.",
)

var xgroupSpecs = []Spec{
	{
		Name: "create", Arity: -5, Flags: Write | DenyOOM, Keys: Key(2), Since: "5.0.0",
		Summary: "Makes a consumer group that reads a stream from an ID on.", Complexity: "O(1)", Run: xgroupCreate,
	},
	{
		Name: "createconsumer", Arity: 5, Flags: Write | DenyOOM, Keys: Key(2), Since: "6.2.0",
		Summary: "Makes a consumer of a group.", Complexity: "O(1)", Run: xgroupCreateConsumer,
	},
	{
		Name: "delconsumer", Arity: 5, Flags: Write, Keys: Key(2), Since: "5.0.0",
		Summary:    "Removes a consumer and forgets what it has not acknowledged; returns how many entries these are.",
		Complexity: "O(M*log(N)) for M such entries out of N of the group.", Run: xgroupDelConsumer,
	},
	{
		Name: "destroy", Arity: 4, Flags: Write, Keys: Key(2), Since: "5.0.0",
		Summary: "Removes a consumer group.", Complexity: "O(1)", Run: xgroupDestroy,
	},
	xgroupHelp,
	{
		Name: "setid", Arity: -5, Flags: Write, Keys: Key(2), Since: "5.0.0",
		Summary: "Sets from which ID on a group reads.", Complexity: "O(1)", Run: xgroupSetID,
	},
}

const claimComplexity = "O(log(N)) for each entry, with N pending in the group."

var streamGroupSpecs = []Spec{
	{
		Name: "xack", Arity: -4, Flags: Write | Fast, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary:    "Acknowledges entries that a group has handed out, and returns how many of them were pending.",
		Complexity: claimComplexity, Run: xack,
	},
	{
		Name: "xautoclaim", Arity: -6, Flags: Write | Fast, Keys: Key(1), Group: "stream", Since: "6.2.0",
		Summary:    "Hands to a consumer what has been pending for too long, step by step.",
		Complexity: claimComplexity, Run: xautoclaim,
	},
	{
		Name: "xclaim", Arity: -6, Flags: Write | Fast, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary:    "Hands pending entries, given by their IDs, to a consumer.",
		Complexity: claimComplexity, Run: xclaim,
	},
	{
		Name: "xgroup", Arity: -2, Group: "stream", Since: "5.0.0",
		Summary: "A container for commands on consumer groups.", Complexity: "that of the subcommand", Sub: xgroupSpecs,
	},
	{
		Name: "xpending", Arity: -3, Flags: ReadOnly, Keys: Key(1), Group: "stream", Since: "5.0.0",
		Summary:    "Tells what a group has handed out and nobody has acknowledged.",
		Complexity: "O(log(N)+M), N being the number of such entries and M that of those returned, or of consumers for the short form.",
		Run:        xpending,
	},
}
