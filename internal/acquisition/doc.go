// Package acquisition is the life of an acquisition, from the first request until nothing of it can be left on the server.
//
// A Machine is one such life. It has no goroutine, lock, channel, clock or network: Step takes the time and an event, and
// returns what is to be done about it. Whoever holds the machine (package signalbox; simulations) sends, listens, keeps the
// timer that Wake asks for, and tells the caller. The same events at the same times give the same actions, always.
//
// Every primitive is this machine with other Terms. A mutex, a semaphore, a side of an RWMutex and an election ask for a
// lease. A latch, a barrier and a group ask to be let through (Terms.Passing): a grant is the end of their asking, and each
// lease of a group goes on as a life of its own (Granted).
//
// The life is in states.go: the states, the events, and the one table of which event means what in which state. What the
// states do is beside it: asking.go until there is a lease, holding.go while there is one, ending.go afterwards. retry.go
// is the one policy by which anything is tried again.
//
// Three rules carry the promises of the ledger (docs/invariants.md) to this side:
//
//   - A request that was sent and not answered is in doubt. It may arrive for as long as arrival says, and until then
//     whatever ends the acquisition also bars its id on the server (L7).
//   - A holder believes the least: its lease ends here before it can end there, counted from when the request was sent; its
//     weight is the smaller one while a change of it is in doubt (L1).
//   - What must reach the server is tried until it is heard, or until the server has forgotten it by itself.
package acquisition
