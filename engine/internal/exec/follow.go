package exec

import "github.com/signalbox-io/signalbox/engine/internal/keyspace"

// The one place where a parameter meets what it governs. What is asked often is kept
// where it is needed, and follows the parameter: a number by its address, all else by a
// function. What is asked seldom may ask the settings instead, and needs no row here.

// follow makes the machine heed its parameters: now, and after each change.
func (m *Machine) follow() {
	for name, number := range m.followedNumbers() {
		m.heed(name, func() { *number = m.settings.Int(name) })
	}
	limits := &m.space.Limits
	for name, limit := range map[string]*int{
		"set-max-intset-entries": &limits.SetIntegers, "hll-sparse-max-bytes": &limits.HyperLogLogBytes,
		"hash-max-listpack-entries": &limits.HashEntries, "hash-max-listpack-value": &limits.HashBytes,
		"zset-max-listpack-entries": &limits.SortedSetEntries, "zset-max-listpack-value": &limits.SortedSetBytes,
		"stream-node-max-entries": &limits.StreamChunkEntries, "stream-node-max-bytes": &limits.StreamChunkBytes,
	} {
		m.heed(name, func() { *limit = int(m.settings.Int(name)) })
	}
	for name, apply := range m.followers() {
		m.heed(name, apply)
	}
	m.followPersistence()
	m.settings.OnChange("requirepass", func() error {
		m.users.Default().SetPassword(m.settings.Text("requirepass"))
		return nil
	})
	if m.options.ApplyTLS == nil {
		return
	}
	for _, name := range []string{
		"tls-cert-file", "tls-key-file", "tls-ca-cert-file", "tls-ca-cert-dir", "tls-auth-clients", "tls-protocols",
	} {
		m.settings.OnChange(name, m.options.ApplyTLS)
	}
}

// heed applies a parameter now and after each change.
func (m *Machine) heed(name string, apply func()) {
	apply()
	m.settings.OnChange(name, func() error {
		apply()
		return nil
	})
}

func (m *Machine) followedNumbers() map[string]*int64 {
	return map[string]*int64{
		"proto-max-bulk-len":        &m.maxBulkBytes,
		"busy-reply-threshold":      &m.busyReplyMs,
		"maxclients":                &m.limits.maxClients,
		"timeout":                   &m.limits.idleSec,
		"tcp-keepalive":             &m.limits.keepAliveSec,
		"client-query-buffer-limit": &m.limits.queryBufferBytes,
		"maxmemory-samples":         &m.memory.samples,
		"lfu-log-factor":            &m.space.LogFactor,
		"lfu-decay-time":            &m.space.DecayMin,
		"slowlog-log-slower-than":   &m.slowLog.slowerThanUs,
		"latency-monitor-threshold": &m.latency.thresholdMs,
		"maxmemory-clients":         &m.clients.limit,
	}
}

func (m *Machine) followers() map[string]func() {
	return map[string]func(){
		"acl-pubsub-default": func() {
			m.users.AllChannels = m.settings.Text("acl-pubsub-default") == "allchannels"
		},
		"client-output-buffer-limit": func() { m.limits.output = m.settings.Limits() },
		"maxmemory": func() {
			m.memory.maxBytes = m.settings.Int("maxmemory")
			m.memory.behind, m.memory.short = m.memory.maxBytes > 0, false
		},
		"maxmemory-policy": func() {
			policy, _ := keyspace.ParsePolicy(m.settings.Text("maxmemory-policy")) // the table knows the same
			m.space.SetPolicy(policy)
			m.memory.behind = m.memory.maxBytes > 0
		},
		"lazyfree-lazy-expire":     func() { m.space.LazyExpire = m.settings.Bool("lazyfree-lazy-expire") },
		"lazyfree-lazy-eviction":   func() { m.space.LazyEvict = m.settings.Bool("lazyfree-lazy-eviction") },
		"lazyfree-lazy-user-flush": func() { m.space.LazyFlush = m.settings.Bool("lazyfree-lazy-user-flush") },
		"lazyfree-lazy-user-del":   func() { m.space.LazyDel = m.settings.Bool("lazyfree-lazy-user-del") },
		"notify-keyspace-events":   func() { m.listen(m.settings.Text("notify-keyspace-events")) },
		"slowlog-max-len": func() {
			m.slowLog.maxLen = m.settings.Int("slowlog-max-len")
			m.slowLog.cut()
		},
		"tracking-table-max-keys": func() {
			m.tracker.maxKeys = m.settings.Int("tracking-table-max-keys")
			m.boundTracking()
		},
		"repl-backlog-size": func() {
			if m.repl.history.Keeps() {
				m.repl.history.Keep(m.settings.Int("repl-backlog-size"))
			}
		},
		"min-replicas-to-write": m.adjustStream,
		"min-replicas-max-lag": func() {
			m.countGood()
			m.adjustStream()
		},
		"latency-tracking": func() { m.latency.histograms = m.settings.Bool("latency-tracking") },
		"latency-tracking-info-percentiles": func() {
			m.latency.percentiles = parsePercentiles(m.settings.Text("latency-tracking-info-percentiles"))
		},
	}
}
