package rdb_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// library is the code of a library of functions, with a comment to make it long.
func library(name, comment string) string {
	return "#!lua name=" + name + "\nredis.register_function('" + name + "_f', function() return 1 end) -- " + comment
}

// TestFunctionsMoveBetweenRedisAndUs: what Redis dumps is read, and what is written of
// it Redis restores.
func TestFunctionsMoveBetweenRedisAndUs(t *testing.T) {
	t.Parallel()
	conn := connect(t, difftest.Redis(t))
	want := []string{library("a", ""), library("b", strings.Repeat("compress ", 1000)), library("c", strings.Repeat("xyz", 30_000))}
	for _, code := range want {
		do(t, conn, "FUNCTION", "LOAD", code)
	}
	read := readFunctions(t, do(t, conn, "FUNCTION", "DUMP").Text)
	slices.Sort(read)
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("-loaded +read:\n%s", diff)
	}
	ours := string(rdb.AppendFunctions(nil, slices.Values(read)))
	do(t, conn, "FUNCTION", "RESTORE", ours, "FLUSH")
	again := readFunctions(t, do(t, conn, "FUNCTION", "DUMP").Text)
	slices.Sort(again)
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("-loaded +restored:\n%s", diff)
	}
}

func readFunctions(t *testing.T, payload string) (codes []string) {
	t.Helper()
	if !rdb.CheckPayload([]byte(payload)) {
		t.Fatal("the payload is said to be damaged")
	}
	for code, err := range rdb.DecodeFunctions([]byte(payload)) {
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, string(code))
	}
	return codes
}

func TestPayloadOfOtherThingsThanFunctions(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]error{"\xf6": rdb.ErrOldFunction, "\x00\x01v": rdb.ErrNotFunction, "\xf5\x05abc": &rdb.Error{}} {
		var got error
		n := 0
		for _, err := range rdb.DecodeFunctions(sealed([]byte("\xf5\x02ok" + body))) {
			n, got = n+1, err
		}
		var place *rdb.Error
		if n != 2 || !errors.Is(got, want) && !errors.As(got, &place) {
			t.Errorf("%q: after %d records: %v", body, n, got)
		}
	}
}
