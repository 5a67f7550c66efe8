package queue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Codec turns the arguments and results of a kind into bytes, and back. Its name is written into each job, so that a worker
// that has another one says so instead of guessing. It is used by
// any number of goroutines.
type Codec interface {
	Name() string
	Encode(value any) ([]byte, error)
	Decode(data []byte, into any) error // into is a pointer
}

// Encoding sets the codec of a kind, which is JSON without it. It is given to Define, so that both sides have the same.
func Encoding(codec Codec) Option {
	return func(t *terms) {
		if codec == nil {
			t.refuse("Encoding without a codec")
			return
		}
		t.check("codec", codec.Name(), maxNameLen)
		t.codec = codec
	}
}

// JSON is the codec of kinds that have no other.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Name() string                       { return "json" }
func (jsonCodec) Encode(value any) ([]byte, error)   { return json.Marshal(value) }
func (jsonCodec) Decode(data []byte, into any) error { return json.Unmarshal(data, into) }

// envelope is what a producer writes for workers. The server does not look into it. JSON stands in it as it is, for people
// and other languages to read; what other codecs made is base64.
type envelope struct {
	Args      json.RawMessage `json:"args,omitempty"`
	Data      []byte          `json:"data,omitempty"`
	Codec     string          `json:"codec,omitempty"` // of Data
	TimeoutMs int64           `json:"timeout_ms,omitempty"`
	Attempts  int             `json:"attempts,omitempty"` // 0: DefaultAttempts, to be short
}

// attempts is how often the job is tried.
func (e *envelope) attempts() int { return cmp.Or(e.Attempts, DefaultAttempts) }

// codec is the kind's; a Kind that Define did not make has none of its own.
func (k Kind[A, R]) codec() Codec {
	if k.terms.codec == nil {
		return JSON
	}
	return k.terms.codec
}

// argsField is how an envelope begins. Most have nothing but arguments in them.
const argsField = `{"args":`

func parseEnvelope(text string) (env envelope, err error) {
	args, first := strings.CutPrefix(text, argsField)
	args, last := strings.CutSuffix(args, "}")
	if encoded := []byte(args); first && last && json.Valid(encoded) {
		return envelope{Args: encoded}, nil
	}
	if err := json.Unmarshal([]byte(text), &env); err != nil {
		return env, fmt.Errorf("the job does not decode: %w", err)
	}
	return env, nil
}

// text is the envelope as it is written. What JSON encoded may stand in it as it is.
func (e *envelope) text(codec Codec) (string, error) {
	if _, ours := codec.(jsonCodec); ours && e.TimeoutMs == 0 && e.Attempts == 0 && len(e.Args) > 0 {
		return argsField + string(e.Args) + "}", nil
	}
	text, err := json.Marshal(e)
	return string(text), err
}

// put writes arguments.
func (e *envelope) put(codec Codec, encoded []byte) {
	if codec.Name() == JSON.Name() {
		e.Args = encoded
		return
	}
	e.Codec, e.Data = codec.Name(), encoded
}

// arguments returns what put was given, and the name of its codec.
func (e *envelope) arguments() (encoded []byte, codec string) {
	if e.Codec == "" {
		return e.Args, JSON.Name()
	}
	return e.Data, e.Codec
}

// decode reads what a codec wrote. A codec that panics over what it is given has failed.
func decode(codec Codec, name string, encoded []byte, into any) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the codec %s panics: %v", codec.Name(), fault)
		}
	}()
	if name != codec.Name() {
		return fmt.Errorf("they are encoded with %s, and this kind is decoded with %s: define it alike on both sides", name, codec.Name())
	}
	if err := codec.Decode(encoded, into); err != nil {
		return fmt.Errorf("with %s, into %T: %w", codec.Name(), into, err)
	}
	return nil
}

// Arguments returns the arguments of a job of the kind, as an operator or a test sees it.
func (k Kind[A, R]) Arguments(job *JobInfo) (args A, err error) {
	if job.Kind != k.name {
		return args, fmt.Errorf("job %s: %w: it is of kind %q, not %q", job.ID, ErrInvalid, job.Kind, k.name)
	}
	if err := decode(k.codec(), cmp.Or(job.Codec, JSON.Name()), job.encoded, &args); err != nil {
		return args, fmt.Errorf("job %s: its arguments do not decode: %w", job.ID, err)
	}
	return args, nil
}

// shown is what people see of encoded data: JSON as it is, and else base64 in quotes.
func shown(codec string, encoded []byte) json.RawMessage {
	if len(encoded) == 0 {
		return nil
	}
	if codec == JSON.Name() && json.Valid(encoded) {
		return encoded
	}
	text, err := json.Marshal(encoded)
	if err != nil {
		return nil // it cannot be: these are bytes
	}
	return text
}
