package acl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// TestLogIsBounded: it is strangers who fill it.
func TestLogIsBounded(t *testing.T) {
	var log Log
	for i := range 1000 {
		log.Add(Entry{Why: DeniedAuth, Object: "AUTH", User: fmt.Sprint(i)}, 10)
	}
	if entries := log.Latest(1 << 40); len(entries) != 10 || entries[0].User != "999" || entries[9].User != "990" {
		t.Errorf("%d entries: %v", len(entries), entries)
	}
	log.Add(Entry{Why: DeniedKey, Object: strings.Repeat("x", 1<<20)}, 10)
	if n := len(log.Latest(1)[0].Object); n > 4096 {
		t.Errorf("an object of %d bytes is kept", n)
	}
	log.Add(Entry{Why: DeniedAuth}, 0)
	if n := len(log.Latest(10)); n != 0 {
		t.Errorf("%d entries, none wanted", n)
	}
}

func TestDenialsAlikeAreCountedTogether(t *testing.T) {
	var log Log
	denied := func(object string, atMs int64) { log.Add(Entry{Why: DeniedKey, Object: object, AtMs: atMs}, 128) }
	denied("a", 0)
	denied("b", 0)
	denied("a", 60_000)
	denied("a", 120_001)
	entries := log.Latest(10)
	if len(entries) != 3 || entries[0].Count != 1 || entries[1].Count != 2 || entries[1].Object != "a" || entries[2].Object != "b" {
		t.Errorf("%+v", entries)
	}
}

// TestUnrestrictedUserIsNotChecked: rights that are taken from one who had all
// of them must count at once.
func TestUnrestrictedUserIsNotChecked(t *testing.T) {
	users := NewUsers(command.NewTable(command.Data()...))
	user := users.Default()
	for _, step := range []struct {
		rule string
		want bool
	}{
		{"-get", false},
		{"+get", false}, // single commands: there may be others in the future
		{"+@all", true},
		{"resetkeys", false},
		{"allkeys", true},
		{"resetchannels", false},
		{"&*", true},
		{"(~a)", true},
		{"reset", false},
	} {
		if err := users.Set(Default, []string{step.rule}, func(*User, *User) {}); err != nil {
			t.Fatal(err)
		}
		if got := user.Unrestricted(); got != step.want {
			t.Errorf("after %s: %v", step.rule, got)
		}
	}
}
