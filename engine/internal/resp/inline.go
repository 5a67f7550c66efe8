package resp

// The inline form is for people and shell scripts: one line, arguments parted
// by blanks, quotes where an argument holds blanks or bytes that cannot be
// typed. Undoing the quotes never makes text longer, so an argument is
// decoded in place, over its own source.

// inline reads a whole line as a request.
func (r *Requests) inline() (complete bool, err error) {
	if err := handshake(r.buf[r.start:]); err != nil {
		return false, err
	}
	line, found, err := r.line('\n', errBigInline)
	if !found || err != nil {
		return false, err
	}
	r.cursor += len(line) + 1
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if err := requestLine(line); err != nil {
		return false, err
	}
	for at := 0; ; {
		for at < len(line) && isBlank(line[at]) {
			at++
		}
		if at == len(line) {
			return true, nil
		}
		length, next, ok := unquote(line, at)
		if !ok {
			return false, errUnbalancedQuotes
		}
		r.spans = append(r.spans, span{at, at + length})
		at = next
	}
}

// SplitArguments splits one line as the inline form does. It is not ok if
// quotes do not match.
func SplitArguments(text string) (words []string, ok bool) {
	line := []byte(text)
	for at := 0; ; {
		for at < len(line) && isBlank(line[at]) {
			at++
		}
		if at == len(line) {
			return words, true
		}
		length, next, ok := unquote(line, at)
		if !ok {
			return nil, false
		}
		words = append(words, string(line[at:at+length]))
		at = next
	}
}

// unquote decodes the argument that begins at line[from] in place, and
// returns its length and the place where the search for the next one goes
// on. It is not ok if a quote is never closed, or closed in the middle of a
// word. A quote may well open in the middle of one: ab"c d" is "abc d".
func unquote(line []byte, from int) (length, next int, ok bool) {
	to, at := from, from
	for at < len(line) {
		c := line[at]
		switch c {
		case ' ', '\t', '\r', '\n':
			return to - from, at, true
		case '"', '\'':
			to, at, ok = unquoteQuoted(line, to, at+1, c)
			// A closing quote ends the argument.
			if !ok || at < len(line) && !isBlank(line[at]) {
				return 0, 0, false
			}
			return to - from, at, true
		}
		line[to] = c
		to++
		at++
	}
	return to - from, at, true
}

// unquoteQuoted decodes line[at:] up to the closing quote into line[to:], and
// returns where the result ends and where the quote was left behind. Single
// quotes know one escape, \' for themselves; double quotes know \xHH, a few
// letters, and take any other byte after a backslash as it is.
func unquoteQuoted(line []byte, to, at int, quote byte) (end, next int, ok bool) {
	for at < len(line) {
		c := line[at]
		at++
		switch {
		case c == quote:
			return to, at, true
		case c != '\\' || at == len(line):
			// An ordinary byte, or a backslash with nothing behind it.
		case quote == '\'':
			if line[at] == quote {
				c = quote
				at++
			}
		default:
			var width int
			c, width = unescape(line[at:])
			at += width
		}
		line[to] = c
		to++
	}
	return 0, 0, false
}

// unescape decodes what follows a backslash, one byte or more, and returns
// how many bytes of it were used.
func unescape(text []byte) (c byte, width int) {
	switch text[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	case 'x':
		if len(text) < 3 {
			break
		}
		high, okHigh := hexDigit(text[1])
		low, okLow := hexDigit(text[2])
		if okHigh && okLow {
			return high<<4 | low, 3
		}
	}
	return text[0], 1
}

func hexDigit(c byte) (value byte, ok bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// isBlank tells what parts two arguments. Vertical tab and form feed do so
// only before an argument and after a closing quote, not inside a word.
func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// SplitWords splits a line into words as an inline request is split. It is not
// ok if a quote is never closed, or closed in the middle of a word.
func SplitWords(text string) (words []string, ok bool) {
	line := []byte(text)
	for at := 0; ; {
		for at < len(line) && isBlank(line[at]) {
			at++
		}
		if at == len(line) {
			return words, true
		}
		length, next, ok := unquote(line, at)
		if !ok {
			return nil, false
		}
		words = append(words, string(line[at:at+length]))
		at = next
	}
}
