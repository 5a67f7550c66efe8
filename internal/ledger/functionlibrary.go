package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// FunctionLibrary is a library of Redis Functions that is made of transitions. Each function is a transition's text as it is,
// in `function(KEYS, ARGV) … end`: it cannot differ from the script.
type FunctionLibrary struct {
	Name      string // and with a '_' behind it the beginning of its functions' names
	Version   int    // rises with every change of a transition
	About     string // comments, with "-- " in front of each line
	Greeting  string // Lua that the version's function does before it answers
	Functions []LibraryFunction
}

// LibraryFunction is a transition by its name in a library.
type LibraryFunction struct {
	Name  string
	Flags string // as Redis names them, with commas between
	Check string // Lua that stands before the transition
	Text  string // begins with a comment that says what it does
}

// versionFunction is what tells a library of ours from another of the same name.
func (f *FunctionLibrary) versionFunction() string { return f.Name + "_version" }

// Source is the library as FUNCTION LOAD takes it.
func (f *FunctionLibrary) Source() string {
	var source strings.Builder
	fmt.Fprintf(&source, "#!lua name=%s\n%s\n", f.Name, f.About)
	fmt.Fprintf(&source, "redis.register_function{\n  function_name = %s,\n  description = %s,\n"+
		"  flags = {'no-writes'},\n  callback = function(KEYS, ARGV)%s return %d end,\n}\n",
		quoted(f.versionFunction()), quoted("the version of this library"), f.Greeting, f.Version)
	for _, function := range f.Functions {
		flags := ""
		if function.Flags != "" {
			flags = "  flags = {'" + strings.ReplaceAll(function.Flags, ",", "', '") + "'},\n"
		}
		fmt.Fprintf(&source, "\nredis.register_function{\n  function_name = %s,\n  description = %s,\n%s"+
			"  callback = function(KEYS, ARGV)\n%s%s\nend,\n}\n",
			quoted(f.Name+"_"+function.Name), quoted(purpose(function.Text)), flags, function.Check, strings.TrimSuffix(function.Text, "\n"))
	}
	return source.String()
}

// purpose is the first clause of a transition's header: behind the name, as far as the first stop or reason.
func purpose(text string) string {
	header, _, _ := strings.Cut(text, "\n--\n")
	_, words, _ := strings.Cut(strings.ReplaceAll(header, "\n--", ""), ": ")
	for _, stop := range []string{". ", "; ", ": ", ", so that", ", unless"} {
		words, _, _ = strings.Cut(words, stop)
	}
	return strings.TrimSuffix(words, ".")
}

// quoted is a text as Lua writes it.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(text) + "'"
}

// Look says what each primary has of the library.
func (f *FunctionLibrary) Look(ctx context.Context, t transport.Transport) ([]Installed, error) {
	return f.each(ctx, t, "list the functions", keep)
}

// keep leaves a library as it is.
func keep(context.Context, transport.Doer, *Installed) error { return nil }

// Install puts the library on every primary, and returns what each had before. If one has a newer version than this, it
// fails with ErrNewer and changes nothing.
func (f *FunctionLibrary) Install(ctx context.Context, t transport.Transport) ([]Installed, error) {
	const doing = "install the functions"
	before, err := f.each(ctx, t, doing, keep)
	if err != nil {
		return nil, err
	}
	for _, server := range before {
		if server.Version > f.Version {
			return nil, fmt.Errorf("%s: %w: %s has version %d of %s, this is version %d",
				doing, ErrNewer, server.Server, server.Version, f.Name, f.Version)
		}
	}
	source := f.Source()
	return f.each(ctx, t, doing, func(ctx context.Context, server transport.Doer, _ *Installed) error {
		return do(ctx, server, "function", "load", "replace", source)
	})
}

// Delete removes the library from every primary, and returns what each had before.
func (f *FunctionLibrary) Delete(ctx context.Context, t transport.Transport) ([]Installed, error) {
	return f.each(ctx, t, "delete the functions", func(ctx context.Context, server transport.Doer, was *Installed) error {
		if was.Version == 0 {
			return nil
		}
		return do(ctx, server, "function", "delete", f.Name)
	})
}

// each looks at each primary's library and calls change.
func (f *FunctionLibrary) each(
	ctx context.Context, t transport.Transport, doing string, change func(context.Context, transport.Doer, *Installed) error,
) ([]Installed, error) {
	var all []Installed
	err := t.EachPrimary(ctx, func(ctx context.Context, server transport.Doer) error {
		installed, err := f.look(ctx, server)
		if err == nil {
			err = change(ctx, server, &installed)
		}
		if err != nil {
			return withoutFunctions(installed, err)
		}
		all = append(all, installed)
		return nil
	})
	if err != nil {
		return nil, classify(doing, err)
	}
	slices.SortFunc(all, func(a, b Installed) int { return strings.Compare(a.Server, b.Server) })
	return all, nil
}

func (f *FunctionLibrary) look(ctx context.Context, server transport.Doer) (Installed, error) {
	var found Installed
	var err error
	if found.Software, err = software(ctx, server); err != nil {
		return found, err
	}
	if found.Server, err = address(ctx, server); err != nil {
		return found, err
	}
	reply, err := server.Do(ctx, transport.Command{Words: []any{"function", "list", "libraryname", f.Name}})
	if err != nil {
		return found, err
	}
	libraries, _ := reply.([]any)
	if len(libraries) == 0 {
		return found, nil
	}
	functions, _ := fields(libraries[0])["functions"].([]any)
	for _, function := range functions {
		name, _ := fields(function)["name"].(string)
		description, _ := fields(function)["description"].(string)
		found.Functions = append(found.Functions, InstalledFunction{name, description})
	}
	slices.SortFunc(found.Functions, func(a, b InstalledFunction) int { return strings.Compare(a.Name, b.Name) })
	if !slices.ContainsFunc(found.Functions, func(g InstalledFunction) bool { return g.Name == f.versionFunction() }) {
		return found, fmt.Errorf("%w: %s has a library named %s that is not ours: remove it with FUNCTION DELETE %s",
			ErrServer, found.Server, f.Name, f.Name)
	}
	reply, err = server.Do(ctx, transport.Command{Words: []any{"fcall_ro", f.versionFunction(), 0}})
	if err != nil {
		return found, err
	}
	version, ok := reply.(int64)
	if !ok || version < 1 {
		return found, unexpected("ask for the version", f.versionFunction(), reply)
	}
	found.Version = int(version)
	return found, nil
}
