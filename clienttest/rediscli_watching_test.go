package clienttest

import (
	"bufio"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestRedisCLIFindsLargeKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		c := redisCLI(t, addr)
		c.run("SET small x\nSET large " + strings.Repeat("x", 10_000) + "\nRPUSH list 1 2 3\n")
		c.contains(c.run("", "--memkeys"), `Sampled 3 keys`, `Biggest string found .*"large".* has 1[0-9]{4} bytes`)
	})
}

// TestRedisCLIMonitors: it prints what others do, in order.
func TestRedisCLIMonitors(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		c := redisCLI(t, addr)
		monitor := exec.CommandContext(t.Context(), "redis-cli", slices.Concat(c.args, []string{"MONITOR"})...)
		out, err := monitor.StdoutPipe()
		must(t, "a pipe", err)
		must(t, "start", monitor.Start())
		lines := bufio.NewScanner(out)
		next := func() string {
			t.Helper()
			if !lines.Scan() {
				t.Fatalf("MONITOR ended: %v", lines.Err())
			}
			return lines.Text()
		}
		check(t, "confirmation", "OK", next(), nil)
		c.want("3", "", "-n", "2", "EVAL", "return redis.call('RPUSH', KEYS[1], 1, 2, 'a b')", "1", "list")
		for _, pattern := range []string{`\[2 [0-9.:]+\] "SELECT" "2"`, `\[2 [0-9.:]+\] "EVAL"`, `\[2 lua\] "RPUSH" "list" "1" "2" "a b"`} {
			c.contains(next(), pattern)
		}
		must(t, "kill", monitor.Process.Kill())
		_ = monitor.Wait() // killed
	})
}
