package ledger

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// Whoever reads an error at night wants to know what to do. Servers say what is wrong in a word at the beginning; this
// table says what mends it. To add one: a line here, and in `passing` (errors.go) if it goes away by itself.
var advice = []struct{ prefix, text string }{
	{"LOADING", "it is still reading its data: try again when it has"},
	{"BUSY ", "a script has been running for too long: end it with SCRIPT KILL"},
	{"READONLY", "this is a replica: connect to the primary, or let Sentinels find it with redis+sentinel://; if the server was moved away, its key signalbox:moved names the new one"},
	{"MASTERDOWN", "this is a replica without its primary: connect to the primary"},
	{"NOREPLICAS", "too few replicas are connected: see min-replicas-to-write and INFO replication"},
	{"OOM", "its memory is full: raise maxmemory, or remove data"},
	{"MISCONF", "it cannot write to its disk: see its log"},
	{"MOVED", "this is one node of a Cluster: connect with redis+cluster://"},
	{nonLocal, "its keys are moving to another node of the Cluster: try again when they are there"},
	{killed, "somebody ended the script with SCRIPT KILL, or the server was being stopped: try again"},
	{"CLUSTERDOWN", "slots of the Cluster are without a primary: see CLUSTER INFO"},
	{"This instance has cluster support disabled", "this is no Cluster: connect with redis://"},
	{"NOAUTH", "give the user and the password in the URL, as in redis://user:password@host:port"},
	{"WRONGPASS", "check the user and the password in the URL"},
	{"NOPERM", "let this account call EVAL, EVALSHA, INFO and what the scripts call, in a Cluster SPUBLISH and SSUBSCRIBE " +
		"besides, on the keys ~signalbox:* and the channels &signalbox:*"},
	{"max number of clients reached", "raise maxclients, or end connections that are idle"},
}

// adviceOn says what to do about an error of the client or the server, "" if it does not know.
func adviceOn(err error) string {
	for _, line := range advice {
		if transport.HasPrefix(err, line.prefix) {
			return line.text
		}
	}
	var operation *net.OpError
	var network net.Error
	switch {
	case errors.As(err, &operation) && operation.Op == "dial":
		return "check that it runs, and its address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "check that it runs and is not overloaded"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), operation != nil:
		return "the connection broke: check that it runs"
	case strings.HasPrefix(err.Error(), "redis: can't parse"):
		return "what answers there is no Redis server: check the address"
	}
	return ""
}
