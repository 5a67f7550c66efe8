package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/signalbox-io/signalbox/embedded"
)

func ExampleOpen() {
	_, err := embedded.Open("/var/lib/app")
	fmt.Println(errors.Is(err, embedded.ErrNoPersistence)) // data is in memory only
	box, err := embedded.Open("")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(box.Close())
	// Output:
	// true
	// <nil>
}

// The engine of a Box speaks to any Redis client.
func ExampleBox_Engine() {
	box, err := embedded.Open("")
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- box.Engine().Serve(listener) }()
	err = box.Mutex("m").Do(context.Background(), func(context.Context) error { return nil })
	fmt.Println(err, box.Close(), <-served)
	// Output: <nil> <nil> <nil>
}
