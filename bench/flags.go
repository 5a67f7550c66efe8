package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// runFlags are the flags of a subcommand: those that all have, and by profiled and chosen those that several have. What it has
// of its own it defines beside them.
type runFlags struct {
	*flag.FlagSet
	page                              string
	quick, asJSON, markdown, onlyList bool
	only, profiles                    string
}

// newRunFlags defines the flags that all have; quick says what a quick run is.
func newRunFlags(name, page, quick string) *runFlags {
	f := &runFlags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), page: page}
	f.BoolVar(&f.quick, "quick", false, quick+": for a first look")
	f.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	f.BoolVar(&f.markdown, "markdown", false, "also write the report to "+page)
	return f
}

// profiled defines that the processes write profiles.
func (f *runFlags) profiled(whose string) {
	f.StringVar(&f.profiles, "profiles", "", "write a CPU profile of "+whose+" into `folder`")
}

// chosen defines that what is measured can be chosen by its name.
func (f *runFlags) chosen(what string) {
	f.StringVar(&f.only, "only", "", "measure only the "+what+" whose name matches this regular `pattern`")
	f.BoolVar(&f.onlyList, "list", false, "list the names, and measure nothing")
}

// parse reads the flags, and returns the pattern of what was chosen. All that is no flag is refused.
func (f *runFlags) parse(args []string) (*regexp.Regexp, error) {
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	pattern, err := regexp.Compile(f.only)
	if err != nil {
		return nil, err
	}
	return pattern, profileInto(f.profiles)
}

// deliver hands out the report as the flags say; target is what of make has made it.
func (f *runFlags) deliver(r *report, target string, args []string, title string) error {
	return r.deliver(target, args, title, f.page, f.markdown, f.asJSON)
}

// profileInto has the roles write profiles into a folder, which is made; "" is none.
func profileInto(folder string) error {
	if folder == "" {
		return nil
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return err
	}
	return os.Setenv(profilesVariable, absolute)
}
