package signalbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/signalbox-io/signalbox/internal/address"
)

// Open connects to the servers behind a URL and makes sure that they can be worked with. Known are
//
//	redis://[user:password@]host:port/db                              one server; rediss with TLS
//	unix://[user:password@]/path/to/socket?db=0                       one server on this machine
//	redis+sentinel://[user:password@]host:port,host:port/master/db    Sentinels; rediss+sentinel with TLS
//	redis+cluster://[user:password@]host:port,host:port               a Cluster; rediss+cluster with TLS
//
// The query may hold the options of go-redis, such as ?read_timeout=1s. The password is the data servers'; Sentinels
// that want one are given ?sentinel_username= and ?sentinel_password=. With TLS, ?cacert= names a PEM file of the
// certificates to trust in place of the system's, and ?cert= and ?key= those of the certificate to show.
func Open(ctx context.Context, rawURL string, options ...Option) (*Box, error) {
	client, place, err := address.Dial(rawURL)
	if err != nil {
		return nil, fmt.Errorf("open: %w: %w", ErrInvalid, err)
	}
	b := New(client, options...)
	b.closeClient = client.Close
	if err := b.checkServer(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", place, err), b.Close())
	}
	return b, nil
}
