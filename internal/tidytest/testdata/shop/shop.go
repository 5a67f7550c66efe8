// Package shop is the program that pages are about when they name one, as shop or as jobs.
package shop

import (
	"context"

	"github.com/signalbox-io/signalbox/queue"
)

type (
	Mail    struct{ To, Text string }
	Receipt struct{ ID string }
)

var SendMail = queue.Define[Mail, Receipt]("mail.send")

func Order(ctx context.Context, q *queue.Queue, customer string) error { return nil }

func Send(ctx context.Context, j *queue.Job[Mail]) (Receipt, error) { return Receipt{}, nil }
