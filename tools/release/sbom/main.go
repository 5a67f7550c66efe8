// Command sbom prints what a Go program is made of, as CycloneDX 1.5: the modules that its linker has written into it.
//
//	sbom PROGRAM
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
)

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

func of(kind string, m *debug.Module) component {
	if m.Replace != nil {
		m.Version = m.Replace.Version
	}
	purl := "pkg:golang/" + m.Path
	if m.Version != "" {
		purl += "@" + m.Version
	}
	return component{kind, m.Path, m.Version, purl}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: sbom PROGRAM")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	components := []component{of("library", &debug.Module{Path: "std", Version: info.GoVersion})}
	for _, m := range info.Deps {
		components = append(components, of("library", m))
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"component": of("application", &info.Main)},
		"components": components,
	})
}
