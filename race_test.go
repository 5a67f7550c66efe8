//go:build race

package signalbox_test

func init() { underRace = true }
