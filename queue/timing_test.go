package queue

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What clocks do in spring and autumn neither doubles a tick nor moves it.
func TestCronWhenClocksChange(t *testing.T) {
	for _, c := range []struct {
		from string
		want []string
	}{
		{"2026-03-28T00:00:00Z", []string{"2026-03-28T02:30:00+01:00", "2026-03-30T02:30:00+02:00"}},
		{"2026-10-24T00:00:00Z", []string{"2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
	} {
		at, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range c.want {
			if at, err = Cron("30 2 * * *", "Europe/Berlin").after(at); err != nil {
				t.Fatal(err)
			}
			got = append(got, at.Format(time.RFC3339))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}
