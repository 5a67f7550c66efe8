// Package address turns the URL of servers into a client for them. package signalbox describes the URLs, at Open.
package address

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const knownURLs = "redis://[user:password@]host:port/db, rediss://…, unix://[user:password@]/path?db=0, " +
	"redis+sentinel://[user:password@]host:port,host:port/master/db, rediss+sentinel://…, " +
	"redis+cluster://[user:password@]host:port,host:port, rediss+cluster://…"

// dialTimeout is go-redis's own.
const dialTimeout = 5 * time.Second

// target is a URL in its parts. net/url takes one host only, so the parts are told apart here.
type target struct {
	scheme   string // before a '+'
	topology string // behind it
	user     *url.Userinfo
	hosts    []string
	path     string
	query    url.Values
}

// Dial returns a client, and how to call the servers behind it.
func Dial(rawURL string) (client redis.UniversalClient, place string, err error) {
	t, err := parseTarget(rawURL)
	if err == nil {
		place = t.place()
		if client, err = t.client(); err == nil {
			return client, place, nil
		}
	}
	return nil, "", fmt.Errorf("%s; known are %s", redact(err, t.user), knownURLs)
}

// Place is the URL as it may be shown: without user, password and options. It is "" if the URL makes no sense.
func Place(rawURL string) string {
	t, err := parseTarget(rawURL)
	if err != nil {
		return ""
	}
	return t.place()
}

