package ledger

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxNameBytes is the length of the longest name of a resource.
const MaxNameBytes = 512

const keyPrefix = "signalbox:{"

// InboxPrefix stands before the name of a process in the pub/sub channel that its messages go to.
const InboxPrefix = "signalbox:inbox:"

// Sharded begins the name of a process that hears in a Cluster, by sharded pub/sub: transitions see by it how to tell it.
const Sharded = "~"

// ShardedInbox is the channel on which such a process hears of a resource: it is in the slot of that. It is "" for a name that
// no resource has.
func ShardedInbox(name, process string) string {
	resource, err := NewResource(name)
	if err != nil {
		return ""
	}
	return InboxPrefix + "{" + hashTag(resource.state) + "}" + process
}

// The name is the hash tag of its keys, so that a Cluster keeps them together and spreads the names. A name that has a
// hash tag of its own, as in "invoice:{42}", goes by that, so that several names can be acquired as one. A closing brace
// elsewhere would end the tag early and scatter the keys; percent is encoded too, so that two names never meet in one
// key and a key always decodes.
var (
	encodeName = strings.NewReplacer("%", "%25", "}", "%7D")
	decodeName = strings.NewReplacer("%25", "%", "%7D", "}")
)

// Resource is a name with its keys.
type Resource struct {
	Name  string
	state string
	keys  []any // STATE, LEASES, QUEUE, SEEN, as words of a command
}

// NewResource checks a name: UTF-8, 1 to 512 bytes. Errors wrap ErrInvalid.
func NewResource(name string) (*Resource, error) {
	switch {
	case name == "":
		return nil, fmt.Errorf("%w: the name of a resource is empty", ErrInvalid)
	case len(name) > MaxNameBytes:
		return nil, fmt.Errorf("%w: the name %.40q… has %d bytes, at most %d are allowed",
			ErrInvalid, name, len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return nil, fmt.Errorf("%w: the name %.40q is not valid UTF-8", ErrInvalid, name)
	}
	state := keyPrefix + encodeName.Replace(name) + "}"
	if tag := hashTag(name); tag != "" {
		state = keyPrefix + encodeName.Replace(tag) + "}{" + encodeName.Replace(name) + "}"
	}
	return &Resource{name, state, []any{state, state + ":leases", state + ":queue", state + ":seen"}}, nil
}

// hashTag is what stands between the first brace of a name and the next closing one, if there is anything.
func hashTag(name string) string {
	_, rest, _ := strings.Cut(name, "{")
	tag, _, closed := strings.Cut(rest, "}")
	if !closed {
		return ""
	}
	return tag
}

// Key is that of its state, which lies where all its keys do.
func (r *Resource) Key() string { return r.state }

// Keys returns the four keys of the resource: state, leases, queue, seen.
func (r *Resource) Keys() []string {
	keys := make([]string, len(r.keys))
	for i, key := range r.keys {
		keys[i] = key.(string)
	}
	return keys
}

// beside returns keys of the resource that are not the permit ledger's, as words of a command.
func (r *Resource) beside(suffixes ...string) []any {
	keys := make([]any, len(suffixes))
	for i, suffix := range suffixes {
		keys[i] = r.state + ":" + suffix
	}
	return keys
}

// StatePattern is the SCAN pattern that the state keys of all resources match, and no other key of the ledger.
const StatePattern = keyPrefix + "*}"

// NameOf returns the name whose state is kept under key, and false if key is no state key.
func NameOf(key string) (string, bool) {
	encoded, isOurs := strings.CutPrefix(key, keyPrefix)
	encoded, isState := strings.CutSuffix(encoded, "}")
	if _, name, tagged := strings.Cut(encoded, "}{"); tagged {
		encoded = name
	}
	if !isOurs || !isState || strings.Contains(encoded, "}") {
		return "", false
	}
	return decodeName.Replace(encoded), true
}
