package logging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/logging"
)

func Example() {
	// What differs from run to run is left out.
	quiet := func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "id", "token", "wait", "hold":
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: quiet}))
	box, err := embedded.Open("", logging.Observer(logger, logging.Level(signalbox.Granted, slog.LevelInfo)))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := box.Mutex("invoice:42").Acquire(context.Background()); err != nil {
		fmt.Println(err)
	}
	// A holder that releases is not worth an error, a box that closes under it is.
	if err := box.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=INFO msg="lease granted" resource=invoice:42
	// level=ERROR msg="lease lost" resource=invoice:42 error="hold \"invoice:42\": box closed"
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bubble runs test in virtual time, with all levels logged, and returns what was.
func bubble(t *testing.T, test func(t *testing.T, box *embedded.Box), options ...logging.Option) (records []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		quiet := func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case slog.TimeKey:
				return slog.Attr{}
			case "id", "token":
				return slog.String(a.Key, "X") // there is one, but which it is nobody knows
			}
			return a
		}
		handler := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: quiet})
		box, err := embedded.Open("", logging.Observer(slog.New(handler), options...))
		must(t, err)
		test(t, box)
		must(t, box.Close())
		records = strings.Split(strings.TrimSpace(out.String()), "\n")
	})
	return records
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("logged\n%s\nwant\n%s", g, w)
	}
}

func TestEachHappeningIsOneRecord(t *testing.T) {
	got := bubble(t, func(t *testing.T, box *embedded.Box) {
		mutex := box.Mutex("m")
		first, err := mutex.Acquire(t.Context(), signalbox.Label("nightly"))
		must(t, err)
		if _, err := mutex.TryAcquire(t.Context()); !errors.Is(err, signalbox.ErrBusy) {
			t.Fatalf("got %v, want ErrBusy", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := mutex.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want DeadlineExceeded", err)
		}
		go func() {
			time.Sleep(5 * time.Second)
			if err := first.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		second, err := mutex.Acquire(t.Context()) // waits five seconds
		must(t, err)
		time.Sleep(2 * time.Second)
		_, err = box.ForceAll(t.Context(), "m")
		must(t, err)
		<-second.Done() // the box, which closes next, must not be the cause
	})
	// The holder hears of the force by a message or its next renewal, so its last record may differ in time alone.
	for i := range got {
		if strings.Contains(got[i], "lease lost") {
			got[i] = strings.Replace(got[i], "hold="+hold(got[i]), "hold=H", 1)
		}
	}
	equal(t, got,
		`level=DEBUG msg="lease granted" resource=m id=X token=X label=nightly wait=0s`,
		`level=DEBUG msg="acquisition refused" resource=m wait=0s error="acquire \"m\": busy: 1 of 1 permits held; the earliest lease expires in 30s"`,
		`level=WARN msg="acquisition failed" resource=m wait=100ms error="acquire \"m\": context deadline exceeded"`,
		`level=DEBUG msg="lease released" resource=m id=X token=X label=nightly hold=5.1s`,
		`level=INFO msg="lease granted" resource=m id=X token=X wait=5s`,
		`level=ERROR msg="lease lost" resource=m id=X token=X hold=H error="hold \"m\": ended by force"`,
	)
}

func hold(record string) string {
	_, after, _ := strings.Cut(record, "hold=")
	value, _, _ := strings.Cut(after, " ")
	return value
}

func TestLevelsCanBeChosen(t *testing.T) {
	work := func(t *testing.T, box *embedded.Box) {
		must(t, box.Mutex("m").Do(t.Context(), func(context.Context) error { return nil }))
	}
	equal(t, bubble(t, work, logging.Level(signalbox.Released, logging.Off), logging.Level(signalbox.Begun, slog.LevelWarn),
		logging.Slow(0), logging.SlowLevel(slog.LevelError)),
		`level=WARN msg="acquisition begun" resource=m`,
		`level=ERROR msg="lease granted" resource=m id=X token=X wait=0s`)
}

// A thousand leases that are late together are one record, and the next says how many were left out.
func TestLateRenewalsAreLoggedOnceInAWhile(t *testing.T) {
	const leases, ttl = 1000, 30 * time.Second
	got := bubble(t, func(t *testing.T, box *embedded.Box) {
		for i := range leases {
			_, err := box.Mutex(fmt.Sprint(i)).Acquire(t.Context(), signalbox.TTL(ttl))
			must(t, err)
		}
		time.Sleep(25 * time.Second) // two rounds of renewals
	}, logging.Late(0), logging.LateEvery(9*time.Second), logging.Level(signalbox.Granted, logging.Off),
		logging.Level(signalbox.Lost, logging.Off))
	if len(got) != 2 || !strings.Contains(got[0], "lease renewed late") || strings.Contains(got[0], "left_out") ||
		!strings.Contains(got[1], fmt.Sprintf("ttl=30s left_out=%d", leases-1)) {
		t.Errorf("logged\n%s\nwant a record for each round, the second with %d left out", strings.Join(got, "\n"), leases-1)
	}
}

func TestRenewalsInTimeAreNotLogged(t *testing.T) {
	got := bubble(t, func(t *testing.T, box *embedded.Box) {
		lease, err := box.Mutex("m").Acquire(t.Context())
		must(t, err)
		time.Sleep(time.Hour)
		must(t, lease.Release(t.Context()))
	})
	if len(got) != 2 {
		t.Errorf("logged %q, want a grant and a release", got)
	}
}
