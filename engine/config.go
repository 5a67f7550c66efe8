package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// Config is a configuration in the language of redis.conf. It serves one
// engine.
type Config struct {
	settings *conf.Settings
	path     string
}

// ReadConfig reads a redis.conf, if path is not "", with the files that it
// includes, and then the settings, each written name=value. All directives of
// Redis 7.0 are known; Ignored lists those that mean nothing here. Any other
// is an error that names the file and the line, as is a directive that must not
// be ignored, such as replicaof.
func ReadConfig(path string, settings ...string) (*Config, error) {
	c := &Config{settings: conf.New()}
	if path != "" {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		c.path = absolute // CONFIG REWRITE finds it wherever the process has gone
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := c.settings.Load(conf.File{Path: path, Text: string(text)}, openConfigs); err != nil {
			return nil, err
		}
	}
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return nil, fmt.Errorf("%s: write a setting as name=value", setting)
		}
		if err := c.settings.Directive([]string{name, value}); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c, nil
}

// openConfigs reads the files of an include directive. A pattern may match
// none; a name must exist.
func openConfigs(pattern string) ([]conf.File, error) {
	paths := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		paths = matches
	}
	var files []conf.File
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, conf.File{Path: path, Text: string(text)})
	}
	return files, nil
}

// Ignored lists the parameters that were given and change nothing here.
func (c *Config) Ignored() []string { return slices.Clone(c.settings.Ignored()) }

// Given reports whether any of these parameters was given, by a file or a
// setting. A name that Redis does not have was not.
func (c *Config) Given(names ...string) bool {
	return slices.ContainsFunc(names, c.settings.Given)
}

// HasPassword reports whether the configuration says who may log in.
func (c *Config) HasPassword() bool {
	return c.settings.Text("requirepass") != "" || len(c.settings.Users()) > 0 || c.settings.Text("aclfile") != ""
}

// Protected reports whether clients on other machines are refused as long as
// nobody needs a password: protected-mode.
func (c *Config) Protected() bool { return c.settings.Bool("protected-mode") }

// Listen opens the listeners that the configuration asks for: bind with port
// and with tls-port, which are for Serve and for ServeTLS. An address with a
// minus before it is passed over if it cannot be had.
func (c *Config) Listen() (plain, secure []net.Listener, err error) {
	plain, err = c.listen("port")
	if err == nil {
		secure, err = c.listen("tls-port")
	}
	if err == nil {
		return plain, secure, nil
	}
	for _, l := range slices.Concat(plain, secure) {
		err = errors.Join(err, l.Close())
	}
	return nil, nil, err
}

func (c *Config) listen(name string) (listeners []net.Listener, err error) {
	port := c.settings.Int(name)
	if port == 0 {
		return nil, nil
	}
	for _, word := range strings.Fields(c.settings.Text("bind")) {
		host, optional := strings.CutPrefix(word, "-")
		network := "tcp4"
		if strings.Contains(host, ":") {
			network, host = "tcp6", strings.TrimSuffix(host, "*")
		}
		l, err := net.Listen(network, net.JoinHostPort(strings.TrimSuffix(host, "*"), strconv.FormatInt(port, 10)))
		switch {
		case err == nil:
			listeners = append(listeners, l)
		case !optional:
			return listeners, err
		}
	}
	return listeners, nil
}

// Unix is the path of the Unix socket that the configuration asks for, "" if
// none, and its permissions, 0 if it says nothing of them.
func (c *Config) Unix() (path string, mode os.FileMode) {
	return c.settings.Text("unixsocket"), os.FileMode(c.settings.Int("unixsocketperm"))
}

// defaultSave is when Redis writes snapshots if nobody says otherwise.
const defaultSave = "3600 1 300 100 60 10000"

// keepIn makes the settings keep the data in a folder, or in memory.
func keepIn(o *server.Options, dir string, config *Config) error {
	if o.Settings == nil {
		o.Settings = conf.New()
	}
	if dir == "" {
		if o.Settings.Bool("appendonly") {
			return errors.New("appendonly yes: give Dir, the folder to keep the data in")
		}
		if o.Settings.Text("save") != "" {
			return errors.New("save " + o.Settings.Text("save") + ": give Dir, the folder to keep the data in")
		}
		return nil
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	o.Settings.Overrule("dir", absolute)
	if !o.Settings.Given("save") {
		o.Settings.Overrule("save", defaultSave)
	}
	// A redis.conf that does not mention it means Redis's default.
	if !o.Settings.Given("appendonly") && (config == nil || config.path == "") {
		o.Settings.Overrule("appendonly", "yes")
	}
	return nil
}

// Dir is the folder that the configuration names for the data; "" if it names none.
func (c *Config) Dir() string { return c.settings.Text("dir") }
