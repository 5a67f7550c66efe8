package classic_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/signalbox-io/signalbox/classic"
)

func guild(a *actor) classic.Guild { return classic.Guild{Client: a.Client, Name: "g"} }

func join(t *testing.T, s *server, members ...string) {
	t.Helper()
	g := classic.Guild{Client: classic.Client{Redis: s.admin}, Name: "g"}
	for _, member := range members {
		must(t, g.Join(t.Context(), member))
	}
}

func wantMembers(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGuildCompletesThePrefix(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		g := guild(a)
		join(t, s, "aaron", "jean", "jeannie", "jeff", "zoe", "left")
		must(t, g.Leave(t.Context(), "left"))
		for prefix, want := range map[string][]string{
			"": {"aaron", "jean", "jeannie", "jeff", "zoe"}, "je": {"jean", "jeannie", "jeff"}, "jean": {"jean", "jeannie"},
			"z": {"zoe"}, "zz": {}, "left": {}, "a": {"aaron"},
		} {
			wantMembers(t, get(g.Complete(t.Context(), prefix))(t), want)
		}
		if n := s.admin.ZCard(t.Context(), "members:g").Val(); n != 5 {
			t.Errorf("%d members, want 5: markers were left", n)
		}
		for i := range 12 {
			join(t, s, fmt.Sprint("m", string(rune('a'+i))))
		}
		wantMembers(t, get(g.Complete(t.Context(), "m"))(t), []string{"ma", "mb", "mc", "md", "me", "mf", "mg", "mh", "mi", "mj"})
	})
}

func TestGuildQuestionsDisturbEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		join(t, s, "bob")
		a, b := s.actor(t, "a"), s.actor(t, "b")
		var found []string
		asking := a.begin(t, into(&found, func() ([]string, error) { return guild(a).Complete(t.Context(), "b") })).
			step("zadd", "watch", "zrank", "zrank")
		wantMembers(t, get(guild(b).Complete(t.Context(), "x"))(t), []string{}) // of something else altogether
		must(t, asking.step("multi zrem zrange exec", "watch", "zrank", "zrank").finish())
		wantMembers(t, found, []string{"bob"})
	})
}

func TestGuildCrashLeavesMarkersThatCount(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		join(t, s, "bob")
		for i := range 10 {
			b := s.actor(t, fmt.Sprint("b", i))
			b.begin(t, func() error { _, err := guild(b).Complete(t.Context(), "b"); return err }).step("zadd").crash("watch")
		}
		a := s.actor(t, "a")
		wantMembers(t, get(guild(a).Complete(t.Context(), "b"))(t), []string{})
		if n := s.admin.ZCard(t.Context(), "members:g").Val(); n != 21 {
			t.Errorf("%d are in the guild, want bob and 20 markers", n)
		}
	})
}

func TestGuildPrefixBeforeAllMembersAnswersAll(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		var all []string
		for i := range 26 {
			all = append(all, fmt.Sprint("m", string(rune('a'+i))))
		}
		join(t, s, all...)
		wantMembers(t, get(guild(s.actor(t, "a")).Complete(t.Context(), "a"))(t), all)
	})
}

func TestGuildOtherCharactersAnswerOthers(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		join(t, s, "Zoe", "aaron", "bob", "carl")
		if got := get(guild(s.actor(t, "a")).Complete(t.Context(), "A"))(t); !slices.Contains(got, "bob") {
			t.Errorf("A is completed to %q; bob was to be expected", got)
		}
	})
}

func TestGuildRefusesBadInput(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		wantErr(t, guild(a).Join(t.Context(), ""), classic.ErrInvalid)
		wantErr(t, guild(a).Join(t.Context(), "a{b"), classic.ErrInvalid)
		_, err := classic.Guild{Client: a.Client}.Complete(t.Context(), "a")
		wantErr(t, err, classic.ErrInvalid)
		wantErr(t, classic.Guild{Name: "g"}.Leave(t.Context(), "a"), classic.ErrInvalid)
		s.wantNoKeys(t)
	})
}
