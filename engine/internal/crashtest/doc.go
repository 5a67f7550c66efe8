// Package crashtest kills engines, and looks at what they have kept.
//
// The test binary starts itself again as a child that serves an engine on a Unix
// socket. Writers send it numbered units of work and note what was acknowledged, until
// the parent kills it at a random moment: at work, while it loads, in the
// middle of a snapshot or a rewrite, or while it shuts down. The next child opens the same
// folder, and its data is compared with the only states that are allowed.
//
// Every unit changes several keys at once, adds itself to one list that all writers
// share, and is told its place there. So the data after a crash says itself which units it
// is of, and three things are checked, not assumed:
//
//   - what was acknowledged is there;
//   - it is a prefix of history: the list has no gap, no stranger, and every unit at the place
//     that its writer was told;
//   - a unit is there as a whole or not at all: all other keys are what a model makes of the
//     units in the list.
//
// Who keeps snapshots only is promised what was there at the last one that was answered; whoever turns the
// append-only file off, what was there before, until it is in force again.
//
// Files: child_test.go is the engine to be killed, writer_test.go those who write, model_test.go
// what must be there, folder_test.go a round and its checks, crash_test.go the rounds; locks_test.go has
// the library's locks instead of writers. A kill takes from the process what is in
// memory, and nothing that it handed to the system: power cuts, which do, are
// simulated in package server, on disktest.
//
// To add a kind of work: a case in unit and the same in model.apply.
package crashtest
