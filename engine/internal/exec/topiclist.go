package exec

import "slices"

// topicList is the topics that one session listens to: in the order in which it
// subscribed, until it leaves one of them. A few are looked through, since
// most sessions have no more; many have an index, since some have thousands.
type topicList struct {
	names []string
	at    map[string]int // where each is in names; nil while there are few
	bytes int            // that they take
}

func (l *topicList) len() int { return len(l.names) }

func (l *topicList) find(topic string) int {
	if l.at == nil {
		return slices.Index(l.names, topic)
	}
	if i, ok := l.at[topic]; ok {
		return i
	}
	return -1
}

// any reports whether any topic is one that chosen wants.
func (l *topicList) any(chosen func(topic string) bool) bool {
	return slices.ContainsFunc(l.names, chosen)
}

// add reports whether the topic is new. O(1).
func (l *topicList) add(topic string) bool {
	const few = 16
	if l.find(topic) >= 0 {
		return false
	}
	if l.at == nil && len(l.names) == few {
		l.at = make(map[string]int, 2*few)
		for i, name := range l.names {
			l.at[name] = i
		}
	}
	if l.at != nil {
		l.at[topic] = len(l.names)
	}
	l.names = append(l.names, topic)
	l.bytes += topicBytes + len(topic)
	return true
}

// remove reports whether the topic was there. The last one takes its place. O(1).
func (l *topicList) remove(topic string) bool {
	i := l.find(topic)
	if i < 0 {
		return false
	}
	last := len(l.names) - 1
	if last == 0 {
		*l = topicList{}
		return true
	}
	if l.at != nil {
		l.at[l.names[last]] = i
		delete(l.at, topic)
	}
	l.bytes -= topicBytes + len(topic)
	l.names[i], l.names[last] = l.names[last], ""
	l.names = l.names[:last]
	return true
}
