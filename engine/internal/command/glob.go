package command

// Glob reports whether s matches a pattern of Redis: * is any run of bytes, ?
// any one byte, [a-z] and [^a-z] a class, and a backslash makes the byte after
// it plain. With nocase, letters of ASCII match in both cases.
//
// It follows Redis in the corners too, because clients and ACL rules lean on
// them: an unclosed class ends with the pattern, the ends of a range may be
// given in either order, an escaped byte of a class is always case-sensitive,
// bytes above 127 sort below those of ASCII, and the empty string matches no
// pattern but the empty one.
//
// When a literal part fails to match, only the last star needs to try again
// one byte further on: an earlier star could only give the later one less to
// choose from. So the time is O(len(pattern) * len(s)) for any pattern.
func Glob(pattern, s []byte, nocase bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	at, rest := 0, 0            // where we are in s and in pattern
	retryAt, afterStar := 0, -1 // where the last star tries next, and what follows it
	for at < len(s) {
		if rest < len(pattern) && pattern[rest] == '*' {
			for rest < len(pattern) && pattern[rest] == '*' {
				rest++
			}
			if rest == len(pattern) {
				return true
			}
			retryAt, afterStar = at, rest
			continue
		}
		if rest < len(pattern) {
			if next, ok := globByte(pattern, rest, s[at], nocase); ok {
				at, rest = at+1, next
				continue
			}
		}
		if afterStar < 0 {
			return false
		}
		retryAt++
		at, rest = retryAt, afterStar
	}
	for rest < len(pattern) && pattern[rest] == '*' {
		rest++
	}
	return rest == len(pattern)
}

// globByte matches b with the element of pattern at i, which is not a star,
// and returns where the next element begins.
func globByte(pattern []byte, i int, b byte, nocase bool) (next int, ok bool) {
	switch {
	case pattern[i] == '?':
		return i + 1, true
	case pattern[i] == '[':
		return globClass(pattern, i+1, b, nocase)
	case pattern[i] == '\\' && i+1 < len(pattern):
		i++
	}
	return i + 1, sameByte(pattern[i], b, nocase)
}

// globClass matches b with the class whose inside begins at i.
func globClass(pattern []byte, i int, b byte, nocase bool) (next int, ok bool) {
	negated := i < len(pattern) && pattern[i] == '^'
	if negated {
		i++
	}
	found := false
	for i < len(pattern) && pattern[i] != ']' {
		switch left := len(pattern) - i; {
		case left >= 2 && pattern[i] == '\\':
			found = found || pattern[i+1] == b
			i += 2
		case left >= 3 && pattern[i+1] == '-':
			found = found || inRange(pattern[i], pattern[i+2], b, nocase)
			i += 3
		default:
			found = found || sameByte(pattern[i], b, nocase)
			i++
		}
	}
	return min(i+1, len(pattern)), found != negated
}

// inRange compares as Redis does, where a byte is a signed char, and orders
// the ends before it folds their case.
func inRange(from, to, b byte, nocase bool) bool {
	if int8(from) > int8(to) {
		from, to = to, from
	}
	if nocase {
		from, to, b = lowerByte(from), lowerByte(to), lowerByte(b)
	}
	return int8(from) <= int8(b) && int8(b) <= int8(to)
}

func sameByte(a, b byte, nocase bool) bool {
	return a == b || (nocase && lowerByte(a) == lowerByte(b))
}

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + ('a' - 'A')
	}
	return b
}
