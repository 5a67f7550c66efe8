package benchmark

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// Table 4.4 of the book went over four links: a Unix socket, loopback, a switch at 0.271 ms, and a VPN at 48 ms, there
// and back. The first two are there if the server has them and is on this machine. The others are a proxy in this
// program that delays each way by half of what is missing to the round trip that is wanted; what it is then is measured
// and reported. Bandwidth is not emulated.

// link is one way to the server.
type link struct {
	name          string
	network, addr string
	tls           *tls.Config
	wanted        time.Duration // the round trip that is emulated, 0 for a real link
	roundTrip     time.Duration // the median that was measured
	proxy         *faultproxy.Proxy
}

// emulated are the links of the book that a single machine does not have.
var emulated = []struct {
	name   string
	wanted time.Duration
}{
	{"0.27 ms, emulated", 271 * time.Microsecond},
	{"48 ms, emulated", 48 * time.Millisecond},
}

// links finds the ways to the server. The caller closes them.
func (s *Server) links(ctx context.Context) (_ []*link, err error) {
	links := s.realLinks(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, closeLinks(links))
		}
	}()
	for _, l := range links {
		if l.roundTrip, err = s.roundTrip(ctx, l, pings); err != nil {
			return nil, err
		}
	}
	last := links[len(links)-1] // TCP, if there is that
	for _, e := range emulated {
		l := &link{name: e.name, network: "tcp", tls: last.tls, wanted: e.wanted}
		if l.proxy, err = faultproxy.ListenFor(last.network, last.addr); err != nil {
			return nil, err
		}
		links = append(links, l)
		l.addr = l.proxy.Addr()
		if err = s.calibrate(ctx, l); err != nil {
			return nil, err
		}
	}
	return links, nil
}

// realLinks are the way that the URL says, and the other of Unix socket and loopback if the server tells of it and it
// leads to the same server. The Unix socket comes first.
func (s *Server) realLinks(ctx context.Context) []*link {
	o := s.options
	given := &link{name: "Unix socket", network: o.Network, addr: o.Addr, tls: o.TLSConfig}
	if o.Network == "unix" {
		port, _ := strconv.Atoi(s.parameter(ctx, "port"))
		other := &link{name: "loopback", network: "tcp", addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
		if port > 0 && s.isBehind(ctx, other) {
			return []*link{given, other}
		}
		return []*link{given}
	}
	host, _, _ := net.SplitHostPort(o.Addr)
	if !isLocal(host) {
		given.name = "as given"
		return []*link{given}
	}
	given.name = "loopback"
	other := &link{name: "Unix socket", network: "unix", addr: s.parameter(ctx, "unixsocket")}
	if other.addr != "" && s.isBehind(ctx, other) {
		return []*link{other, given}
	}
	return []*link{given}
}

// parameter is one of the server's configuration, "" if it does not tell.
func (s *Server) parameter(ctx context.Context, name string) string {
	return s.admin.ConfigGet(ctx, name).Val()[name]
}

// isBehind reports whether a link leads to this server.
func (s *Server) isBehind(ctx context.Context, l *link) bool {
	client := s.client(l)
	defer client.Close() //nolint:errcheck // nothing is left to be sent
	info, err := serverInfo(ctx, client)
	return err == nil && s.id != "" && info["run_id"] == s.id
}

// pings is how many empty round trips make a median, on a link that is short.
const pings = 200

// roundTrip is the median of empty round trips.
func (s *Server) roundTrip(ctx context.Context, l *link, n int) (time.Duration, error) {
	client := s.client(l)
	defer client.Close() //nolint:errcheck // nothing is left to be sent
	took := make([]time.Duration, 0, n)
	for i := range n + 1 {
		sent := time.Now()
		if err := client.Ping(ctx).Err(); err != nil {
			return 0, fmt.Errorf("%s: %w", l.name, err)
		}
		if i > 0 { // the first has connected
			took = append(took, time.Since(sent))
		}
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// long is from where on a link is so long that what a delay is off by does not matter.
const long = 10 * time.Millisecond

// calibrate sets the delay of an emulated link so that its round trip is as wanted. What the way to the server and the
// proxy take by themselves is measured first, and on a short link what the delay is off by is made up for.
func (s *Server) calibrate(ctx context.Context, l *link) (err error) {
	if l.roundTrip, err = s.roundTrip(ctx, l, pings); err != nil {
		return err
	}
	n, corrections, delay := pings, 2, time.Duration(0)
	if l.wanted > long {
		n, corrections = 5, 1
	}
	for range corrections {
		delay += (l.wanted - l.roundTrip) / 2
		if delay <= 0 {
			l.proxy.Restore()
			delay = 0
		} else {
			way := faultproxy.Direction{Delay: delay}
			l.proxy.Set(faultproxy.Fault{Requests: way, Replies: way})
		}
		if l.roundTrip, err = s.roundTrip(ctx, l, n); err != nil {
			return err
		}
	}
	return nil
}

func closeLinks(links []*link) error {
	var errs []error
	for _, l := range links {
		if l.proxy != nil {
			errs = append(errs, l.proxy.Close())
		}
	}
	return errors.Join(errs...)
}

// notes say what a reader of the rows must know of the links.
func notes(links []*link) []string {
	var notes []string
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.name
		if l.wanted > 0 && l.roundTrip > l.wanted*3/2 {
			notes = append(notes, fmt.Sprintf("%s: it takes longer than that, because the server is far away or the machine busy", l.name))
		}
	}
	for _, name := range []string{"Unix socket", "loopback"} {
		if !slices.Contains(names, name) {
			notes = append(notes, fmt.Sprintf("%s: not measured, this server is not reached by one", name))
		}
	}
	return notes
}
