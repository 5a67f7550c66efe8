package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The manual is made from the commands: a page each, in roff, with the texts that --help has. `signalbox manual DIR` is for
// those who make packages, and is not listed.

func (a *app) manualCommand() *cobra.Command {
	return &cobra.Command{
		Use: "manual DIR", Short: "Write the manual pages of all commands into a folder", Args: exactly("the folder"), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// writeManual writes the pages of a command and of all below it.
func writeManual(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || cmd.Name() == "help" {
		return nil
	}
	path := filepath.Join(dir, pageOf(cmd)+".1")
	if err := os.WriteFile(path, []byte(manualPage(cmd)), 0o644); err != nil {
		return absent(err, dir, "a folder that is there")
	}
	for _, below := range cmd.Commands() {
		if err := writeManual(below, dir); err != nil {
			return err
		}
	}
	return nil
}

// pageOf is the name of a command's page: signalbox-queue-push.
func pageOf(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func manualPage(cmd *cobra.Command) string {
	var page strings.Builder
	section := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&page, ".SH %s\n%s", name, text)
		}
	}
	fmt.Fprintf(&page, ".TH %s 1 \"\" \"signalbox %s\" \"Signalbox\"\n", roff(strings.ToUpper(pageOf(cmd))), roff(versionOf()))
	section("NAME", roff(pageOf(cmd))+" \\- "+roff(strings.ToLower(cmd.Short[:1])+cmd.Short[1:])+"\n")
	section("SYNOPSIS", ".B "+roff(cmd.UseLine())+"\n")
	section("DESCRIPTION", paragraphs(cmd.Long))
	section("OPTIONS", flagList(cmd.NonInheritedFlags()))
	section("OPTIONS OF ALL COMMANDS", flagList(cmd.InheritedFlags()))
	if cmd.Example != "" {
		section("EXAMPLES", ".nf\n"+lines(cmd.Example)+".fi\n")
	}
	section("SEE ALSO", relatives(cmd))
	return page.String()
}

// paragraphs keeps lines that are set in: they are lists and examples.
func paragraphs(text string) string {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		switch {
		case strings.TrimSpace(paragraph) == "":
		case strings.Contains("\n"+paragraph, "\n  "):
			out.WriteString(".PP\n.nf\n" + lines(paragraph) + ".fi\n")
		default:
			out.WriteString(".PP\n" + lines(paragraph))
		}
	}
	return out.String()
}

func flagList(flags *pflag.FlagSet) string {
	var out strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, says := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(&out, ".TP\n.B %s\n%s", roff(strings.TrimSpace(name+" "+kind)), lines(says))
	})
	return out.String()
}

// relatives are the command above, and those below.
func relatives(cmd *cobra.Command) string {
	var names []string
	if cmd.HasParent() {
		names = append(names, pageOf(cmd.Parent()))
	}
	for _, below := range cmd.Commands() {
		if !below.Hidden && below.Name() != "help" {
			names = append(names, pageOf(below))
		}
	}
	for i, name := range names {
		names[i] = "\\fB" + roff(name) + "\\fR(1)"
	}
	if names == nil {
		return ""
	}
	return strings.Join(names, ",\n") + "\n"
}

// lines are those of a text, for roff.
func lines(text string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		out.WriteString(roff(line) + "\n")
	}
	return out.String()
}

// roff is a text that means nothing but itself to the formatter.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
