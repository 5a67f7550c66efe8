// Package histories records what many clients do to a queue at the same time, and has porcupine look for an order that
// explains it. It is a module of its own, with nothing but tests, so that nobody who uses the queue inherits porcupine.
package histories
