package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

func main() {
	dir, err := os.MkdirTemp("", "fencing")
	if err == nil {
		err = errors.Join(run(context.Background(), filepath.Join(dir, "accounts.db")), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run lets a first holder lose its lease without noticing, a second one take its place, and shows what becomes of the
// first one's writes.
func run(ctx context.Context, path string) (err error) {
	store, err := OpenStore(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Create(ctx, "17"); err != nil {
		return err
	}
	box, err := embedded.Open("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()

	first, second, err := replaced(ctx, box.Box, "account:17")
	if err != nil {
		return err
	}
	balance, err := store.Read(ctx, "17", second.Token())
	fmt.Println("second holder reads:", balance, err)
	fmt.Println("first holder writes:", store.Write(ctx, "17", first.Token(), 1000))
	fmt.Println("second holder writes:", store.Write(ctx, "17", second.Token(), balance+5))

	server := httptest.NewServer(Service(store))
	defer server.Close()
	for _, lease := range []*signalbox.Lease{first, second} {
		status, err := put(ctx, server.URL+"/accounts/17", lease.Token(), 10)
		if err != nil {
			return err
		}
		fmt.Println("over HTTP:", status)
	}
	return second.Release(ctx)
}

// replaced returns a holder that was paused for too long, here ended by an operator, and the one that came after it.
func replaced(ctx context.Context, box *signalbox.Box, name string) (first, second *signalbox.Lease, err error) {
	first, err = box.Mutex(name).Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	if _, err = box.Force(ctx, name, first.ID()); err != nil {
		return nil, nil, err
	}
	second, err = box.Mutex(name).Acquire(ctx)
	return first, second, err
}

func put(ctx context.Context, url string, token, balance int64) (status string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(strconv.FormatInt(balance, 10)))
	if err != nil {
		return "", err
	}
	if token > 0 {
		request.Header.Set(TokenHeader, strconv.FormatInt(token, 10))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	return response.Status, response.Body.Close()
}
