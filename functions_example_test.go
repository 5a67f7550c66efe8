package signalbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/signalbox-io/signalbox"
)

// What a deployment does once, so that programs in other languages can take part.
func ExampleBox_InstallFunctions() {
	ctx := context.Background()
	box, err := signalbox.Open(ctx, "redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	before, err := box.InstallFunctions(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, server := range before {
		fmt.Printf("%s: version %d in place of %d\n", server.Server, signalbox.FunctionsVersion, server.Version)
	}
}

// A check of what is installed, before a client in another language is rolled out.
func ExampleBox_Functions() {
	ctx := context.Background()
	box, err := signalbox.Open(ctx, "redis+cluster://localhost:7000")
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	servers, err := box.Functions(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, server := range servers {
		fmt.Println(server.Server, server.Software, server.Version, len(server.List))
	}
}

func ExampleBox_DeleteFunctions() {
	ctx := context.Background()
	box, err := signalbox.Open(ctx, "redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	if _, err := box.DeleteFunctions(ctx); err != nil {
		log.Fatal(err)
	}
}

// The source can be loaded by whatever else manages the server.
func ExampleFunctionsSource() {
	source := signalbox.FunctionsSource()
	fmt.Println(source[:len("#!lua name=signalbox")])
	// Output: #!lua name=signalbox
}
