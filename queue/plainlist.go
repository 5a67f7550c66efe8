package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// A plain list is a Redis list to which any program may push, as the book's chapter on task queues has it:
//
//	RPUSH queue:email '["send_email", ["x@y", "hello"]]'
//
// A worker that takes from it makes a job of each line: of the kind that the line names, with the array as its arguments. The
// lines leave the list in the transition in which their jobs are enqueued, so that none is lost or doubled. A line that is no
// job goes to the list's name with ":bad" behind it.

// TakeFrom has a worker make jobs of the lines of plain lists, while it runs. In a Cluster a list has the queue's hash tag:
// for the queue "app" that is {app}.
func TakeFrom(lists ...string) WorkerOption {
	return func(w *Worker) {
		for _, list := range lists {
			if err := store.CheckName("list", list, maxKeyBytes); err != nil && w.err == nil {
				w.err = err
			}
		}
		w.lists = append(w.lists, lists...)
	}
}

// listWait is for how long one command waits for a line: less than clients wait for an answer.
const listWait = 2 * time.Second

// takeFrom makes jobs of lines until ctx ends.
func (w *Worker) takeFrom(ctx context.Context, list string) {
	for failures := 1; ctx.Err() == nil; {
		lines, err := w.queue.store.Peek(ctx, list, listWait)
		if err == nil && len(lines) > 0 {
			err = w.takeIn(ctx, list, lines)
		}
		if err == nil {
			failures = 1
			continue
		}
		if ctx.Err() != nil {
			return
		}
		w.tell(Event{What: Failing, Err: err})
		if !ledger.Retryable(err) {
			failures = max(failures, 10) // somebody has to see to it: look again now and then
		}
		if failures++; !w.queue.pause(ctx, failures) {
			return
		}
	}
}

func (w *Worker) takeIn(ctx context.Context, list string, lines []string) error {
	taken := store.Lines{List: list, Text: lines}
	var items []store.Item
	for i, line := range lines {
		item, err := parseLine(line)
		if err != nil {
			taken.Bad = append(taken.Bad, i)
			w.tell(Event{What: BadLine, Err: fmt.Errorf("list %q: %.200q: %w", list, line, err)})
			continue
		}
		item.ID = w.queue.newID()
		items = append(items, item)
	}
	_, err := w.queue.store.Intake(ctx, taken, items)
	return err
}

// parseLine reads ["kind", [argument, …]].
func parseLine(line string) (store.Item, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(line), &parts); err != nil {
		return store.Item{}, err
	}
	var kind string
	if len(parts) != 2 || json.Unmarshal(parts[0], &kind) != nil || !bytes.HasPrefix(parts[1], []byte("[")) {
		return store.Item{}, errors.New("it is not a name and an array of arguments")
	}
	r := Define[json.RawMessage, None](kind).With(parts[1])
	return r.item, r.err
}
