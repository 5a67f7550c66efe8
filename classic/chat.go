package classic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// chatPatience is how long Send tries for the lock of a chat: Lock's default in
// the book.
const chatPatience = 10 * time.Second

// ErrNoChat is returned for joining a chat to which nothing was ever sent, or
// that all have left.
var ErrNoChat = errors.New("there is no such chat")

// Chat is the pull messaging of Redis in Action, 6.5.2: messages that wait for
// those who are away, which PUBLISH does not do. Keys: the counter "ids:chat"
// numbers the chats; for each chat the sorted set "chat:" and its id has the
// members by the last message that they have seen, "msgs:" and the id the
// messages as JSON by number, "ids:" and the id counts them; for each user the
// sorted set "seen:" and the user has his chats by the last message seen.
//
// Send takes the Lock "chat:" and the id, counts (INCR), and adds (ZADD): under
// the lock nobody can fetch message 8 while 7 is still to be added. Fetch reads
// the user's chats (ZRANGE) and what is new in each (ZRANGEBYSCORE, in one
// MULTI), marks it in the chat (ZADD) and finds out what all have seen (ZRANGE),
// chat by chat, and in a last MULTI marks it at the user and removes what all
// have seen. Join and Leave do what their names say; the last to leave deletes
// the chat.
//
// It promises that a member who is away gets every message when he fetches, in
// the order of their numbers, and that what all have seen is removed.
//
// It breaks:
//
//   - The client crashes after Fetch has marked, or the reply is lost: nobody
//     gets those messages again. A crash before the last MULTI lets them be
//     fetched again, unless others have fetched meanwhile: then they are gone.
//   - A user fetches twice at once: both get the same messages.
//   - A client crashes under the lock, which has no timeout in the book: nobody
//     can write to the chat any more.
//   - A member never fetches: nothing is removed, ever.
//   - A user leaves while he fetches: Fetch makes him a member again.
//   - Somebody joins while the last one leaves: the counter is deleted, messages
//     are numbered from 1 again, and the new member, who believes to have seen
//     more, misses as many as there had been.
//   - A message is sent to a chat that all have left: nobody ever removes it.
type Chat struct {
	Client
	// LockTimeout is the timeout of a chat's lock; 0 is none, as in the book.
	LockTimeout time.Duration
}

// Message is one message of a chat.
type Message struct {
	// ID is its number within the chat, from 1.
	ID int64 `json:"id"`
	// Time is when it was sent by the sender's clock, in seconds since 1970.
	Time   float64 `json:"ts"`
	Sender string  `json:"sender"`
	Text   string  `json:"message"`
}

// Pending is what a user has not seen of a chat.
type Pending struct {
	Chat     string
	Messages []Message // at least one, in the order of their numbers
}

// Create makes a chat of the sender and the recipients, sends its first message,
// and returns the chat's id. With an error of the sending the id is returned,
// too: the chat is there.
func (c Chat) Create(ctx context.Context, sender, text string, recipients ...string) (id string, err error) {
	if err := c.check("new", sender); err != nil {
		return "", err
	}
	if slices.Contains(recipients, "") {
		return "", invalid("chat of %q: a recipient's name is empty", sender)
	}
	number, err := c.Redis.Incr(ctx, "ids:chat").Result()
	if err != nil {
		return "", failed("chat", "ids:chat", err)
	}
	id = strconv.FormatInt(number, 10)
	members := append(slices.Clone(recipients), sender)
	_, err = c.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		var all []redis.Z
		for _, user := range members {
			all = append(all, redis.Z{Member: user})
		}
		pipe.ZAdd(ctx, membersKey(id), all...)
		for _, user := range members {
			pipe.ZAdd(ctx, seenKey(user), redis.Z{Member: id})
		}
		return nil
	})
	if err != nil {
		return "", failed("chat", id, err)
	}
	return id, c.Send(ctx, id, sender, text)
}

// Send adds a message. That the sender is a member is not checked. It answers
// ErrBusy if the chat's lock is not free within 10 seconds.
func (c Chat) Send(ctx context.Context, id, sender, text string) error {
	if err := c.check(id, sender); err != nil {
		return err
	}
	lock := Lock{Client: c.Client, Name: "chat:" + id, Timeout: c.LockTimeout}
	return failed("chat", id, lock.during(ctx, chatPatience, func() error {
		number, err := c.Redis.Incr(ctx, counterKey(id)).Result()
		if err != nil {
			return err
		}
		packed, err := json.Marshal(Message{ID: number, Time: score(c.clock().Now()), Sender: sender, Text: text})
		if err != nil {
			return err
		}
		return c.Redis.ZAdd(ctx, messagesKey(id), redis.Z{Score: float64(number), Member: packed}).Err()
	}))
}

// Fetch returns what the user has not seen, and marks it as seen. What cannot be
// read as a message fails the fetch, and every one after it.
func (c Chat) Fetch(ctx context.Context, user string) ([]Pending, error) {
	if err := c.check("any", user); err != nil {
		return nil, err
	}
	pending, err := c.unseen(ctx, user)
	if err == nil {
		err = c.mark(ctx, user, pending)
	}
	if err != nil {
		return nil, failed("chats of", user, err)
	}
	return pending, nil
}

