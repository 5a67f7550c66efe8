package classic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Queue is the task queue of Redis in Action, 6.4.1: a list of JSON texts
// ["name", [argument, …]], to which RPUSH adds and from which a Worker pops.
// Its key is "queue:" and the name. Any language can push.
//
// It promises that a task is handed to one worker at most, in order of arrival
// within a queue.
//
// It breaks:
//
//   - A worker crashes after BLPOP: the task is gone. So is one whose callback
//     fails, whose name nobody knows, or that is no JSON.
//   - The reply to BLPOP is lost: the same.
//   - The reply to RPUSH is lost and the caller pushes again: the task runs twice.
type Queue struct {
	Client
	// Name is the queue's. Required.
	Name string
}

// Push adds a task. The arguments must be what encoding/json can write.
func (q Queue) Push(ctx context.Context, task string, args ...any) error {
	packed, err := q.pack(task, args, func(args []any) any { return []any{task, args} })
	if err != nil {
		return err
	}
	return failed("queue", q.Name, q.Redis.RPush(ctx, queueKey(q.Name), packed).Err())
}

// pack checks a task and writes it as JSON.
func (q Queue) pack(task string, args []any, form func(args []any) any) ([]byte, error) {
	if err := q.check("queue", q.Name); err != nil {
		return nil, err
	}
	if task == "" {
		return nil, invalid("queue %q: the task's name is empty", q.Name)
	}
	if args == nil {
		args = []any{} // [] and not null: readers in other languages apply it
	}
	packed, err := json.Marshal(form(args))
	if err != nil {
		return nil, invalid("queue %q: the arguments of %q are no JSON: %v", q.Name, task, err)
	}
	return packed, nil
}

func queueKey(name string) string { return "queue:" + name }

// Callback runs a task with its arguments, each as it stands in the JSON.
type Callback func(ctx context.Context, args []json.RawMessage) error

// Worker runs the tasks of one or more queues, those of the first that has any
// first: one BLPOP of all of them, in their order, is the whole priority.
//
// It promises that no task of a queue starts while one before it in the order
// waits.
//
// It breaks as Queue does, and: while there is work in the first queue the last
// one starves.
type Worker struct {
	Client
	// Queues are names, the most urgent first. At least one.
	Queues []string
	// Callbacks are the tasks that the worker knows, by name.
	Callbacks map[string]Callback
	// Wait is how long one BLPOP waits, rounded up to whole seconds; 0 means 30
	// seconds. A context that ends is heard when the pop ends.
	Wait time.Duration
}

// TaskError is what went wrong with one task, which is lost. The worker goes on.
type TaskError struct {
	// Queue is the name of the queue it came from; Task its JSON as popped.
	Queue, Task string
	// Err is what the callback answered, ErrUnknownTask, or why it is no task.
	Err error
}

func (e *TaskError) Error() string {
	return fmt.Sprintf("classic: queue %q: task %.200q: %v", e.Queue, e.Task, e.Err)
}

// Unwrap returns Err.
func (e *TaskError) Unwrap() error { return e.Err }

// ErrUnknownTask is the error of a task that the worker has no callback for.
var ErrUnknownTask = errors.New("unknown task")

// Run runs tasks until ctx ends or the server fails, and returns why. What
// goes wrong with single tasks is handed to onError, which may be nil.
func (w Worker) Run(ctx context.Context, onError func(*TaskError)) error {
	for ctx.Err() == nil {
		_, err := w.RunOne(ctx)
		var task *TaskError
		switch {
		case errors.As(err, &task):
			if onError != nil {
				onError(task)
			}
		case err != nil:
			return err
		}
	}
	return context.Cause(ctx)
}

// RunOne waits for one task and runs it. It reports false if none came. What
// goes wrong with the task itself is a *TaskError.
func (w Worker) RunOne(ctx context.Context) (ran bool, err error) {
	keys, wait, err := w.check()
	if err != nil {
		return false, err
	}
	popped, err := w.Redis.BLPop(ctx, wait, keys...).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return false, nil
	case err != nil:
		return false, failed("queue", w.Queues[0], err)
	}
	queue, packed := popped[0][len(queueKey("")):], popped[1]
	task, err := unpack(packed)
	if err == nil {
		callback, known := w.Callbacks[task.name]
		if !known {
			err = fmt.Errorf("%w %q", ErrUnknownTask, task.name)
		} else {
			err = callback(ctx, task.args)
		}
	}
	if err != nil {
		return true, &TaskError{Queue: queue, Task: packed, Err: err}
	}
	return true, nil
}

// check refuses what no task can come to, and returns what to pop from.
func (w Worker) check() (keys []string, wait time.Duration, err error) {
	if len(w.Queues) == 0 {
		return nil, 0, invalid("worker: no queue is given")
	}
	for _, name := range w.Queues {
		if err := w.Client.check("queue", name); err != nil {
			return nil, 0, err
		}
		keys = append(keys, queueKey(name))
	}
	if w.Wait < 0 {
		return nil, 0, invalid("worker: the wait is %v: give a positive one", w.Wait)
	}
	if w.Wait == 0 {
		return keys, 30 * time.Second, nil
	}
	return keys, time.Duration(wholeSeconds(w.Wait)) * time.Second, nil
}

// task is what stands in a queue: [name, [args]], or as delayed tasks are
// written [id, queue, name, [args]].
type task struct {
	id, queue, name string
	args            []json.RawMessage
}

var errNoTask = errors.New(`not ["name", [arguments]] nor ["id", "queue", "name", [arguments]]`)

// unpack reads either form. In the book the worker reads the first only, and
// fails on each task that was delayed.
func unpack(packed string) (task, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(packed), &parts); err != nil {
		return task{}, errNoTask
	}
	var t task
	var into []any
	switch len(parts) {
	case 2:
		into = []any{&t.name, &t.args}
	case 4:
		into = []any{&t.id, &t.queue, &t.name, &t.args}
	}
	if into == nil {
		return task{}, errNoTask
	}
	for i, part := range parts {
		if err := json.Unmarshal(part, into[i]); err != nil {
			return task{}, errNoTask
		}
	}
	if t.name == "" || len(parts) == 4 && (t.id == "" || t.queue == "") {
		return task{}, errNoTask
	}
	return t, nil
}
