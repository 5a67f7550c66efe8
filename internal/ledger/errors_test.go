package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// serverError is what a transport makes of an error reply.
func serverError(text string) error { return &transport.ServerError{Text: text} }

func TestFailuresAreClassified(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, test := range []struct {
		err               error
		sentinel          error
		retryable, undone bool
	}{
		{serverError("LOADING Redis is loading the dataset in memory"), ErrUnavailable, true, true},
		{serverError("BUSY Redis is busy running a script."), ErrUnavailable, true, true},
		{serverError("READONLY You can't write against a read only replica."), ErrUnavailable, true, true},
		{serverError("MASTERDOWN Link with MASTER is down"), ErrUnavailable, true, true},
		{serverError("TRYAGAIN Multiple keys request during rehashing of slot"), ErrUnavailable, true, true},
		{serverError("CLUSTERDOWN The cluster is down"), ErrUnavailable, true, true},
		{serverError("OOM command not allowed when used memory > 'maxmemory'."), ErrUnavailable, true, true},
		{serverError("ERR max number of clients reached"), ErrUnavailable, true, true},
		{serverError("NOPERM this user has no permissions"), ErrServer, false, true},
		{serverError("ERR Script attempted to access a non local key in a cluster node script: c1bd, on @user_script:110."), ErrUnavailable, true, false},
		{serverError("ERR Script killed by user with SCRIPT KILL. script: c1bd, on @user_script:1."), ErrUnavailable, true, false},
		{serverError("NOPERM User x has no permissions script: c1bd, on @user_script:110."), ErrServer, false, false},
		{serverError("WRONGTYPE Operation against a key"), ErrWrongType, false, true},
		{refused, ErrUnavailable, true, true},
		{io.ErrUnexpectedEOF, ErrUnavailable, true, false},
		{context.DeadlineExceeded, ErrUnavailable, true, false},
		{context.Canceled, ErrUnavailable, false, false},
		{transport.ErrClosed, ErrUnavailable, false, false},
		{fmt.Errorf("all sentinels unreachable: %w", transport.ErrUnsent), ErrUnavailable, true, true},
	} {
		err := failure("acquire", "a name", test.err)
		if !errors.Is(err, test.sentinel) || !errors.Is(err, test.err) || !strings.Contains(err.Error(), `"a name"`) {
			t.Errorf("%v became %v, want %v", test.err, err, test.sentinel)
		}
		if Retryable(err) != test.retryable || Undone(err) != test.undone {
			t.Errorf("%v: retryable %v, undone %v", err, Retryable(err), Undone(err))
		}
	}
}
