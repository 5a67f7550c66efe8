package main

import (
	"errors"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/embedded"
)

func open(t *testing.T) *Store {
	t.Helper()
	store, err := OpenStore(t.Context(), filepath.Join(t.TempDir(), "accounts.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := store.Create(t.Context(), "17"); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestAStaleHolderIsRefusedByTheTable(t *testing.T) {
	store, ctx := open(t), t.Context()
	box, err := embedded.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	first, second, err := replaced(ctx, box.Box, "account:17")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Write(ctx, "17", first.Token(), 1); err != nil {
		t.Errorf("no newer holder has been seen yet: %v", err)
	}
	if _, err := store.Read(ctx, "17", second.Token()); err != nil {
		t.Error(err)
	}
	if err := store.Write(ctx, "17", first.Token(), 1000); !errors.Is(err, ErrStale) {
		t.Errorf("got %v, want ErrStale", err)
	}
	if err := store.Write(ctx, "17", second.Token(), 5); err != nil {
		t.Error(err)
	}
	if balance, err := store.Read(ctx, "17", second.Token()); err != nil || balance != 5 {
		t.Errorf("got %d, %v, want 5", balance, err)
	}
}

func TestTheServiceRefusesStaleTokens(t *testing.T) {
	server := httptest.NewServer(Service(open(t)))
	defer server.Close()
	for _, step := range []struct {
		token int64
		want  string
	}{{0, "428"}, {7, "204"}, {8, "204"}, {7, "412"}, {8, "204"}} {
		status, err := put(t.Context(), server.URL+"/accounts/17", step.token, 5)
		if err != nil || !strings.HasPrefix(status, step.want) {
			t.Errorf("token %d: got %q, %v, want %s", step.token, status, err, step.want)
		}
	}
}

func TestTheExampleRuns(t *testing.T) {
	if err := run(t.Context(), filepath.Join(t.TempDir(), "accounts.db")); err != nil {
		t.Fatal(err)
	}
}
