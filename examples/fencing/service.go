package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// TokenHeader carries the fencing token of the caller's lease.
const TokenHeader = "Fencing-Token"

// Service is PUT /accounts/{id} with a balance as its body. Without a token it answers 428, with a stale one 412: the
// caller must not try again, since its lease is over.
func Service(store *Store) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /accounts/{id}", func(w http.ResponseWriter, r *http.Request) {
		token, err := strconv.ParseInt(r.Header.Get(TokenHeader), 10, 64)
		if err != nil || token < 1 {
			http.Error(w, "a "+TokenHeader+" is required", http.StatusPreconditionRequired)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32))
		if err != nil {
			http.Error(w, "a balance is short", http.StatusRequestEntityTooLarge)
			return
		}
		balance, err := strconv.ParseInt(string(body), 10, 64)
		if err != nil {
			http.Error(w, "the balance is no number", http.StatusBadRequest)
			return
		}
		switch err := store.Write(r.Context(), r.PathValue("id"), token, balance); {
		case errors.Is(err, ErrStale):
			http.Error(w, fmt.Sprintf("%v: a newer holder has been here", err), http.StatusPreconditionFailed)
		case err != nil:
			http.Error(w, "the store is out of order", http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	return mux
}
