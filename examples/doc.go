// Package examples holds programs that use Signalbox, each in a folder of its own with a README: marketplace, crawler, fencing and contact-centre in Go;
// python, node and php, programs on the clients of the folder clients, which call the functions that `signalbox functions install`
// puts on a server. Here are the tests that have them work together with Go on the same semaphores and queues: workers_test.go starts
// the programs, languages_test.go and jobs_test.go say what must hold.
package examples
