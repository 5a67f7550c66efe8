package autocomplete

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Recent keeps for each user the RecentMax contacts that were used last, to suggest them by prefix: the list of Redis in
// Action, 6.1.1. A list is so short that it is read whole and filtered by the client; there are no weights but the order.
// A user's list is a key of its own, autocomplete:recent:name:{user}, so a Cluster spreads users. Make one with NewRecent.
// It may be used by any number of goroutines.
type Recent struct {
	client redis.UniversalClient
	name   string
}

// NewRecent returns the recent lists of that name ("contacts", say), over a client that stays the caller's. Every string
// of 1 to MaxNameBytes bytes of UTF-8 is a name; others are refused by the calls.
func NewRecent(client redis.UniversalClient, name string) *Recent {
	return &Recent{client: client, name: name}
}

// Add makes a contact the user's latest: new or moved to the front. The one that is too many is forgotten. One
// transaction, one round trip; to do it again changes nothing. A contact is up to MaxTextBytes bytes with a visible
// character, and is told from others by its exact bytes.
func (r *Recent) Add(ctx context.Context, user, contact string) error {
	key, err := r.key(user)
	if err == nil {
		_, err = foldText(contact)
	}
	if err != nil {
		return r.failed("add", user, err)
	}
	_, err = r.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.LRem(ctx, key, 0, contact)
		pipe.LPush(ctx, key, contact)
		pipe.LTrim(ctx, key, 0, RecentMax-1)
		return nil
	})
	return r.failed("add", user, err)
}

// Remove forgets a contact of the user, and reports whether it was there.
func (r *Recent) Remove(ctx context.Context, user, contact string) (bool, error) {
	key, err := r.key(user)
	if err != nil {
		return false, r.failed("remove", user, err)
	}
	removed, err := r.client.LRem(ctx, key, 0, contact).Result()
	return removed > 0, r.failed("remove", user, err)
}

// Match returns the user's k latest contacts that begin with a prefix, compared as Fold says, the latest first; all with
// the empty prefix. k is from 1 to RecentMax. One round trip, O(RecentMax).
func (r *Recent) Match(ctx context.Context, user, prefix string, k int) ([]string, error) {
	key, err := r.key(user)
	folded, invalid := foldPrefix(prefix)
	if err := errors.Join(err, invalid, checkCount(k, RecentMax)); err != nil {
		return nil, r.failed("match", user, err)
	}
	contacts, err := r.client.LRange(ctx, key, 0, RecentMax-1).Result()
	if err != nil {
		return nil, r.failed("match", user, err)
	}
	var found []string
	for _, contact := range contacts {
		text, err := foldText(contact)
		if err == nil && len(found) < k && strings.HasPrefix(text, folded) { // else something else has put it there
			found = append(found, contact)
		}
	}
	return found, nil
}

// Clear forgets all contacts of the user.
func (r *Recent) Clear(ctx context.Context, user string) error {
	key, err := r.key(user)
	if err == nil {
		err = r.client.Unlink(ctx, key).Err()
	}
	return r.failed("clear", user, err)
}

// encodeWord keeps a name free of what the key has a meaning for.
var encodeWord = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", ":", "%3A")

func (r *Recent) key(user string) (string, error) {
	if err := checkName(r.name); err != nil {
		return "", err
	}
	if err := checkName(user); err != nil {
		return "", fmt.Errorf("user: %w", err)
	}
	return "autocomplete:recent:" + encodeWord.Replace(r.name) + ":{" + encodeWord.Replace(user) + "}", nil
}

// failed says which list an error is of. Nil stays nil.
func (r *Recent) failed(verb, user string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("autocomplete: %s in recent %.40q of %.40q: %w", verb, r.name, user, err)
}
