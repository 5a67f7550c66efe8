package autocomplete_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/autocomplete"
	"github.com/signalbox-io/signalbox/engine"
)

// exampleClient is any go-redis client: of a Redis, a Cluster, or as here of the engine in this process.
func exampleClient() (client redis.UniversalClient, closeAll func()) {
	e, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return e.Dial() }
	client = redis.NewClient(&redis.Options{Addr: "engine", Dialer: dial})
	return client, func() {
		if err := errors.Join(client.Close(), e.Close()); err != nil {
			log.Print(err)
		}
	}
}

var cities = []autocomplete.Entry{
	{ID: "zrh", Text: "Zürich", Weight: 434},
	{ID: "gva", Text: "Genève", Weight: 203},
	{ID: "goa", Text: "Genova", Weight: 558},
	{ID: "gnt", Text: "Gent", Weight: 270},
}

// The cities that begin with what has been typed, the largest first.
func Example() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	dictionary := autocomplete.New(client, "cities")
	for _, city := range cities {
		if err := dictionary.Set(ctx, city); err != nil {
			log.Fatal(err)
		}
	}
	found, err := dictionary.Lookup(ctx, "GEN", 2)
	for _, city := range found {
		fmt.Println(city.Text, city.Weight)
	}
	fmt.Println(err)
	// Output:
	// Genova 558
	// Gent 270
	// <nil>
}

func ExampleNew() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	people := autocomplete.New(client, "people") // each name is a dictionary of its own
	_ = people.Set(ctx, autocomplete.Entry{ID: "1", Text: "Genoveva", Weight: 1})
	n, err := autocomplete.New(client, "cities").Len(ctx)
	fmt.Println(n, err)
	err = autocomplete.New(client, "").Drop(ctx)
	fmt.Println(errors.Is(err, autocomplete.ErrInvalidName))
	// Output:
	// 0 <nil>
	// true
}

func ExampleEntry() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	songs := autocomplete.New(client, "songs")
	// Texts may be the same; entries with one weight come in the order of text, then id.
	_ = songs.Set(ctx, autocomplete.Entry{ID: "song:2", Text: "Hallelujah", Weight: 5})
	_ = songs.Set(ctx, autocomplete.Entry{ID: "song:1", Text: "Hallelujah", Weight: 5})
	found, err := songs.Lookup(ctx, "hal", 10)
	fmt.Println(found, err)
	// Output: [{song:1 Hallelujah 5} {song:2 Hallelujah 5}] <nil>
}

func ExampleDictionary() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	dictionary := autocomplete.New(client, "cities")
	loaded, err := dictionary.Load(ctx, slices.Values(cities), func(loaded int) { fmt.Println("so far:", loaded) })
	fmt.Println(loaded, err)

	err = dictionary.Set(ctx, autocomplete.Entry{ID: "zrh", Text: "Zürich", Weight: 436}) // it has grown
	fmt.Println(err)
	weight, err := dictionary.Increment(ctx, "zrh", 1)
	fmt.Println(weight, err)
	zurich, err := dictionary.Get(ctx, "zrh")
	fmt.Println(zurich, err)

	removed, err := dictionary.Remove(ctx, "gnt")
	fmt.Println(removed, err)
	n, err := dictionary.Len(ctx)
	fmt.Println(n, err)
	largest, err := dictionary.Lookup(ctx, "", 1)
	fmt.Println(largest, err)
	fmt.Println(dictionary.Drop(ctx))
	// Output:
	// so far: 4
	// 4 <nil>
	// <nil>
	// 437 <nil>
	// {zrh Zürich 437} <nil>
	// true <nil>
	// 3 <nil>
	// [{goa Genova 558}] <nil>
	// <nil>
}

func ExampleDictionary_Lookup() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	dictionary := autocomplete.New(client, "cities")
	if _, err := dictionary.Load(ctx, slices.Values(cities), nil); err != nil {
		log.Fatal(err)
	}
	for _, prefix := range []string{"gene", "genè", "gent ", "x"} {
		found, err := dictionary.Lookup(ctx, prefix, autocomplete.MaxK)
		fmt.Println(prefix, found, err)
	}
	_, err := dictionary.Lookup(ctx, "g", 1000)
	fmt.Println(err)
	// Output:
	// gene [{gva Genève 203}] <nil>
	// genè [{gva Genève 203}] <nil>
	// gent  [{gnt Gent 270}] <nil>
	// x [] <nil>
	// autocomplete: lookup in "cities": invalid count: 1000: ask for 1 to 50
}

// A search box learns what its users choose.
func ExampleDictionary_Increment() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	queries := autocomplete.New(client, "queries")
	for _, query := range []string{"redis lock", "redis queue", "redis queue"} {
		_, err := queries.Increment(ctx, query, 1)
		if errors.Is(err, autocomplete.ErrNotFound) {
			err = queries.Set(ctx, autocomplete.Entry{ID: query, Text: query, Weight: 1})
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(queries.Lookup(ctx, "redis", 10))
	// Output: [{redis queue redis queue 2} {redis lock redis lock 1}] <nil>
}

func ExampleFold() {
	fmt.Println(autocomplete.Fold("  STRASSE\tNr. ７") == autocomplete.Fold("Straße Nr. 7"))
	fmt.Println(autocomplete.Fold("é") == autocomplete.Fold("e"))
	// Output:
	// true
	// false
}

func ExampleNewRecent() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	_ = autocomplete.NewRecent(client, "contacts").Add(ctx, "ann", "bob")
	other, err := autocomplete.NewRecent(client, "files").Match(ctx, "ann", "", 10)
	fmt.Println(other, err)
	// Output: [] <nil>
}

func ExampleRecent() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	contacts := autocomplete.NewRecent(client, "contacts")
	for _, contact := range []string{"Jean", "Jeff", "Bob", "Jean"} {
		if err := contacts.Add(ctx, "ann", contact); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(contacts.Match(ctx, "ann", "je", 5))
	fmt.Println(contacts.Remove(ctx, "ann", "Jean"))
	fmt.Println(contacts.Match(ctx, "ann", "", 5))
	fmt.Println(contacts.Clear(ctx, "ann"))
	// Output:
	// [Jean Jeff] <nil>
	// true <nil>
	// [Bob Jeff] <nil>
	// <nil>
}
