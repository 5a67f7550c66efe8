package command

import "strings"

// Categories are the classes of commands that access control speaks of. A
// command is in those that its flags and its group imply; the few that Redis
// has put elsewhere are named in facts.go.
type Categories uint32

// The categories, in the order in which ACL CAT lists them.
const (
	CategoryKeyspace Categories = 1 << iota
	CategoryRead
	CategoryWrite
	CategorySet
	CategorySortedSet
	CategoryList
	CategoryHash
	CategoryString
	CategoryBitmap
	CategoryHyperLogLog
	CategoryGeo
	CategoryStream
	CategoryPubSub
	CategoryAdmin
	CategoryFast
	CategorySlow
	CategoryBlocking
	CategoryDangerous
	CategoryConnection
	CategoryTransaction
	CategoryScripting
)

// CategoryNames lists the categories; the i-th is the bit 1<<i.
var CategoryNames = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo",
	"stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
}

// CategoryNamed finds a category by its name in any case.
func CategoryNamed(name string) (Categories, bool) {
	for i, known := range CategoryNames {
		if strings.EqualFold(name, known) {
			return 1 << i, true
		}
	}
	return 0, false
}

// Names lists the names of the categories that are set.
func (c Categories) Names() []string {
	var names []string
	for i, name := range CategoryNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

var groupCategories = map[string]Categories{
	"generic": CategoryKeyspace, "set": CategorySet, "sorted-set": CategorySortedSet, "list": CategoryList,
	"hash": CategoryHash, "string": CategoryString, "bitmap": CategoryBitmap, "hyperloglog": CategoryHyperLogLog,
	"geo": CategoryGeo, "stream": CategoryStream, "connection": CategoryConnection,
	"transactions": CategoryTransaction, "scripting": CategoryScripting,
}

// impliedCategories is what flags and group say. A container has no group of
// its own: its subcommands have.
func (s *Spec) impliedCategories() Categories {
	var c Categories
	for _, rule := range []struct {
		holds   bool
		implies Categories
	}{
		{s.Flags&Write != 0, CategoryWrite},
		{s.Flags&ReadOnly != 0 && s.Group != "scripting", CategoryRead},
		{s.Flags&Admin != 0, CategoryAdmin | CategoryDangerous},
		{s.Flags&PubSub != 0, CategoryPubSub},
		{s.Flags&Blocking != 0, CategoryBlocking},
		{s.Flags&Fast != 0, CategoryFast},
		{s.Flags&Fast == 0, CategorySlow},
		{s.Sub == nil, groupCategories[s.Group]},
	} {
		if rule.holds {
			c |= rule.implies
		}
	}
	return c
}
