package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine"
)

// The addresses on which `serve` listens come from its flags and, where no flag says otherwise, from its configuration.

// door is a listener, and whether clients speak TLS there.
type door struct {
	net.Listener
	secure bool
}

func (d door) serve(e *engine.Engine) error {
	if d.secure {
		return e.ServeTLS(d.Listener)
	}
	return e.Serve(d.Listener)
}

// isWide reports whether other machines can reach the door.
func (d door) isWide() bool {
	address, ok := d.Addr().(*net.TCPAddr)
	return ok && !address.IP.IsLoopback()
}

// doorParameters are what a configuration says of TCP addresses.
var doorParameters = []string{"port", "bind", "tls-port"}

// bindOf are the addresses of doors, as redis.conf writes them.
func bindOf(doors []door) string {
	var hosts []string
	for _, d := range doors {
		address, ok := d.Addr().(*net.TCPAddr)
		if !ok {
			continue
		}
		host := address.IP.String()
		if address.IP.IsUnspecified() {
			host = "* -::*"
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return strings.Join(hosts, " ")
}

func closeAll(doors []door) error {
	var err error
	for _, d := range doors {
		err = errors.Join(err, d.Close())
	}
	return err
}

// readConfig reads --config, --set, and the flags that stand for a parameter.
func (f serveFlags) readConfig() (*engine.Config, error) {
	settings := slices.Clone(f.set)
	if f.memory {
		settings = append(settings, "appendonly=no", "save=")
	}
	for name, value := range map[string]string{
		"tls-cert-file": f.tlsCert, "tls-key-file": f.tlsKey, "tls-ca-cert-file": f.tlsCA, "replicaof": f.replicaOf,
	} {
		if value != "" {
			settings = append(settings, name+"="+value)
		}
	}
	if f.tlsListen != "" && (f.tlsCert == "" || f.tlsKey == "") && f.config == "" && len(f.set) == 0 {
		return nil, usage("--tls-listen %s: give the certificate with --tls-cert and its key with --tls-key", f.tlsListen)
	}
	config, err := engine.ReadConfig(f.config, settings...)
	if err != nil {
		return nil, &exitError{exitUsage, absent(err, f.config, "a file like redis.conf")}
	}
	if f.tlsListen != "" && f.tlsCA == "" && !config.Given("tls-ca-cert-file", "tls-ca-cert-dir", "tls-auth-clients") {
		// Redis would refuse to start: it wants certificates of clients unless it is told not to.
		return engine.ReadConfig(f.config, append(settings, "tls-auth-clients=no")...)
	}
	return config, nil
}

// open opens the doors, plain TCP first.
func (f serveFlags) open(config *engine.Config, tcp bool) (doors []door, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(doors))
		}
	}()
	if doors, err = f.openTCP(config, tcp); err != nil {
		return doors, err
	}
	if f.tlsListen != "" {
		l, err := listenTCP("--tls-listen", f.tlsListen)
		if err != nil {
			return doors, err
		}
		doors = append(doors, door{l, true})
	}
	path, mode := config.Unix()
	if f.unix != "" {
		path, mode = f.unix, 0
	}
	if path == "" {
		return doors, nil
	}
	l, err := listenUnix(path)
	if err == nil {
		doors = append(doors, door{Listener: l})
		if mode != 0 {
			err = os.Chmod(path, mode)
		}
	}
	if err != nil {
		return doors, &exitError{exitUnavailable, fmt.Errorf("--unix: %w", err)}
	}
	return doors, nil
}

// openTCP opens what --listen says; without it, what the configuration says; and the default where nothing else is said.
func (f serveFlags) openTCP(config *engine.Config, tcp bool) (doors []door, err error) {
	path, _ := config.Unix()
	switch {
	case tcp:
	case config.Given(doorParameters...):
		plain, secure, err := config.Listen()
		if err != nil {
			return nil, &exitError{exitUnavailable, fmt.Errorf("the addresses of the configuration: %w", err)}
		}
		for _, l := range plain {
			doors = append(doors, door{Listener: l})
		}
		for _, l := range secure {
			doors = append(doors, door{l, true})
		}
		return doors, nil
	case f.unix != "" || f.tlsListen != "" || path != "":
		return nil, nil
	}
	l, err := listenTCP("--listen", f.listen)
	if err != nil {
		return nil, err
	}
	return []door{{Listener: l}}, nil
}

func listenTCP(flag, address string) (net.Listener, error) {
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return nil, usage("%s %s: %w; give HOST:PORT such as 127.0.0.1:7379", flag, address, err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &exitError{exitUnavailable, fmt.Errorf("%s %s: %w; give another port, or end who listens there", flag, address, err)}
	}
	return l, nil
}
