package replication

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrNotNow is for a primary that cannot give anything at the moment, and will later.
	ErrNotNow = errors.New("the primary is not ready yet")
	// ErrRefused is for a replica that does not want to take over, ErrTaken for one that has.
	ErrRefused = errors.New("the replica does not take over")
	ErrTaken   = errors.New("the replica is the primary already")
	// ErrCluster is for a primary that has only a part of the data.
	ErrCluster = errors.New("the primary is a node of a Cluster, and has the data of its slots alone: follow a server that is in none")
)

const (
	idLength   = 40
	markLength = 40
)

// hearPSYNC reads the answer to PSYNC.
func (h *Handshake) hearPSYNC(line string) (Answer, error) {
	words := strings.Fields(line)
	switch {
	case words[0] == "+FULLRESYNC" && len(words) == 3 && len(words[1]) == idLength:
		offset, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil || offset < 0 {
			return Answer{}, fmt.Errorf("the primary answers PSYNC with the offset %q", clip(words[2]))
		}
		return Answer{Done: true, Full: true, ID: words[1], Offset: offset}, nil
	case words[0] == "+CONTINUE" && h.terms.ID != "":
		answer := Answer{Done: true, ID: h.terms.ID, Offset: h.terms.Offset}
		if len(words) > 1 && len(words[1]) == idLength {
			answer.ID = words[1]
		}
		return answer, nil
	case strings.HasPrefix(line, "-NOMASTERLINK"), strings.HasPrefix(line, "-LOADING"):
		return Answer{}, fmt.Errorf("%w: %s", ErrNotNow, clip(line[1:]))
	case h.terms.TakeOver && strings.Contains(line, "can't be sent to a master"):
		return Answer{}, ErrTaken
	case h.terms.TakeOver && line[0] == '-':
		return Answer{}, fmt.Errorf("%w: %s", ErrRefused, clip(line[1:]))
	}
	return Answer{}, fmt.Errorf("the primary answers PSYNC with %q", clip(line))
}

// Snapshot is how a snapshot is framed: by its length, or by a mark that comes after it.
type Snapshot struct {
	Bytes int64  // -1 if the mark ends it
	Mark  string // "" if the length does
}

// ParseSnapshot reads the line before a snapshot, without its end. Empty lines may come before.
func ParseSnapshot(line string) (Snapshot, error) {
	if mark, ok := strings.CutPrefix(line, "$EOF:"); ok && len(mark) == markLength {
		return Snapshot{-1, mark}, nil
	}
	if length, ok := strings.CutPrefix(line, "$"); ok {
		if n, err := strconv.ParseInt(length, 10, 64); err == nil && n >= 0 {
			return Snapshot{n, ""}, nil
		}
	}
	return Snapshot{}, fmt.Errorf("the primary says %q in place of a snapshot", clip(line))
}

// Head is the line before a snapshot that a mark ends.
func Head(mark string) string { return "$EOF:" + mark + "\r\n" }
