package queue_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// gobs is a codec whose output is not text.
type gobs struct{}

func (gobs) Name() string { return "gob" }

func (gobs) Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	err := gob.NewEncoder(&out).Encode(value)
	return out.Bytes(), err
}

func (gobs) Decode(data []byte, into any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(into)
}

func TestAnotherCodec(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		kind := queue.Define[mail, receipt]("gob", queue.Encoding(gobs{}))
		w := q.Worker("w", queue.Use(func(next queue.Runner) queue.Runner {
			return func(ctx context.Context, task *queue.Task) ([]byte, error) {
				if task.Codec != "gob" || !bytes.Contains(task.Args, []byte("x@y")) {
					t.Errorf("middleware sees %s %q", task.Codec, task.Args)
				}
				return next(ctx, task)
			}
		}))
		kind.Handle(w, func(_ context.Context, j *queue.Job[mail]) (receipt, error) { return receipt{len(j.Args.To)}, nil })
		start(t, w)
		job, err := kind.Enqueue(within(t), q, mail{"x@y"})
		must(t, err)
		got, err := job.Wait(within(t))
		must(t, err)
		if got.Number != 3 {
			t.Errorf("the result is %+v", got)
		}
		info := becomes(t, q, job.ID(), queue.Done)
		if _, err := json.Marshal(info); err != nil || info.Codec != "gob" || !bytes.HasPrefix(info.Arguments, []byte(`"`)) {
			t.Errorf("it is seen as %+v: %v", info, err)
		}
		args, err := kind.Arguments(info)
		must(t, err)
		if args.To != "x@y" {
			t.Errorf("the arguments are %+v", args)
		}
		_, err = sendMail.Arguments(info)
		wantErr(t, err, queue.ErrInvalid)
		_, err = kind.Enqueue(within(t), q, mail{}, queue.Encoding(queue.JSON))
		wantErr(t, err, queue.ErrInvalid)
	})
}

// Arguments that do not decode end the job, and say what is wrong: to try again is no use.
func TestArgumentsThatDoNotDecode(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		for i, c := range []struct {
			want string
			make func(name string) queue.Request
		}{
			{"with json, into *queue_test.mail: json: cannot unmarshal string", func(name string) queue.Request {
				return queue.Define[string, receipt](name).With("x@y")
			}},
			{"they are encoded with gob, and this kind is decoded with json", func(name string) queue.Request {
				return queue.Define[mail, receipt](name, queue.Encoding(gobs{})).With(mail{"x"})
			}},
		} {
			kind := queue.Define[mail, receipt](fmt.Sprint("kind", i))
			w := q.Worker("w")
			kind.Handle(w, func(context.Context, *queue.Job[mail]) (receipt, error) {
				t.Error("the handler is called")
				return receipt{}, nil
			})
			stop := start(t, w)
			outcomes, err := q.EnqueueMany(within(t), c.make(kind.Name()))
			must(t, err)
			_, err = kind.Job(q, outcomes[0].ID).Wait(within(t))
			wantErr(t, err, queue.ErrDead)
			if !strings.Contains(err.Error(), fmt.Sprintf("the arguments of %q do not decode: ", kind.Name())) || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
			stop()
		}
	})
}
