// Package given is what the pages of documentation take for granted around the Go that they show: what they import, and
// names whose meaning is told by the text or by themselves.
package given

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"

	"shop"
	jobs "shop"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/autocomplete"
	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/logging"
	"github.com/signalbox-io/signalbox/metrics"
	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
	"github.com/signalbox-io/signalbox/queue/history/sqlsink"
	"github.com/signalbox-io/signalbox/queue/outbox"
	"github.com/signalbox-io/signalbox/queue/queuetest"
	"github.com/signalbox-io/signalbox/tracing"
)

var (
	ctx context.Context
	err error
	t   *testing.T
	url string

	client          *redis.Client
	pool            *pgxpool.Pool
	box             *signalbox.Box
	one, two, three *signalbox.Box
	mutex           *signalbox.Mutex
	lease           *signalbox.Lease
	q, empty        *queue.Queue
	w               *queue.Worker
	sink            history.Sink
)

// What is guarded by a lock.

func charge(ctx context.Context, token ...int64) error { return nil }
func buy(ctx context.Context, token int64)             {}
func call(ctx context.Context) error                   { return nil }
func schedule(ctx context.Context, token int64) error  { return nil }
func export(ctx context.Context) error                 { return nil }
func rebuild(ctx context.Context) error                { return nil }

// What is dictionaries' and queues'.

type (
	Mail       = shop.Mail
	Receipt    = shop.Receipt
	Contact    struct{}
	Served     struct{}
	Caller     struct{}
	ReportArgs struct{}
	Scene      struct{}
	Image      struct{}
)

var (
	SendMail = queue.Define[Mail, Receipt]("mail.send")
	Call     = queue.Define[Caller, queue.None]("call")
	Chat     = queue.Define[Caller, queue.None]("chat")
	Report   = queue.Define[ReportArgs, queue.None]("report")
	Sweep    = queue.Define[queue.None, queue.None]("sweep")

	entries    iter.Seq[autocomplete.Entry]
	mail, m    Mail
	caller     Caller
	sent, size int
)

func sendMail(ctx context.Context, j *queue.Job[Mail]) (Receipt, error) { return Receipt{}, nil }

func talk(ctx context.Context, j *queue.Job[Caller]) (queue.None, error) { return queue.None{}, nil }

var anna interface {
	Wants(kind, key string, until time.Time) bool
}

var smtp interface {
	Send(ctx context.Context, to, text string) (Receipt, error)
	SendAll(ctx context.Context, mails []*queue.Job[Mail]) []error
}

type protobuf struct{}

func (protobuf) Name() string                       { return "" }
func (protobuf) Encode(value any) ([]byte, error)   { return nil, nil }
func (protobuf) Decode(data []byte, into any) error { return nil }
