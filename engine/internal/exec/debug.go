package exec

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// DEBUG is for tests: what Redis has of it beyond the subcommands here is about
// the inside of Redis. It is one command, not a container: to Redis the
// subcommand is an argument.

func debug(c *command.Ctx) error {
	sub := c.Args[1]
	switch {
	case len(c.Args) == 3 && command.Is(sub, "SLEEP"):
		return debugSleep(c)
	case len(c.Args) == 2 && command.Is(sub, "DIGEST"):
		c.Out.SimpleString(command.Digest(c.Space, c.NowMs()))
	case command.Is(sub, "DIGEST-VALUE"):
		c.Out.Array(len(c.Args) - 2)
		for _, key := range c.Args[2:] {
			c.Out.SimpleString(command.DigestValue(c.DB.Peek(key, c.NowMs())))
		}
	case len(c.Args) == 2 && command.Is(sub, "HELP"):
		return debugHelp.Run(c)
	default:
		return command.WrongSubcommand("DEBUG", sub)
	}
	return nil
}

var debugHelp = command.HelpSpec("DEBUG", "5.0.0",
	"DIGEST", "    Output a hex signature representing the current DB content.",
	"DIGEST-VALUE <key> [<key> ...]", "    Output a hex signature of the values of all the specified keys.",
	"SLEEP <seconds>", "    Stop this connection for <seconds>. Decimals allowed.")

// debugSleep waits for a key that nobody can touch, so that only its own
// connection sleeps: the core has no way to sleep, and no wish to. What is not
// a number of seconds is none, as C's strtod has it.
func debugSleep(c *command.Ctx) error {
	const longestSec = 1e9
	seconds, ok := command.ParseFloat(c.Args[2])
	if !ok || seconds <= 0 {
		c.Out.SimpleString("OK")
		return nil
	}
	return c.Block(nil, int64(math.Ceil(min(seconds, longestSec)*1e6)), replyOK)
}