func parseTarget(rawURL string) (target, error) {
	var t target
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok || strings.ContainsAny(scheme, ":/@?#") {
		return t, errors.New("the URL has no scheme")
	}
	t.scheme, t.topology, _ = strings.Cut(scheme, "+")
	switch scheme {
	case "redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster":
	default:
		return t, fmt.Errorf("unknown scheme %q", scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	var err error
	if t.query, err = url.ParseQuery(query); err != nil {
		return t, errors.New("the query does not parse")
	}
	if strings.Contains(query, "@") {
		// More likely the ? belongs to a password, which would be taken for a host and be told to everybody.
		return t, errors.New("behind the ? stands an @: a ? in a password is written %3F, an @ in the query %40")
	}
	if rest, err = t.takeUser(rest); err != nil {
		return t, err
	}
	hosts, path, _ := strings.Cut(rest, "/")
	t.hosts = strings.Split(hosts, ",")
	if t.path, err = url.PathUnescape("/" + path); err != nil {
		return t, errors.New("the path is not escaped as a URL wants it: a % is written %25")
	}
	return t, nil
}

// takeUser takes user and password off what stands behind the scheme, and returns the rest. The path of a socket may
// hold an @ itself.
func (t *target) takeUser(rest string) (string, error) {
	at := strings.LastIndexByte(rest, '@')
	if t.scheme == "unix" {
		if strings.HasPrefix(rest, "/") {
			return rest, nil
		}
		if at = strings.Index(rest, "@/"); at < 0 {
			return "", errors.New("the path of the socket is missing, or does not begin with a /")
		}
	}
	if at < 0 {
		return rest, nil
	}
	name, password, _ := strings.Cut(rest[:at], ":")
	name, errName := url.PathUnescape(name)
	password, errPassword := url.PathUnescape(password)
	if errName != nil || errPassword != nil {
		return "", errors.New("the user or the password is not escaped as a URL wants it")
	}
	t.user = url.UserPassword(name, password)
	return rest[at+1:], nil
}

// place is the URL as it may be shown: without user, password and options.
func (t target) place() string {
	scheme := t.scheme
	if t.topology != "" {
		scheme += "+" + t.topology
	}
	return scheme + "://" + strings.Join(t.hosts, ",") + strings.TrimSuffix(t.path, "/")
}

// client makes the client that go-redis has for the topology. A client that retries by itself hides from the ledger
// that a call may have run twice, and one that ignores deadlines makes callers late: neither is wanted.
func (t target) client() (redis.UniversalClient, error) {
	switch t.topology {
	case "sentinel":
		return t.sentinel()
	case "cluster":
		return t.cluster()
	}
	options, err := t.options()
	if err != nil {
		return nil, err
	}
	return following(options), nil
}

// options are those of a client of one server.
func (t target) options() (*redis.Options, error) {
	if t.scheme == "unix" && t.path == "/" {
		return nil, errors.New("the path of the socket is missing")
	}
	if len(t.hosts) > 1 {
		return nil, fmt.Errorf("several hosts need the scheme %s+sentinel or %s+cluster", t.scheme, t.scheme)
	}
	files, err := t.takeCertificates()
	if err != nil {
		return nil, err
	}
	options, err := redis.ParseURL(t.single())
	if err != nil {
		return nil, err
	}
	files.to(options.TLSConfig)
	options.MaxRetries, options.ContextTimeoutEnabled = -1, true
	options.DialTimeout = cmp.Or(options.DialTimeout, dialTimeout)
	return options, nil
}

// One is the client of one server that stays with it, wherever its data goes.
func One(rawURL string) (client *redis.Client, place string, err error) {
	t, err := parseTarget(rawURL)
	if err == nil && t.topology == "" {
		var options *redis.Options
		if options, err = t.options(); err == nil {
			options.DialerRetries = 1 // who gives a wrong URL is to hear of it
			return redis.NewClient(options), t.place(), nil
		}
	}
	if err == nil {
		return nil, "", errors.New("give one server: redis://, rediss:// or unix://")
	}
	return nil, "", fmt.Errorf("%s; known are %s", redact(err, t.user), knownURLs)
}

// single is the URL of the first host.
func (t target) single() string {
	u := url.URL{Scheme: t.scheme, User: t.user, Host: t.hosts[0], Path: t.path, RawQuery: t.query.Encode()}
	return u.String()
}

func (t target) sentinel() (redis.UniversalClient, error) {
	options, err := t.failover()
	if err != nil {
		return nil, err
	}
	return redis.NewFailoverClient(options), nil
}

// failover is how the primary behind Sentinels is found.
func (t target) failover() (*redis.FailoverOptions, error) {
	master, db, _ := strings.Cut(strings.Trim(t.path, "/"), "/")
	if master == "" {
		return nil, errors.New("the name of the Sentinel master is missing")
	}
	name, password := t.query.Get("sentinel_username"), t.query.Get("sentinel_password")
	t.query.Del("sentinel_username")
	t.query.Del("sentinel_password")
	files, err := t.takeCertificates()
	if err != nil {
		return nil, err
	}
	user := t.user
	t.user, t.path = nil, "/"+db
	t.query.Set("master_name", master)
	t.query["addr"] = t.hosts[1:]
	options, err := redis.ParseFailoverURL(t.single())
	if err != nil {
		return nil, err
	}
	files.to(options.TLSConfig)
	if user != nil {
		options.Username = user.Username()
		options.Password, _ = user.Password()
	}
	options.SentinelUsername, options.SentinelPassword = name, password
	options.MaxRetries, options.ContextTimeoutEnabled = -1, true
	return options, nil
}

// Sentinels returns how to reach each of the Sentinels that a URL names, and what they call the primary.
func Sentinels(rawURL string) (sentinels []*redis.Options, master string, err error) {
	t, err := parseTarget(rawURL)
	if err != nil {
		return nil, "", errors.New(redact(err, t.user))
	}
	o, err := t.failover()
	if err != nil {
		return nil, "", errors.New(redact(err, t.user))
	}
	for _, addr := range o.SentinelAddrs {
		one := &redis.Options{
			Addr: addr, Username: o.SentinelUsername, Password: o.SentinelPassword, DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout,
			WriteTimeout: o.WriteTimeout, MaxRetries: -1, ContextTimeoutEnabled: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		if host, _, err := net.SplitHostPort(addr); err == nil && o.TLSConfig != nil {
			one.TLSConfig = o.TLSConfig.Clone()
			one.TLSConfig.ServerName = host
		}
		sentinels = append(sentinels, one)
	}
	return sentinels, o.MasterName, nil
}

func (t target) cluster() (redis.UniversalClient, error) {
	if strings.Trim(t.path, "/") != "" {
		return nil, errors.New("a Cluster has no databases to choose from")
	}
	files, err := t.takeCertificates()
	if err != nil {
		return nil, err
	}
	t.path = ""
	t.query["addr"] = t.hosts[1:]
	options, err := redis.ParseClusterURL(t.single())
	if err != nil {
		return nil, err
	}
	files.to(options.TLSConfig)
	options.MaxRetries, options.ContextTimeoutEnabled = -1, true
	return redis.NewClusterClient(options), nil
}

// redact keeps the password, and the URL that holds it, out of an error's text.
func redact(err error, user *url.Userinfo) string {
	var parse *url.Error
	if errors.As(err, &parse) {
		return "host and port do not parse" // what it quotes may be a password that somebody forgot to escape
	}
	text := err.Error()
	if password, ok := user.Password(); ok && password != "" {
		text = strings.ReplaceAll(text, password, "xxxxx")
	}
	return text
}
