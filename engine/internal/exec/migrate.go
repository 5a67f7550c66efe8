package exec

import (
	"bytes"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// MIGRATE moves keys to another server: it restores them there, and deletes here those that
// the other has acknowledged. As on Redis everybody waits meanwhile, so that nobody sees a
// key in both places, or in none. The requests are made here; the shell has the connection,
// and reads as many replies of one line each.

const errMigrate command.Error = "ERR MIGRATE needs a network, which this engine does not have: move keys with DUMP and RESTORE"

func (m *Machine) migrateSpec() command.Spec {
	return command.Spec{
		Name: "migrate", Arity: -6, Flags: command.Write | command.MovableKeys, Group: "generic", Since: "2.6.0",
		Keys: command.Key(migratedKey), FindKeys: migratedKeys,
		Summary: "Moves keys to another server.", Complexity: "O(N) for N keys", Run: m.migrate,
	}
}

const migratedKey = 3 // the argument that is the key, "" if KEYS comes later

// migration is one call.
type migration struct {
	keys      [][]byte // that exist
	requests  resp.Writer
	before    int // requests before the first key
	copy      bool
	timeoutMs int64
}

func (m *Machine) migrate(c *command.Ctx) error {
	first, n, err := parseMigrate(c.Args)
	if err != nil {
		return err
	}
	var move migration
	if move.timeoutMs, err = c.Int(5); err != nil {
		return err
	}
	if move.timeoutMs <= 0 {
		move.timeoutMs = 1000
	}
	db, err := c.Int(4)
	if err != nil {
		return err
	}
	replace := move.options(c.Args[6:])
	move.request("SELECT", []byte(strconv.FormatInt(db, 10)))
	move.before++
	for _, key := range c.Args[first : first+n] {
		if err := move.add(c, key, replace); err != nil {
			return err
		}
	}
	if len(move.keys) == 0 {
		c.PropagateNothing()
		c.Out.SimpleString("NOKEY")
		return nil
	}
	if m.options.Exchange == nil {
		return errMigrate
	}
	replies, err := m.options.Exchange(c.Arg(1), c.Arg(2), move.timeoutMs, move.requests.Bytes(), move.before+len(move.keys))
	return move.finish(c, replies, err)
}

// options reads what comes after the timeout, which is known to be right.
func (move *migration) options(args [][]byte) (replace bool) {
	for i := 0; i < len(args); i++ {
		switch {
		case command.Is(args[i], "COPY"):
			move.copy = true
		case command.Is(args[i], "REPLACE"):
			replace = true
		case command.Is(args[i], "AUTH"):
			move.request("AUTH", args[i+1])
			move.before++
			i++
		case command.Is(args[i], "AUTH2"):
			move.request("AUTH", args[i+1], args[i+2])
			move.before++
			i += 2
		case command.Is(args[i], "KEYS"):
			return replace
		}
	}
	return replace
}

func (move *migration) request(name string, args ...[]byte) {
	move.requests.Array(1 + len(args))
	move.requests.BulkString(name)
	for _, arg := range args {
		move.requests.Bulk(arg)
	}
}

// add makes the request that restores a key, if there is one.
func (move *migration) add(c *command.Ctx, key []byte, replace bool) error {
	o := c.DB.Lookup(key, c.NowMs())
	if o == nil {
		return nil
	}
	payload, err := rdb.AppendPayload(nil, o.Value())
	if err != nil {
		return err
	}
	ttlMs := int64(0)
	if o.ExpireAt() != 0 {
		ttlMs = max(o.ExpireAt()-c.NowMs(), 1)
	}
	args := [][]byte{key, strconv.AppendInt(nil, ttlMs, 10), payload}
	if replace {
		args = append(args, []byte("REPLACE"))
	}
	move.request("RESTORE", args...)
	move.keys = append(move.keys, key)
	return nil
}

// finish deletes what the other server has taken, and answers.
func (move *migration) finish(c *command.Ctx, replies [][]byte, failure error) error {
	var refusal []byte
	var moved [][]byte
	shut := false // it has refused what comes before the keys
	for i, reply := range replies {
		switch {
		case bytes.HasPrefix(reply, []byte{'-'}):
			if refusal == nil {
				refusal = reply[1:]
			}
			shut = shut || i < move.before
		case i >= move.before && !move.copy && !shut:
			moved = append(moved, move.keys[i-move.before])
		}
	}
	for _, key := range moved {
		c.DB.Delete(key)
		c.Touch(key, keyspace.Event{Class: keyspace.ClassGeneric, Name: "del"})
	}
	c.PropagateNothing()
	if len(moved) > 0 {
		del := c.Propagate(1 + len(moved)).Word("DEL")
		for _, key := range moved {
			del = del.Bytes(key)
		}
	}
	switch {
	case refusal != nil:
		return command.Error("ERR Target instance replied with error: " + string(refusal))
	case failure != nil:
		return command.Error(failure.Error())
	}
	c.Out.SimpleString("OK")
	return nil
}

// parseMigrate returns where the keys of a call begin, and how many there are.
func parseMigrate(args [][]byte) (first, n int, err error) {
	for i := 6; i < len(args); i++ {
		left := len(args) - i - 1
		switch {
		case command.Is(args[i], "COPY"), command.Is(args[i], "REPLACE"):
		case command.Is(args[i], "AUTH") && left >= 1:
			i++
		case command.Is(args[i], "AUTH2") && left >= 2:
			i += 2
		case command.Is(args[i], "KEYS") && len(args[migratedKey]) != 0:
			return 0, 0, command.Error("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string")
		case command.Is(args[i], "KEYS"):
			return i + 1, left, nil
		default:
			return 0, 0, command.ErrSyntax
		}
	}
	return migratedKey, 1, nil
}

// migratedKeys is where the keys of a call are.
func migratedKeys(args [][]byte) (positions []int) {
	first, n, err := parseMigrate(args)
	if err != nil {
		return nil
	}
	for i := range n {
		positions = append(positions, first+i)
	}
	return positions
}
