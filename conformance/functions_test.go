package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// byFunction is a hook that has each transition run as a function of the library instead of as a script.
type byFunction struct {
	mu     sync.Mutex
	called map[string]int
}

// DialHook is part of redis.Hook.
func (f *byFunction) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is part of redis.Hook.
func (f *byFunction) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		f.change(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook is part of redis.Hook.
func (f *byFunction) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			f.change(cmd)
		}
		return next(ctx, cmds)
	}
}

// change makes EVALSHA digest an FCALL name: what follows is the same.
func (f *byFunction) change(cmd redis.Cmder) {
	words := cmd.Args()
	if words[0] != "evalsha" {
		return
	}
	digest, _ := words[1].(string)
	name := ledger.FunctionOf(digest)
	if name == "" {
		return
	}
	words[0], words[1] = "fcall", name
	f.mu.Lock()
	defer f.mu.Unlock()
	f.called[name]++
}

// The library keeps every promise when its transitions run as functions.
func TestFunctions(t *testing.T) {
	t.Parallel()
	hook := &byFunction{called: make(map[string]int)}
	t.Run("suite", func(t *testing.T) {
		exerciseFunctions(t, difftest.Redis(t).Addr, hook)
	})
	for _, line := range strings.Split(ledger.Library(), "\n") {
		name, is := strings.CutPrefix(line, "  function_name = '")
		name = strings.TrimSuffix(name, "',")
		elsewhere := name == "signalbox_version" || name == "signalbox_raise" // raise is a quorum's, which is many servers
		if is && !elsewhere && hook.called[name] == 0 {
			t.Errorf("%s was never called: which promise is about it?", name)
		}
	}
}

func TestFunctionsOfTheEngine(t *testing.T) {
	t.Parallel()
	t.Run("suite", func(t *testing.T) {
		addr := serveEngine(t)
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
		defer client.Close()
		known, err := client.Do(t.Context(), "command", "list").StringSlice()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(known, "fcall") {
			t.Skip("the engine has no functions")
		}
		exerciseFunctions(t, addr, &byFunction{called: make(map[string]int)})
	})
}

// exerciseFunctions installs the library and runs the suite over it.
func exerciseFunctions(t *testing.T, addr string, hook redis.Hook) {
	t.Helper()
	dial := func() *redis.Client {
		return redis.NewClient(&redis.Options{
			Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: time.Minute, // contexts decide
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
	}
	client := dial()
	defer client.Close()
	before, err := ledger.New(goredis.New(client)).InstallFunctions(t.Context())
	if err != nil || len(before) != 1 || before[0].Version != 0 {
		t.Fatal(fmt.Errorf("installed on %v: %w", before, err))
	}
	conformance.Exercise(t, func(t *testing.T) redis.UniversalClient {
		client := dial()
		client.AddHook(hook)
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
		return client
	})
}
