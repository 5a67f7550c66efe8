package main

import (
	"bufio"
	"fmt"
	"strings"
)

// consent asks the person at the terminal before something is lost. Where there is none, nothing is done: --yes says it
// instead.
func (a *app) consent(what, question string) error {
	if !isTerminal(a.stdin) {
		return usage("%s: nothing was changed: nobody is there to be asked; give --yes", what)
	}
	fmt.Fprintf(a.stderr, "%s: %s [y/N] ", what, question)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil || !strings.EqualFold(strings.TrimSpace(answer), "y") {
		return &exitError{exitFailure, fmt.Errorf("%s: nothing was changed", what)}
	}
	return nil
}
