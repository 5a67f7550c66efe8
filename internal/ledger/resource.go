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

// A brace in a name would end the hash tag early and scatter the keys over a Cluster. Percent is encoded too, so that
// two names never meet in one key and a key always decodes.
var (
	encodeName = strings.NewReplacer("%", "%25", "}", "%7D")
	decodeName = strings.NewReplacer("%25", "%", "%7D", "}")
)

// Resource is a name with its keys.
type Resource struct {
	Name string
	keys []string // STATE, LEASES, QUEUE, SEEN

	words []any // the keys as words of a command
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
	resource := &Resource{Name: name, keys: []string{state, state + ":leases", state + ":queue", state + ":seen"}}
	for _, key := range resource.keys {
		resource.words = append(resource.words, key)
	}
	return resource, nil
}

// Keys returns the four keys of the resource: state, leases, queue, seen.
func (r *Resource) Keys() []string {
	return append([]string(nil), r.keys...)
}

// StatePattern is the SCAN pattern that the state keys of all resources match, and no other key of the ledger.
const StatePattern = keyPrefix + "*}"

// NameOf returns the name whose state is kept under key, and false if key is no state key.
func NameOf(key string) (string, bool) {
	encoded, isOurs := strings.CutPrefix(key, keyPrefix)
	encoded, isState := strings.CutSuffix(encoded, "}")
	if !isOurs || !isState || strings.Contains(encoded, "}") {
		return "", false
	}
	return decodeName.Replace(encoded), true
}