// unseen reads what is new in the user's chats.
func (c Chat) unseen(ctx context.Context, user string) ([]Pending, error) {
	chats, err := c.Redis.ZRangeWithScores(ctx, seenKey(user), 0, -1).Result()
	if err != nil {
		return nil, err
	}
	var news []*redis.StringSliceCmd
	_, err = c.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, chat := range chats {
			from := strconv.FormatFloat(chat.Score+1, 'f', -1, 64)
			news = append(news, pipe.ZRangeByScore(ctx, messagesKey(fmt.Sprint(chat.Member)), &redis.ZRangeBy{Min: from, Max: "inf"}))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var pending []Pending
	for i, chat := range chats {
		if len(news[i].Val()) == 0 {
			continue
		}
		p := Pending{Chat: fmt.Sprint(chat.Member)}
		for _, packed := range news[i].Val() {
			var m Message
			if err := json.Unmarshal([]byte(packed), &m); err != nil {
				return nil, fmt.Errorf("chat %q: %.200q is no message: %w", p.Chat, packed, err)
			}
			p.Messages = append(p.Messages, m)
		}
		pending = append(pending, p)
	}
	return pending, nil
}

// mark records what the user has now seen, and removes what all have.
func (c Chat) mark(ctx context.Context, user string, pending []Pending) error {
	var last []func(redis.Pipeliner)
	for _, p := range pending {
		seen := float64(p.Messages[len(p.Messages)-1].ID)
		if err := c.Redis.ZAdd(ctx, membersKey(p.Chat), redis.Z{Score: seen, Member: user}).Err(); err != nil {
			return err
		}
		oldest, err := c.Redis.ZRangeWithScores(ctx, membersKey(p.Chat), 0, 0).Result()
		if err != nil {
			return err
		}
		last = append(last, func(pipe redis.Pipeliner) {
			pipe.ZAdd(ctx, seenKey(user), redis.Z{Score: seen, Member: p.Chat})
			if len(oldest) > 0 {
				pipe.ZRemRangeByScore(ctx, messagesKey(p.Chat), "0", strconv.FormatFloat(oldest[0].Score, 'f', -1, 64))
			}
		})
	}
	_, err := c.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, queue := range last {
			queue(pipe)
		}
		return nil
	})
	return err
}

// Join makes a user a member, who sees what is sent from now on. It answers
// ErrNoChat if nothing was ever sent to the chat, or all have left.
func (c Chat) Join(ctx context.Context, id, user string) error {
	if err := c.check(id, user); err != nil {
		return err
	}
	newest, err := c.Redis.Get(ctx, counterKey(id)).Int64()
	if errors.Is(err, redis.Nil) {
		err = ErrNoChat
	}
	if err != nil {
		return failed("chat", id, err)
	}
	_, err = c.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZAdd(ctx, membersKey(id), redis.Z{Score: float64(newest), Member: user})
		pipe.ZAdd(ctx, seenKey(user), redis.Z{Score: float64(newest), Member: id})
		return nil
	})
	return failed("chat", id, err)
}

// Leave takes a user out of a chat, and deletes the chat after the last one.
func (c Chat) Leave(ctx context.Context, id, user string) error {
	if err := c.check(id, user); err != nil {
		return err
	}
	var left *redis.IntCmd
	_, err := c.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZRem(ctx, membersKey(id), user)
		pipe.ZRem(ctx, seenKey(user), id)
		left = pipe.ZCard(ctx, membersKey(id))
		return nil
	})
	if err != nil {
		return failed("chat", id, err)
	}
	if left.Val() > 0 {
		return failed("chat", id, c.removeSeen(ctx, id))
	}
	_, err = c.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Del(ctx, messagesKey(id))
		pipe.Del(ctx, counterKey(id))
		return nil
	})
	return failed("chat", id, err)
}

// removeSeen removes the messages that all have seen.
func (c Chat) removeSeen(ctx context.Context, id string) error {
	oldest, err := c.Redis.ZRangeWithScores(ctx, membersKey(id), 0, 0).Result()
	if err != nil || len(oldest) == 0 {
		return err
	}
	return c.Redis.ZRemRangeByScore(ctx, messagesKey(id), "0", strconv.FormatFloat(oldest[0].Score, 'f', -1, 64)).Err()
}

func membersKey(id string) string  { return "chat:" + id }
func messagesKey(id string) string { return "msgs:" + id }
func counterKey(id string) string  { return "ids:" + id }
func seenKey(user string) string   { return "seen:" + user }

// check refuses names that are none. A chat named "chat" would count in the
// counter of all chats.
func (c Chat) check(id, user string) error {
	if err := c.Client.check("chat", id); err != nil {
		return err
	}
	switch {
	case id == "chat":
		return invalid(`chat "chat": the name is taken by the counter of all chats`)
	case user == "":
		return invalid("chat %q: a user's name is empty", id)
	}
	return nil
}
