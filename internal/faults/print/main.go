// Program print writes the registry of faults as a table in Markdown: what the tests inject, and what must hold.
package main

import (
	"fmt"

	"github.com/signalbox-io/signalbox/internal/faults"
)

func main() {
	fmt.Println("| servers | fault | what is injected | what must hold |")
	fmt.Println("|---|---|---|---|")
	for _, f := range faults.Registry {
		fmt.Printf("| %s | `Test%s` | %s | %s |\n", f.Package, f.Name, f.Injected, f.Holds)
	}
}
