package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// TestRequestsRunInTheOrderInWhichOneProgramSendsThem, on whatever connections, as Redis runs
// them: clients that block one after another, without waiting until the server has heard of the
// one before, are served in that order, and by what is sent after that.
func TestRequestsRunInTheOrderInWhichOneProgramSendsThem(t *testing.T) {
	const rounds = 200
	for name, c := range map[string]struct {
		block, give string
		reply       func(i int) string
	}{
		"BLPOP": {
			"BLPOP queue 0", "RPUSH queue %d",
			func(i int) string { return fmt.Sprintf("*2 $5 queue $2 %d", i) },
		},
		"BZPOPMIN": {
			"BZPOPMIN queue 0", "ZADD queue %[1]d %[1]d",
			func(i int) string { return fmt.Sprintf("*3 $5 queue $2 %[1]d $2 %[1]d", i) },
		},
		"XREAD": {
			"XREAD BLOCK 0 STREAMS queue $", "XADD queue %d-1 f v", // the first entry is for all
			func(int) string { return "*1 *2 $5 queue *1 *2 $4 10-1 *2 $1 f $1 v" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, server.Options{})
			all := peers(t, listen(t, s))
			giver, other := newPeer(t, all[0].conn.RemoteAddr()), newPeer(t, all[0].conn.RemoteAddr())
			for range rounds {
				// What epoll has told of stays in its list until it is asked again, in front of what comes then.
				for range 2 {
					other.send("PING")
					other.expect("+PONG")
				}
				for i, p := range all {
					if p.send(c.block); i == 0 {
						p.send("PING") // behind a blocked request
					}
				}
				for i := range all {
					giver.send(fmt.Sprintf(c.give, 10+i))
				}
				for i, p := range all {
					p.expect(strings.Fields(c.reply(10 + i))...)
					giver.line()
				}
				all[0].expect("+PONG")
				if giver.send("DEL queue"); name == "XREAD" {
					for range all {
						giver.line()
					}
				}
				giver.line()
			}
		})
	}
}
