package acl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// Default is the name of the user that every connection is at first.
const Default = "default"

// Users is the table of users.
type Users struct {
	// AllChannels makes new selectors start with all channels:
	// acl-pubsub-default.
	AllChannels bool

	table   *command.Table
	byName  map[string]*User
	initial *User
}

// NewUsers returns a table that holds the user default, who needs no password
// and may do everything.
func NewUsers(table *command.Table) *Users {
	u := &Users{table: table, byName: map[string]*User{}}
	u.initial = u.newDefault()
	u.byName[Default] = u.initial
	return u
}

func (u *Users) newDefault() *User {
	d := u.newUser(Default)
	d.enabled, d.noPassword = true, true
	d.root.setAll(true)
	d.root.allKeys, d.root.allChannels = true, true
	d.settle()
	return d
}

// settle is called after every change of a user's rights.
func (u *User) settle() {
	u.unrestricted = u.root.allCommands && u.root.allKeys && u.root.allChannels
}

// Default is the user that every connection is at first. It always exists,
// and is always the same value.
func (u *Users) Default() *User { return u.initial }

// Lookup finds a user by name.
func (u *Users) Lookup(name string) (*User, bool) {
	user, ok := u.byName[name]
	return user, ok
}

// All lists the users by name.
func (u *Users) All() []*User {
	users := make([]*User, 0, len(u.byName))
	for _, name := range slices.Sorted(maps.Keys(u.byName)) {
		users = append(users, u.byName[name])
	}
	return users
}

// Set creates a user or changes one by rules, all or none. Before a change
// takes effect, changing is called with the user before and after.
func (u *Users) Set(name string, rules []string, changing func(before, after *User)) error {
	if HasSpaces(name) {
		return ruleError("Usernames can't contain spaces or null characters")
	}
	merged, unmatched, ok := mergeSelectors(rules)
	if !ok {
		return ruleError(fmt.Sprintf("Unmatched parenthesis in acl selector starting at '%s'.", rules[unmatched]))
	}
	user, exists := u.byName[name]
	trial := u.newUser(name)
	if exists {
		trial = user.clone()
	}
	for _, rule := range merged {
		if err := trial.apply(rule); err != nil {
			return ruleError(fmt.Sprintf("Error in ACL SETUSER modifier '%s': %s", rule, err))
		}
	}
	trial.settle()
	if !exists {
		u.byName[name] = trial
		return nil
	}
	changing(user, trial)
	user.become(trial)
	return nil
}

// Delete removes a user other than default, and returns him.
func (u *Users) Delete(name string) (*User, bool) {
	user, ok := u.byName[name]
	if !ok || name == Default {
		return nil, false
	}
	delete(u.byName, name)
	return user, true
}

// Declare defines a user by the words of a user directive of redis.conf, after
// the word user itself. Each user but default can be defined once.
func (u *Users) Declare(words []string, declared map[string]bool) error {
	fail := func(where string, why error) error {
		return fmt.Errorf("Error in user declaration '%s': %w", where, why)
	}
	if len(words) == 0 || HasSpaces(words[0]) {
		return fail("user", errRule)
	}
	name := words[0]
	if declared[name] {
		return fail(name, errDuplicate)
	}
	declared[name] = true
	merged, unmatched, ok := mergeSelectors(words[1:])
	if !ok {
		return fail(words[1+unmatched], errRule)
	}
	trial := u.newUser(name)
	if name == Default {
		trial.sanitize = sanitizeAlways // as after reset
	}
	for _, rule := range merged {
		if err := trial.apply(rule); err != nil {
			return fail(rule, err)
		}
	}
	trial.settle()
	if user, exists := u.byName[name]; exists {
		user.become(trial)
		return nil
	}
	u.byName[name] = trial
	return nil
}

// Load replaces all users by those of an ACL file. It returns the users who
// are gone: all but default, since a user of the same name is another one. The
// error names everything that is wrong, each with path and line; then nothing
// has changed.
func (u *Users) Load(path, text string) (gone []*User, err error) {
	next := &Users{AllChannels: u.AllChannels, table: u.table, byName: map[string]*User{}}
	var errs strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if line = strings.Trim(line, " \t\r\n"); line != "" {
			next.loadLine(fmt.Sprintf("%s:%d", path, i+1), i+1, strings.Split(line, " "), &errs)
		}
	}
	if errs.Len() > 0 {
		return nil, ruleError(errs.String() + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
	}
	after, ok := next.byName[Default]
	if !ok {
		after = u.newDefault()
	}
	for _, user := range u.All() {
		if user != u.initial {
			gone = append(gone, user)
		}
	}
	u.initial.become(after)
	u.byName = next.byName
	u.byName[Default] = u.initial
	for _, user := range u.byName {
		user.users = u
	}
	return gone, nil
}

func (u *Users) loadLine(place string, number int, words []string, errs *strings.Builder) {
	if words[0] != "user" || len(words) < 2 {
		fmt.Fprintf(errs, "%s should start with user keyword followed by the username. ", place)
		return
	}
	name := words[1]
	if HasSpaces(name) {
		fmt.Fprintf(errs, "'%s: username '%s' contains invalid characters. ", place, name)
		return
	}
	if _, exists := u.byName[name]; exists {
		fmt.Fprintf(errs, "WARNING: Duplicate user '%s' found on line %d. ", name, number)
		return
	}
	user := u.newUser(name)
	u.byName[name] = user
	merged, _, ok := mergeSelectors(words[2:])
	if !ok {
		fmt.Fprintf(errs, "%s: Unmatched parenthesis in selector definition.", place)
		return
	}
	told := false
	for _, rule := range merged {
		rule = strings.Trim(rule, "\t\r\n")
		switch err := user.apply(rule); {
		case errors.Is(err, errUnknownName):
			fmt.Fprintf(errs, "%s: Error in applying operation '%s': %s. ", place, rule, err)
		case err != nil && !told: // the first one may be the reason of the others
			fmt.Fprintf(errs, "%s: %s. ", place, err)
			told = true
		}
	}
	user.settle()
}

// Save is the text of an ACL file from which Load makes these users again.
func (u *Users) Save() string {
	var text strings.Builder
	for _, user := range u.All() {
		text.WriteString(user.Describe())
		text.WriteByte('\n')
	}
	return text.String()
}
