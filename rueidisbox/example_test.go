package rueidisbox_test

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/rueidisbox"
)

func Example() {
	ctx := context.Background()
	addr, stop, err := server()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	box := rueidisbox.New(client)
	defer box.Close()

	err = box.Semaphore("downloads", 2).Do(ctx, func(context.Context) error {
		state, err := box.Inspect(ctx, "downloads")
		if err == nil {
			fmt.Println("held:", state.Held, "of", state.Limit)
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: held: 1 of 2
}

// server stands in for a Redis or Valkey, so that the example runs anywhere.
func server() (addr string, stop func(), err error) {
	box, err := embedded.Open("")
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	served := make(chan error, 1)
	go func() { served <- box.Engine().Serve(listener) }()
	stop = func() {
		if err := box.Close(); err != nil {
			fmt.Println(err)
		}
		if err := <-served; err != nil {
			fmt.Println(err)
		}
	}
	return listener.Addr().String(), stop, nil
}
