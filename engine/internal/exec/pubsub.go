package exec

import (
	"maps"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// broker knows who is subscribed to what. Subscribers of one channel are
// served in the order in which they subscribed.
type broker struct {
	channels, patterns, shards topics
}

type topics map[string][]*Session

func newBroker() *broker {
	return &broker{channels: topics{}, patterns: topics{}, shards: topics{}}
}

// silent reports whether nobody listens to any channel.
func (b *broker) silent() bool { return len(b.channels) == 0 && len(b.patterns) == 0 }

// join subscribes s, whose own list of such topics is mine.
func (t topics) join(s *Session, mine *topicList, topic string) {
	if mine.add(topic) {
		t[topic] = append(t[topic], s)
	}
}

func (t topics) leave(s *Session, mine *topicList, topic string) {
	if !mine.remove(topic) {
		return
	}
	subscribers := t[topic]
	if i := slices.Index(subscribers, s); i >= 0 {
		subscribers = slices.Delete(subscribers, i, i+1)
	}
	if len(subscribers) == 0 {
		delete(t, topic)
		return
	}
	t[topic] = subscribers
}

func (b *broker) leaveAll(s *Session) {
	b.channels.leaveEach(s, &s.channels)
	b.patterns.leaveEach(s, &s.patterns)
	b.shards.leaveEach(s, &s.shards)
}

func (t topics) leaveEach(s *Session, mine *topicList) {
	for _, topic := range slices.Clone(mine.names) {
		t.leave(s, mine, topic)
	}
}

// subscription describes one of the three families of SUBSCRIBE commands.
type subscription struct {
	join, leave string // the words in the confirmations
	topics      topics
	mine        func(s *Session) *topicList
	count       func(s *Session) int
}

func (m *Machine) subscriptions() (channels, patterns, shards subscription) {
	both := func(s *Session) int { return s.channels.len() + s.patterns.len() }
	channels = subscription{
		"subscribe", "unsubscribe", m.broker.channels,
		func(s *Session) *topicList { return &s.channels }, both,
	}
	patterns = subscription{
		"psubscribe", "punsubscribe", m.broker.patterns,
		func(s *Session) *topicList { return &s.patterns }, both,
	}
	shards = subscription{
		"ssubscribe", "sunsubscribe", m.broker.shards,
		func(s *Session) *topicList { return &s.shards }, func(s *Session) int { return s.shards.len() },
	}
	return channels, patterns, shards
}

func (m *Machine) pubsubSpecs() []command.Spec {
	const (
		flags = command.PubSub | command.NoScript | command.Loading | command.Stale
		since = "2.0.0"
	)
	channels, patterns, shards := m.subscriptions()
	spec := func(name string, arity int, since, summary string, run func(*command.Ctx) error) command.Spec {
		return command.Spec{
			Name: name, Arity: arity, Flags: flags, Group: "pubsub", Since: since, Summary: summary,
			Complexity: "O(N) for N channels", Run: run,
		}
	}
	sharded := func(s command.Spec) command.Spec {
		s.Keys = command.KeysFrom(1)
		return s
	}
	const publishFlags = command.PubSub | command.Loading | command.Stale | command.Fast
	return []command.Spec{
		spec("subscribe", -2, since, "Listens for messages published to channels.", channels.subscribe),
		spec("unsubscribe", -1, since, "Stops listening to channels, to all of them if none is named.", channels.unsubscribe),
		spec("psubscribe", -2, since, "Listens for messages to channels that match patterns.", patterns.subscribe),
		spec("punsubscribe", -1, since, "Stops listening to patterns, to all of them if none is named.", patterns.unsubscribe),
		sharded(spec("ssubscribe", -2, "7.0.0", "Listens for messages published to shard channels.", shards.subscribe)),
		sharded(spec("sunsubscribe", -1, "7.0.0", "Stops listening to shard channels, to all of them if none is named.", shards.unsubscribe)),
		{
			Name: "publish", Arity: 3, Flags: publishFlags, Group: "pubsub", Since: since,
			Summary:    "Posts a message to a channel and says how many received it.",
			Complexity: "O(N+M) for N subscribers of the channel and M patterns that anybody is subscribed to",
			Run:        m.publish,
		},
		{
			Name: "spublish", Arity: 3, Flags: publishFlags, Keys: command.Key(1), Group: "pubsub", Since: "7.0.0",
			Summary:    "Posts a message to a shard channel and says how many received it.",
			Complexity: "O(N) for N subscribers of the channel",
			Run:        m.spublish,
		},
		m.pubsubContainer(),
	}
}

func (m *Machine) pubsubContainer() command.Spec {
	const flags = command.PubSub | command.Loading | command.Stale
	return command.Spec{
		Name: "pubsub", Arity: -2, Group: "pubsub", Since: "2.8.0", Summary: "A container for commands on publish and subscribe.",
		Complexity: "that of the subcommand",
		Sub: []command.Spec{
			{Name: "channels", Arity: -2, Flags: flags, Since: "2.8.0", Summary: "Lists the channels that have subscribers.", Run: func(c *command.Ctx) error {
				return m.broker.channels.list(c)
			}},
			{Name: "numsub", Arity: -2, Flags: flags, Since: "2.8.0", Summary: "Counts the subscribers of channels.", Run: func(c *command.Ctx) error {
				m.broker.channels.count(c)
				return nil
			}},
			{Name: "numpat", Arity: 2, Flags: flags, Since: "2.8.0", Summary: "Counts the patterns that are subscribed to.", Run: func(c *command.Ctx) error {
				c.Out.Int(int64(len(m.broker.patterns)))
				return nil
			}},
			{Name: "shardchannels", Arity: -2, Flags: flags, Since: "7.0.0", Summary: "Lists the shard channels that have subscribers.", Run: func(c *command.Ctx) error {
				return m.broker.shards.list(c)
			}},
			{Name: "shardnumsub", Arity: -2, Flags: flags, Since: "7.0.0", Summary: "Counts the subscribers of shard channels.", Run: func(c *command.Ctx) error {
				m.broker.shards.count(c)
				return nil
			}},
			command.HelpSpec("PUBSUB", "6.2.0",
				"CHANNELS [<pattern>]", "    Return the currently active channels matching a <pattern> (default: '*').",
				"NUMPAT", "    Return number of subscriptions to patterns.",
				"NUMSUB [<channel> ...]", "    Return the number of subscribers for the specified channels, excluding",
				"    pattern subscriptions(default: no channels).",
				"SHARDCHANNELS [<pattern>]", "    Return the currently active shard level channels matching a <pattern> (default: '*').",
				"SHARDNUMSUB [<shardchannel> ...]", "    Return the number of subscribers for the specified shard level channel(s)"),
		},
	}
}

// list answers CHANNELS and SHARDCHANNELS.
func (t topics) list(c *command.Ctx) error {
	if len(c.Args) > 3 {
		return command.WrongSubcommand("PUBSUB", c.Args[1])
	}
	var names []string
	for topic := range t {
		if len(c.Args) < 3 || command.Glob(c.Args[2], []byte(topic), false) {
			names = append(names, topic)
		}
	}
	slices.Sort(names)
	c.Out.Array(len(names))
	for _, name := range names {
		c.Out.BulkString(name)
	}
	return nil
}

func (t topics) count(c *command.Ctx) {
	c.Out.Array(2 * (len(c.Args) - 2))
	for _, topic := range c.Args[2:] {
		c.Out.Bulk(topic)
		c.Out.Int(int64(len(t[string(topic)])))
	}
}

func (sub subscription) subscribe(c *command.Ctx) error {
	s := session(c)
	for _, topic := range c.Args[1:] {
		sub.topics.join(s, sub.mine(s), string(topic))
		sub.confirm(c, sub.join, topic)
	}
	return nil
}

func (sub subscription) unsubscribe(c *command.Ctx) error {
	s := session(c)
	named := c.Args[1:]
	if len(named) == 0 {
		for _, topic := range sub.mine(s).names {
			named = append(named, []byte(topic))
		}
	}
	for _, topic := range named {
		sub.topics.leave(s, sub.mine(s), string(topic))
		sub.confirm(c, sub.leave, topic)
	}
	if len(named) == 0 {
		sub.confirm(c, sub.leave, nil)
	}
	return nil
}

func (sub subscription) confirm(c *command.Ctx, word string, topic []byte) {
	out := session(c).heard(c.Out)
	out.Push(3)
	out.BulkString(word)
	if topic == nil {
		out.Null()
	} else {
		out.Bulk(topic)
	}
	out.Int(int64(sub.count(session(c))))
}

// worksWhileSubscribed names what a subscriber may call under RESP2, where
// replies and messages cannot be told apart.
func worksWhileSubscribed(name string) bool {
	switch name {
	case "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe", "ping", "quit", "reset":
		return true
	}
	return false
}

func (m *Machine) publish(c *command.Ctx) error {
	c.Out.Int(int64(m.broadcast(c.Args[1], c.Args[2])))
	m.tellSubscribersOfReplicas(c)
	return nil
}

// tellSubscribersOfReplicas passes a message on to replicas, and into no file.
func (m *Machine) tellSubscribersOfReplicas(c *command.Ctx) {
	if m.repl.feeding {
		c.Journal.CallAside(c.DB.Index, c.Args)
	}
}

// broadcast sends a message to all who listen to the channel, by its name or by
// a pattern, and says how often it was sent.
func (m *Machine) broadcast(channel, message []byte) (received int) {
	received = m.broker.channels.deliver(m, "message", channel, message)
	if len(m.broker.patterns) > 0 {
		received += m.deliverToPatterns(channel, message)
	}
	return received
}

func (m *Machine) deliverToPatterns(channel, message []byte) (received int) {
	for _, pattern := range slices.Sorted(maps.Keys(m.broker.patterns)) {
		if !command.Glob([]byte(pattern), channel, false) {
			continue
		}
		for _, s := range m.broker.patterns[pattern] {
			out := m.pushTo(s)
			out.Push(4)
			out.BulkString("pmessage")
			out.BulkString(pattern)
			out.Bulk(channel)
			out.Bulk(message)
			received++
		}
	}
	return received
}

func (m *Machine) spublish(c *command.Ctx) error {
	c.Out.Int(int64(m.broker.shards.deliver(m, "smessage", c.Args[1], c.Args[2])))
	m.tellSubscribersOfReplicas(c)
	return nil
}

func (t topics) deliver(m *Machine, word string, channel, message []byte) int {
	subscribers := t[string(channel)]
	for _, s := range subscribers {
		out := m.pushTo(s)
		out.Push(3)
		out.BulkString(word)
		out.Bulk(channel)
		out.Bulk(message)
	}
	return len(subscribers)
}

// pushTo is where a message for s goes. A message to the session whose command
// is running comes before that command's reply, or after it if the reply has been
// begun: it must not end up within.
func (m *Machine) pushTo(s *Session) *resp.Writer {
	if s == m.current && s.Out.Len() > m.replyFrom {
		s.pushes.Proto = s.Out.Proto
		return &s.pushes
	}
	if s != m.current {
		m.wake(s)
	}
	return &s.Out
}
