package conf

import (
	"fmt"
	"strconv"
	"strings"
)

// clampHz keeps hz within what Redis does with it.
func clampHz(value, _ string) (string, error) {
	n, _ := parseInt(value) // it was read before
	return strconv.FormatInt(min(max(n, 1), 500), 10), nil
}

// CheckReplicaOf checks whom a replica is to follow: a host and a port. Nothing is nobody.
func CheckReplicaOf(value string) error {
	words := strings.Fields(value)
	if len(words) == 0 {
		return nil
	}
	if len(words) == 2 && strings.EqualFold(value, "no one") {
		return nil
	}
	if len(words) != 2 {
		return Error("wrong number of arguments")
	}
	if port, ok := parseInt(words[1]); !ok || port < 0 || port > 65535 {
		return Error("Invalid master port")
	}
	return nil
}

// replicaOf reads replicaof.
func replicaOf(value, _ string) (string, error) {
	if err := CheckReplicaOf(value); err != nil {
		return "", err
	}
	words := strings.Fields(value)
	if len(words) == 2 && strings.EqualFold(words[0], "no") && strings.EqualFold(words[1], "one") {
		return "", nil
	}
	return strings.Join(words, " "), nil
}

// saveRule reads pairs of seconds and changes.
func saveRule(value, _ string) (string, error) {
	words := strings.Fields(value)
	for i, word := range words {
		least := int64(1 - i%2)
		if n, ok := parseInt(word); !ok || n < least {
			return "", Error("Invalid save parameters")
		}
	}
	if len(words)%2 != 0 {
		return "", Error("Invalid save parameters")
	}
	return strings.Join(words, " "), nil
}

// Limit is one class of client-output-buffer-limit. Above HardBytes a client is
// disconnected at once, above SoftBytes after SoftSeconds on end; 0 is no limit.
type Limit struct{ HardBytes, SoftBytes, SoftSeconds int64 }

// The classes of client-output-buffer-limit, in the order in which they are
// written. A replica is written slave, as ever.
const (
	LimitNormal = iota
	LimitReplica
	LimitPubSub
)

var limitClasses = []string{"normal", "slave", "pubsub"}

// ParseLimits reads the limits of all classes, in order. It has no error for
// what Settings holds.
func ParseLimits(value string) (limits [3]Limit, err error) {
	words := strings.Fields(value)
	if len(words)%4 != 0 || len(words) == 0 {
		return limits, Error("Wrong number of arguments in buffer limit configuration.")
	}
	for ; len(words) > 0; words = words[4:] {
		name := strings.ToLower(words[0])
		if name == "replica" {
			name = "slave"
		}
		class := -1
		for i, known := range limitClasses {
			if name == known {
				class = i
			}
		}
		if class < 0 {
			return limits, Error("Invalid client class specified in buffer limit configuration.")
		}
		hard, ok1 := parseBytes(words[1])
		soft, ok2 := parseBytes(words[2])
		seconds, ok3 := parseInt(words[3])
		if !ok1 || !ok2 || !ok3 || seconds < 0 {
			return limits, Error("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
		}
		limits[class] = Limit{hard, soft, seconds}
	}
	return limits, nil
}

// outputLimits replaces the limits of the classes that are named.
func outputLimits(value, before string) (string, error) {
	if _, err := ParseLimits(value); err != nil {
		return "", err
	}
	limits, err := ParseLimits(before + " " + value) // the later ones win
	if err != nil {
		return "", err
	}
	words := make([]string, len(limitClasses))
	for i, name := range limitClasses {
		words[i] = fmt.Sprintf("%s %d %d %d", name, limits[i].HardBytes, limits[i].SoftBytes, limits[i].SoftSeconds)
	}
	return strings.Join(words, " "), nil
}

// The letters of notify-keyspace-events, in the order in which they are
// written: those that A stands for, and the others.
const (
	eventsOfA   = "g$lshzxetd"
	otherEvents = "nKEm"
)

// eventClasses reads the letters of notify-keyspace-events, and writes them in
// their order.
func eventClasses(value, _ string) (string, error) {
	for _, letter := range value {
		if !strings.ContainsRune("A"+eventsOfA+otherEvents, letter) {
			return "", Error("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
		}
	}
	written := lettersOf(value, eventsOfA)
	if written == eventsOfA || strings.Contains(value, "A") {
		written = "A"
	}
	return written + lettersOf(value, otherEvents), nil
}

// withoutNew leaves n out where A is, as Redis does when it is asked; it counts all the
// same.
func withoutNew(value string) string {
	if strings.HasPrefix(value, "A") {
		return strings.ReplaceAll(value, "n", "")
	}
	return value
}

// lettersOf returns those of letters that value has, in their own order.
func lettersOf(value, letters string) string {
	return strings.Map(func(letter rune) rune {
		if strings.ContainsRune(value, letter) {
			return letter
		}
		return -1
	}, letters)
}

// percentiles reads the percentiles of INFO latencystats.
func percentiles(value, _ string) (string, error) {
	words := strings.Fields(value)
	for i, word := range words {
		p, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return "", Error("Invalid latency-tracking-info-percentiles parameters")
		}
		if !(p >= 0 && p <= 100) {
			return "", Error("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
		}
		words[i] = strconv.FormatFloat(p, 'g', 17, 64)
		if short := strconv.FormatFloat(p, 'g', -1, 64); len(short) < len(words[i]) {
			words[i] = short
		}
	}
	return strings.Join(words, " "), nil
}
