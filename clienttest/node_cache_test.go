package clienttest

import "testing"

func TestNodeRedisCache(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) { node(t, "node-redis-cache.mjs", addr) })
}
