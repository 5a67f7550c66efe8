package main

import (
	"bufio"
	"fmt"
	"strings"
)

// consent asks the person at the terminal before something is lost. Where there is none, nothing is done: --yes says it
// instead, or what else there is.
func (a *app) consent(what, question, otherwise string) error {
	if !isTerminal(a.stdin) {
		return usage("%s: nothing was changed: nobody is there to be asked; give --yes%s", what, otherwise)
	}
	fmt.Fprintf(a.stderr, "%s: %s [y/N] ", what, question)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil || !strings.EqualFold(strings.TrimSpace(answer), "y") {
		return &exitError{exitFailure, fmt.Errorf("%s: nothing was changed", what)}
	}
	return nil
}
