package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/engine"
)

// version is set by the linker for releases.
var version = ""

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			v := versionOf()
			if a.json {
				return a.printJSON(map[string]string{"version": v, "go": runtime.Version(), "speaks": "redis " + engine.RedisVersion})
			}
			_, err := fmt.Fprintf(a.stdout, "signalbox %s (%s %s/%s), engine as Redis %s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH, engine.RedisVersion)
			return err
		},
	}
}

func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
