package conf

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is what the values of a parameter look like.
type Kind uint8

// The kinds.
const (
	Bool    Kind = iota // yes or no
	Int                 // a number
	Bytes               // a number of bytes, perhaps with a unit: 100, 1k (1000), 1kb (1024), up to gb
	Percent             // bytes, or a percentage such as 10%
	Octal               // a number, written in octal
	Enum                // one of Choices
	Text                // anything
	Words               // any number of words
)

// Role is what setting a parameter does here.
type Role uint8

// The roles.
const (
	Effective Role = iota
	AtStart        // takes effect when the engine starts, and cannot be changed after
	Idle           // is kept, and changes nothing
	Absent         // means nothing here
)

// Flags are further facts about a parameter.
type Flags uint8

// The flags.
const (
	Immutable Flags = 1 << iota // Redis refuses to change it while it runs
	Protected                   // Redis refuses it unless enable-protected-configs is on
	Hidden                      // CONFIG GET shows it by its full name only
	Secret                      // its value must not show in logs
	Binding                     // nobody may be left to believe in it: a file that sets it does not load
)

// Param describes one parameter.
type Param struct {
	Name, Alias string
	Kind        Kind
	Default     string // as CONFIG GET writes it
	Min, Max    int64  // of numbers
	Choices     []string
	Role        Role
	Flags       Flags

	// fix checks a value that is right for its kind, and returns it in the form
	// in which CONFIG GET writes it. before is the value until now. May be nil.
	fix func(value, before string) (string, error)
	// show returns a value as CONFIG GET writes it, if that is not the value. May be nil.
	show func(value string) string
}

// Error says what is wrong with a value, in the words of Redis.
type Error string

func (e Error) Error() string { return string(e) }

// read returns a value in the form in which CONFIG GET writes it, and as a
// number if it is one.
func (p *Param) read(value, before string) (text string, number int64, err error) {
	switch p.Kind {
	case Bool:
		text, err = choose(value, []string{"no", "yes"})
		if err != nil {
			return "", 0, Error("argument must be 'yes' or 'no'")
		}
		if text == "yes" {
			number = 1
		}
	case Enum:
		if text, err = choose(value, p.Choices); err != nil {
			return "", 0, Error("argument(s) must be one of the following: " + strings.Join(p.Choices, ", "))
		}
	case Text, Words:
		text = value
	default:
		text, number, err = p.readNumber(value)
	}
	if err == nil && p.fix != nil {
		text, err = p.fix(text, before)
	}
	if err == nil && p.Kind == Int && p.fix != nil {
		number, err = strconv.ParseInt(text, 10, 64)
	}
	return text, number, err
}

func choose(value string, choices []string) (string, error) {
	for _, choice := range choices {
		if strings.EqualFold(value, choice) {
			return choice, nil
		}
	}
	return "", Error("no such choice")
}

// readNumber reads a number of any kind. A percentage is a negative number.
func (p *Param) readNumber(value string) (text string, n int64, err error) {
	ok := false
	switch p.Kind {
	case Octal:
		n, err = strconv.ParseInt(value, 8, 64)
		if err != nil {
			return "", 0, Error("argument couldn't be parsed as an octal number")
		}
		text = strconv.FormatInt(n, 8)
	case Percent:
		if digits, isPercent := strings.CutSuffix(value, "%"); isPercent {
			if n, ok = parseInt(digits); ok && n >= 0 {
				return p.percentage(n)
			}
		}
		if n, ok = parseBytes(value); !ok {
			return "", 0, Error("argument must be a memory or percent value")
		}
	case Bytes:
		if n, ok = parseBytes(value); !ok {
			return "", 0, Error("argument must be a memory value")
		}
	default:
		if n, ok = parseInt(value); !ok {
			return "", 0, Error("argument couldn't be parsed into an integer")
		}
	}
	if n < p.Min || n > p.Max {
		if p.Kind == Octal {
			return "", 0, Error(fmt.Sprintf("argument must be between %o and %o inclusive", p.Min, p.Max))
		}
		return "", 0, Error(fmt.Sprintf("argument must be between %d and %d inclusive", p.Min, p.Max))
	}
	if text == "" {
		text = strconv.FormatInt(n, 10)
	}
	return text, n, nil
}

func (p *Param) percentage(n int64) (string, int64, error) {
	if n > -p.Min {
		return "", 0, Error(fmt.Sprintf("percentage argument must be less or equal to %d", -p.Min))
	}
	return strconv.FormatInt(n, 10) + "%", -n, nil
}

// parseInt reads a number that is written in the one usual way.
func parseInt(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}

var units = []struct {
	suffix string
	factor int64
}{{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"b", 1}, {"", 1}}

// parseBytes reads a size as redis.conf writes it. No digits are 0, to Redis.
func parseBytes(text string) (int64, bool) {
	text = strings.ToLower(text)
	for _, unit := range units {
		if digits, ok := strings.CutSuffix(text, unit.suffix); ok {
			n, err := strconv.ParseUint("0"+digits, 10, 63)
			return int64(n) * unit.factor, err == nil && int64(n) <= (1<<63-1)/unit.factor
		}
	}
	return 0, false
}

// formatBytes writes a size with the largest unit that fits, as CONFIG REWRITE
// does.
func formatBytes(n int64) string {
	for _, unit := range units[:3] {
		if next := unit.factor << 10; n != 0 && n%unit.factor == 0 && (n%next != 0 || unit.suffix == "gb") {
			return strconv.FormatInt(n/unit.factor, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}
