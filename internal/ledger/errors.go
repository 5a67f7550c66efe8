package ledger

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// What can go wrong. Every error of this package wraps one of these, and names the resource.
var (
	ErrInvalid           = errors.New("invalid argument")
	ErrUnavailable       = errors.New("server unavailable")
	ErrWrongType         = errors.New("key of another type in the way")
	ErrServer            = errors.New("server refused")
	ErrUnsupportedServer = errors.New("unsupported server")
	ErrNewer             = errors.New("a newer version is installed")
)

// passing are the beginnings of server errors that go away by themselves.
var passing = []string{
	"LOADING", "BUSY ", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "NOSCRIPT", "NOREPLICAS",
	"MOVED", "ASK", "MISCONF", "OOM", "max number of clients reached", nonLocal, killed,
}

// nonLocal is what a script is stopped with when its slot moves to another node and it comes to a key that does not
// exist, which it may itself have emptied. It has written by then; the next transition repairs that.
const nonLocal = "Script attempted to access a non local key"

// killed is what a script is stopped with by hand, and by an engine that closes. The same call may succeed later.
const killed = "Script killed by user"

// inScript is part of every error that stopped a script on its way.
const inScript = "on @user_script:"

// failure puts an error of a transition into words: which one, on what, and what to do about it.
func failure(verb, name string, err error) error {
	doing := fmt.Sprintf("%s %q", verb, name)
	if transport.HasPrefix(err, "WRONGTYPE") {
		return fmt.Errorf("%s: %w: look at the keys signalbox:{%s}* and remove the one that is not ours: %w",
			doing, ErrWrongType, encodeName.Replace(name), err)
	}
	return classify(doing, err)
}

// classify wraps an error of the client or the server in a sentinel, unless it has one.
func classify(doing string, err error) error {
	var answer *transport.ServerError
	sentinel := ErrUnavailable
	switch {
	case errors.Is(err, ErrUnavailable) || errors.Is(err, ErrServer) || errors.Is(err, ErrWrongType) ||
		errors.Is(err, ErrUnsupportedServer):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.As(err, &answer) && !isPassing(err):
		sentinel = ErrServer
	}
	if text := adviceOn(err); text != "" {
		return fmt.Errorf("%s: %w: %w; %s", doing, sentinel, err, text)
	}
	return fmt.Errorf("%s: %w: %w", doing, sentinel, err)
}

func isPassing(err error) bool {
	for _, prefix := range passing {
		if transport.HasPrefix(err, prefix) {
			return true
		}
	}
	return false
}

func unexpected(verb, name string, reply any) error {
	return fmt.Errorf("%s %q: %w: an answer that no version of Signalbox gives: %.200q",
		verb, name, ErrServer, fmt.Sprint(reply))
}

// Retryable says whether the same call may succeed later: the server was out of reach, or busy with something that
// passes.
func Retryable(err error) bool {
	return errors.Is(err, ErrUnavailable) && !errors.Is(err, transport.ErrClosed) && !errors.Is(err, context.Canceled)
}

// Undone says whether a call that failed with err surely did nothing: the server answered that it would not run it, or
// was never reached. Of any other failure nobody can know; a script that was stopped on its way has done something.
func Undone(err error) bool {
	var answer *transport.ServerError
	if errors.Is(err, transport.ErrUnsent) {
		return true
	}
	if errors.As(err, &answer) {
		return !strings.Contains(answer.Text, inScript)
	}
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "dial"
}
