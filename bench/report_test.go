package main

import (
	"strings"
	"testing"
)

func TestMedianIsBetweenTheMiddleTwo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 2, 9}, 3},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestSentLeavesOutWhatScriptsCall(t *testing.T) {
	t.Parallel()
	before := calls{"evalsha": 10, "zadd": 100}
	after := calls{"evalsha": 30, "zadd": 140, "subscribe": 1, "set": 5, "info": 2}
	delta := after.since(before)
	if got := delta.sent(signalboxKind); got != 21 {
		t.Errorf("signalbox sent %d, want 20 EVALSHA and 1 SUBSCRIBE", got)
	}
	if got := delta.sent(redsyncKind); got != 26 {
		t.Errorf("redsync sent %d, want its 5 SET too", got)
	}
}

func TestReportTellsMissFromPass(t *testing.T) {
	t.Parallel()
	s := &section{Title: "T", Columns: []string{"a"}}
	s.atLeast("fast", 0.95, []float64{0.9, 1, 1.1})
	s.atMost("fair", 1.05, []float64{2, 1, 3})
	s.know("shown", []float64{1})
	r := &report{Sections: []*section{s}}
	if met, missed := r.tally(); met != 1 || missed != 1 {
		t.Errorf("%d met, %d missed, want 1 and 1", met, missed)
	}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pass", "MISS", "1 aims met, 1 missed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
}

func TestRequestsAreNamedForTheirConnection(t *testing.T) {
	t.Parallel()
	got := string(encode([]string{"EVALSHA", "k" + connectionMark}, "17"))
	if want := "*2\r\n$7\r\nEVALSHA\r\n$3\r\nk17\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScriptCallsTakeAnotherID(t *testing.T) {
	t.Parallel()
	call := scriptCall{argv: []string{"p:1", "1"}, id: "p:1"}
	if got := call.withID("q:2"); got[0] != "q:2" || got[1] != "1" || call.argv[0] != "p:1" {
		t.Errorf("got %v, left %v", got, call.argv)
	}
}
