// Package examples holds programs that use Signalbox, each in a folder of its own with a README: marketplace in Go;
// python and node, clients in other languages that call the functions which `signalbox functions install` puts on a
// server. Here are the tests that have them work together with Go on the same semaphores: workers_test.go starts the
// demos, languages_test.go says what must hold.
package examples
