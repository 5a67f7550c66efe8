package main

import (
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// Contact is somebody who wants something of the centre: a job of the queue.
type Contact struct {
	Customer string        `json:"customer"`
	Skill    string        `json:"skill"`
	VIP      bool          `json:"vip,omitempty"`
	Regular  bool          `json:"regular,omitempty"` // was here before
	Asks     string        `json:"asks,omitempty"`    // for the agent of then
	Takes    time.Duration `json:"takes"`             // of the agent's time, by the centre's clock: simulated agents keep to it
}

// Served is what came of it.
type Served struct {
	Agent  string        `json:"agent"`
	Waited time.Duration `json:"waited"`
	Note   string        `json:"note,omitempty"`
}

// A channel is a way to reach the centre. Each is a kind of job. What a contact costs an agent is written twice: "one of so
// many calls", and how much of his attention, so that somebody with a call may answer one e-mail beside it, but no second
// call and no three chats.
type channel struct {
	name     string
	kind     queue.Kind[Contact, Served]
	takes    time.Duration // on average
	patience time.Duration // on average, before the customer hangs up; 0: they never do
	target   time.Duration // the service level is the share that was accepted by then
	perMin   float64       // arrivals, unless the flags say otherwise
	share    int           // of an agent's attention
	atOnce   int           // what an agent is given of it, unless he says otherwise
}

// attention is what each agent has, in quarters. A call takes three, anything else one.
const attention = 4

var channels = []*channel{
	newChannel("call", 3, channel{takes: 3 * time.Minute, patience: 2 * time.Minute, target: 20 * time.Second, perMin: 2, atOnce: 1}),
	newChannel("chat", 1, channel{takes: 4 * time.Minute, patience: 5 * time.Minute, target: time.Minute, perMin: 2, atOnce: 3}),
	newChannel("email", 1, channel{takes: 5 * time.Minute, target: time.Hour, perMin: 1.5, atOnce: 2}),
}

// newChannel defines the kind. What is kept of a contact that has ended is for the customer, who may hear of it late when
// the server was away.
func newChannel(name string, share int, c channel) *channel {
	c.name, c.share = name, share
	c.kind = queue.Define[Contact, Served](name, queue.Cost(name, 1), queue.Cost("quarter", share), queue.Retain(10*time.Minute))
	return &c
}

func channelOf(name string) *channel {
	for _, c := range channels {
		if c.name == name {
			return c
		}
	}
	return nil
}

// skills are languages; a contact needs one, and the first is needed most.
var skills = []string{"English", "German", "Polish"}

// capacities are how many contacts of each channel an agent takes at once.
type capacities map[string]int

// check says what an agent may say of himself.
func (c capacities) check() error {
	sum := 0
	for name, n := range c {
		if channelOf(name) == nil || n < 0 || n > attention {
			return fmt.Errorf("%d × %s: an agent takes 0 to %d of each channel at once", n, name, attention)
		}
		sum += n
	}
	if sum == 0 {
		return fmt.Errorf("say what you take: at least one call, chat or e-mail at once")
	}
	return nil
}

// pace is how fast the centre's clock goes: so many of its seconds in a real one.
type pace float64

func (p pace) real(centre time.Duration) time.Duration {
	return time.Duration(float64(centre) / float64(p))
}

func (p pace) centre(real time.Duration) time.Duration {
	return time.Duration(float64(real) * float64(p))
}
