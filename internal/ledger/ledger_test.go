package ledger

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesEncodeInjectivelyAndDecode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune("ab%{}257D:\x00é ")), 1, 40, MaxNameBytes).Draw(t, "name")
		resource, err := NewResource(name)
		if err != nil {
			t.Fatal(err)
		}
		state := resource.Keys()[0]
		tag := hashTag(name)
		if tag == "" {
			tag = name
		}
		for _, key := range append(resource.Keys(), resource.Events()) {
			if got := hashTag(key); got != encodeName.Replace(tag) {
				t.Fatalf("key %q is placed by %q, the name by %q", key, got, tag)
			}
		}
		if back, ok := NameOf(state); !ok || back != name {
			t.Fatalf("%q became %q, which decodes to %q", name, state, back)
		}
		for _, key := range resource.Keys()[1:] {
			if _, ok := NameOf(key); ok {
				t.Fatalf("%q passes for a state key", key)
			}
		}
	})
}

func TestBadNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", strings.Repeat("x", MaxNameBytes+1), "a\xffb"} {
		if _, err := NewResource(name); !errors.Is(err, ErrInvalid) {
			t.Errorf("name %.10q: got %v, want ErrInvalid", name, err)
		}
	}
}

func TestOldServersAreRefused(t *testing.T) {
	t.Parallel()
	for info, supported := range map[string]bool{
		"# Server\r\nredis_version:7.0.15\r\n":                              true,
		"# Server\r\nredis_version:8.2.0\r\n":                               true,
		"# Server\r\nredis_version:10.0.0\r\n":                              true,
		"# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\n":       true,
		"# Server\r\nredis_version:6.2.14\r\n":                              false,
		"# Server\r\n":                                                      false,
		"# Server\r\nredis_version:255.255.255\r\nos:Linux\r\n":             true,
		"# Server\r\nredis_version:6.2.6\r\nserver_name:something else\r\n": false,
	} {
		err := checkVersion(infoFields(info))
		if supported != (err == nil) || (err != nil && !errors.Is(err, ErrUnsupportedServer)) {
			t.Errorf("%q: got %v, supported %v", info, err, supported)
		}
	}
}
