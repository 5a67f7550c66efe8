package racelab

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// value is a reply as a person reads it: a text, or a list.
type value struct {
	text  string
	isNil bool
	list  []value
}

// parseReply reads one value of the protocol, version 2, and what follows it.
func parseReply(p []byte) (v value, rest []byte) {
	line, rest, _ := bytes.Cut(p, []byte("\r\n"))
	if len(line) == 0 {
		return value{}, nil
	}
	text := string(line[1:])
	n, _ := strconv.Atoi(text) // where it is no number it is not used
	switch line[0] {
	case '$':
		if n < 0 {
			return value{text: "nil", isNil: true}, rest
		}
		return value{text: string(rest[:n])}, rest[n+2:]
	case '*':
		if n < 0 {
			return value{text: "nil", isNil: true}, rest
		}
		v.list = make([]value, n)
		for i := range v.list {
			v.list[i], rest = parseReply(rest)
		}
		return v, rest
	}
	return value{text: text}, rest
}

func (v value) String() string {
	if v.list == nil {
		return v.text
	}
	parts := make([]string, len(v.list))
	for i, element := range v.list {
		parts[i] = element.String()
	}
	return strings.Join(parts, ", ")
}

// plain is the value as client libraries return it.
func (v value) plain() any {
	if v.list == nil {
		return v.text
	}
	list := make([]any, len(v.list))
	for i, element := range v.list {
		list[i] = element.plain()
	}
	return list
}

// bulks is a reply that is a list of texts.
func bulks(reply []byte) (texts []string) {
	v, _ := parseReply(reply)
	for _, element := range v.list {
		texts = append(texts, element.text)
	}
	return texts
}

// messages are the payloads of what came to a subscriber.
func messages(received []byte) (payloads []string) {
	for len(received) > 0 {
		var v value
		v, received = parseReply(received)
		if len(v.list) == 3 && v.list[0].text == "message" {
			payloads = append(payloads, v.list[2].text)
		}
	}
	return payloads
}

// showReplies tells the replies to a pipeline. Of a transaction only what EXEC
// says counts.
func showReplies(reply []byte) string {
	var all []string
	for len(reply) > 0 {
		var v value
		v, reply = parseReply(reply)
		all = append(all, v.String())
	}
	if len(all) > 1 {
		return all[len(all)-1]
	}
	return strings.Join(all, "; ")
}

// showRequests tells a pipeline: its commands without the MULTI and EXEC around.
func showRequests(commands [][][]byte, names map[string]string) string {
	var all []string
	for _, command := range commands {
		words := make([]string, len(command))
		for i, word := range command {
			words[i] = showWord(string(word))
		}
		switch name := strings.ToLower(words[0]); name {
		case "multi", "exec":
			continue
		case "evalsha":
			words = showScript(words, names[words[1]])
		default:
			words[0] = strings.ToUpper(words[0])
		}
		all = append(all, strings.Join(words, " "))
	}
	text := strings.Join(all, "; ")
	if len(commands) > 1 {
		return "MULTI " + text + " EXEC"
	}
	return text
}

// showScript tells the call of a script by its name, or by its key if it has no
// name.
func showScript(words []string, name string) []string {
	keys, _ := strconv.Atoi(words[2]) // the server has taken it
	if name == "" {
		return append([]string{"script"}, words[3:]...)
	}
	return append([]string{name + ".lua"}, words[3+keys:]...)
}

// showWord shortens what is a time in seconds since 1970 to those since the
// beginning of the run.
func showWord(word string) string {
	if word == "" {
		return `""`
	}
	if seconds, err := strconv.ParseFloat(word, 64); err == nil && strings.Contains(word, ".") {
		since := seconds - float64(epoch.Unix())
		if since > -1e6 && since < 1e6 {
			return fmt.Sprintf("t%+.6f", since)
		}
	}
	return word
}
