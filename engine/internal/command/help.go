package command

// HelpSpec is the subcommand HELP of a container, with the lines on its other
// subcommands.
func HelpSpec(container, since string, lines ...string) Spec {
	return Spec{
		Name: "help", Arity: 2, Flags: Loading | Stale, Since: since,
		Summary: "Lists the subcommands.", Complexity: "O(1)",
		Run: func(c *Ctx) error {
			c.Out.Array(len(lines) + 3)
			c.Out.SimpleString(container + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
			for _, line := range lines {
				c.Out.SimpleString(line)
			}
			c.Out.SimpleString("HELP")
			c.Out.SimpleString("    Prints this help.")
			return nil
		},
	}
}

// WrongSubcommand is the error of subcommands that check the number of their arguments
// by themselves, and of commands that check their subcommands so.
func WrongSubcommand(container string, sub []byte) error {
	sub = cString(sub)
	return Error("ERR unknown subcommand or wrong number of arguments for '" + string(sub[:min(len(sub), 128)]) +
		"'. Try " + container + " HELP.")
}
