package feed

import "github.com/signalbox-io/signalbox/engine/internal/command"

// Commands knows the keys of requests.
type Commands struct{ table *command.Table }

// NewCommands returns what is known of the commands on data of Redis 7.0.
func NewCommands() *Commands { return &Commands{command.NewTable(command.Data()...)} }

// Keys returns the places of the keys among the words of a request; known is false if the command is not.
func (c *Commands) Keys(request [][]byte) (places []int, known bool) {
	spec, ok := c.table.Lookup(request[0])
	if !ok {
		return nil, false
	}
	if len(request) > 1 {
		if sub, ok := spec.Subcommand(request[1]); ok {
			spec = sub
		}
	}
	if !spec.AcceptsArity(len(request)) {
		return nil, false
	}
	return spec.KeyPositions(request), true
}
