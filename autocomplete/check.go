package autocomplete

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// The limits of what is stored and asked.
const (
	// MaxNameBytes is the length of the longest name of a dictionary, of a set of recent lists, and of a user.
	MaxNameBytes = 512
	// MaxIDBytes is the length of the longest id.
	MaxIDBytes = 128
	// MaxTextBytes is the length of the longest text and prefix, as given and folded.
	MaxTextBytes = 256
	// MaxK is the most that one lookup answers.
	MaxK = 50
	// RecentMax is how many contacts a recent list keeps.
	RecentMax = 100
)

// Every error names the dictionary or list and what was refused; these are what errors.Is finds in it. Nothing has been
// sent when an argument is invalid.
var (
	// ErrInvalidName: the name of a dictionary, a list or a user is empty, longer than MaxNameBytes, or not UTF-8.
	ErrInvalidName = errors.New("invalid name")
	// ErrInvalidID: an id is empty, longer than MaxIDBytes, not UTF-8, or has a NUL in it.
	ErrInvalidID = errors.New("invalid id")
	// ErrInvalidText: a text has no visible character, or a text or a prefix is longer than MaxTextBytes or not UTF-8.
	ErrInvalidText = errors.New("invalid text")
	// ErrInvalidWeight: a weight, or what it would become, is not a finite number.
	ErrInvalidWeight = errors.New("invalid weight")
	// ErrInvalidCount: more or less was asked for than a lookup can answer.
	ErrInvalidCount = errors.New("invalid count")
	// ErrNotFound: there is no entry with that id.
	ErrNotFound = errors.New("not found")
)

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrInvalidName)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%w: %.40q… has %d bytes, at most %d are allowed", ErrInvalidName, name, len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %.40q is not valid UTF-8", ErrInvalidName, name)
	}
	return nil
}

func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: it is empty", ErrInvalidID)
	case len(id) > MaxIDBytes:
		return fmt.Errorf("%w: %.40q… has %d bytes, at most %d are allowed", ErrInvalidID, id, len(id), MaxIDBytes)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: %.40q is not valid UTF-8", ErrInvalidID, id)
	case strings.Contains(id, "\x00"):
		return fmt.Errorf("%w: %.40q has a NUL in it", ErrInvalidID, id)
	}
	return nil
}

// foldPrefix checks a prefix and folds it.
func foldPrefix(prefix string) (string, error) {
	switch {
	case len(prefix) > MaxTextBytes:
		return "", fmt.Errorf("%w: %.40q… has %d bytes, at most %d are allowed", ErrInvalidText, prefix, len(prefix), MaxTextBytes)
	case !utf8.ValidString(prefix):
		return "", fmt.Errorf("%w: %.40q is not valid UTF-8", ErrInvalidText, prefix)
	}
	folded := Fold(prefix)
	if len(folded) > MaxTextBytes {
		return "", fmt.Errorf("%w: %.40q… has %d bytes when folded, at most %d are allowed",
			ErrInvalidText, prefix, len(folded), MaxTextBytes)
	}
	return folded, nil
}

// foldText checks a text and folds it. Unlike a prefix it must not be empty, and it ends with a space, so that a prefix
// with a space behind a word finds it at the end of a text, too.
func foldText(text string) (string, error) {
	folded, err := foldPrefix(text)
	if err != nil {
		return "", err
	}
	if folded = strings.TrimSuffix(folded, " "); folded == "" {
		return "", fmt.Errorf("%w: %q has no visible character", ErrInvalidText, text)
	}
	return folded + " ", nil
}

func checkWeight(weight float64) error {
	if math.IsNaN(weight) || math.IsInf(weight, 0) {
		return fmt.Errorf("%w: %v", ErrInvalidWeight, weight)
	}
	return nil
}

func checkCount(k, most int) error {
	if k < 1 || k > most {
		return fmt.Errorf("%w: %d: ask for 1 to %d", ErrInvalidCount, k, most)
	}
	return nil
}
