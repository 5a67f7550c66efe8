// Package network has the faults of the network between boxes and one server: a faultproxy.Proxy stands between them.
// The registry of package faults says what each test injects.
package network
