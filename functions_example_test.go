package signalbox_test

import (
	"fmt"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

// What a deployment does once, so that programs in other languages can take part.
func ExampleBox_InstallFunctions() {
	box := sure(embedded.Open(""))
	defer box.Close()

	for _, before := range sure(box.InstallFunctions(ctx)) {
		fmt.Println("installed in place of version", before.Version)
	}
	for _, server := range sure(box.Functions(ctx)) {
		fmt.Println("is there now:", server.Version == signalbox.FunctionsVersion)
	}
	fmt.Println("removed from servers:", len(sure(box.DeleteFunctions(ctx))))
	// Output:
	// installed in place of version 0
	// is there now: true
	// removed from servers: 1
}

func ExampleFunctions() {
	box := sure(embedded.Open(""))
	defer box.Close()

	sure(box.InstallFunctions(ctx))
	for _, server := range sure(box.Functions(ctx)) {
		for _, function := range server.List[:2] {
			fmt.Println(function.Name)
		}
	}
	// Output:
	// signalbox_acquire
	// signalbox_acquire_group
}

func ExampleFunction() {
	box := sure(embedded.Open(""))
	defer box.Close()

	sure(box.InstallFunctions(ctx))
	function := sure(box.Functions(ctx))[0].List[0]
	fmt.Println(function.Name, len(function.Description) > 0)
	// Output: signalbox_acquire true
}

// The source can be loaded by whatever else manages the server.
func ExampleFunctionsSource() {
	source := signalbox.FunctionsSource()
	fmt.Println(source[:len("#!lua name=signalbox")])
	// Output: #!lua name=signalbox
}
