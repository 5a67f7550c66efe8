package stepped_test

import (
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/engine/stepped"
)

// A lock whose timeout passes when the test says so.
func Example() {
	e := stepped.New(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	defer e.Close()
	a, b := e.Connect(), e.Connect()
	set := func(c *stepped.Conn, holder string) {
		c.Send([][]byte{[]byte("SET"), []byte("lock"), []byte(holder), []byte("NX"), []byte("PX"), []byte("1000")})
		fmt.Printf("%s: %q\n", holder, c.Received())
	}
	set(a, "a")
	set(b, "b")
	e.Advance(time.Second)
	set(b, "b")
	// Output:
	// a: "+OK\r\n"
	// b: "$-1\r\n"
	// b: "+OK\r\n"
}

// A request that blocks is answered by what another connection sends, or by time.
func ExampleConn_Blocked() {
	e := stepped.New(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	defer e.Close()
	c := e.Connect()
	c.Send([][]byte{[]byte("BLPOP"), []byte("queue"), []byte("5")})
	_, until, blocked := c.Blocked()
	fmt.Println(blocked, until.Sub(e.Now()), c.Pending())
	e.Advance(5 * time.Second)
	fmt.Printf("%q\n", c.Received())
	// Output:
	// true 5s false
	// "*-1\r\n"
}
