package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"

	"github.com/signalbox-io/signalbox/embedded"
)

// With a folder, what is kept there is there the next time.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "app")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		box, err := embedded.Open(dir)
		if err != nil {
			fmt.Println(err)
			return
		}
		before, err := box.Resize(context.Background(), "downloads", 7)
		fmt.Println("the limit was", before, err, box.Close())
	}
	fmt.Println(os.RemoveAll(dir))
	// Output:
	// the limit was 0 <nil> <nil>
	// the limit was 7 <nil> <nil>
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
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprintf(client, "PING\r\n")
	answer, err := bufio.NewReader(client).ReadString('\n')
	fmt.Printf("%q %v\n", answer, err)
	fmt.Println(client.Close(), box.Close(), <-served)
	// Output:
	// "+PONG\r\n" <nil>
	// <nil> <nil> <nil>
}
