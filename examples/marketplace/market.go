package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox"
)

// tradeTakes is how long a call works, as a stand-in for the real one.
const tradeTakes = 20 * time.Millisecond

// offer is an item for sale.
type offer struct {
	ID     int    `json:"id"`
	Item   string `json:"item"`
	Seller string `json:"seller"`
	Price  int    `json:"price"`
}

// market is the offers, in memory.
type market struct {
	mu     sync.Mutex
	next   int
	offers map[int]offer
}

// newAPI is the whole API behind the limit:
//
//	GET  /offers              all offers
//	POST /offers              {"item": …, "price": …}: sell
//	POST /offers/{id}/buy     buy
func newAPI(box *signalbox.Box) http.Handler {
	m := &market{offers: map[int]offer{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /offers", m.list)
	mux.HandleFunc("POST /offers", m.sell)
	mux.HandleFunc("POST /offers/{id}/buy", m.buy)
	return limited(box, mux)
}

// work takes its time, unless the caller leaves or the permit is lost.
func work(ctx context.Context) error {
	select {
	case <-time.After(tradeTakes):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *market) list(w http.ResponseWriter, r *http.Request) {
	if err := work(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	m.mu.Lock()
	all := make([]offer, 0, len(m.offers))
	for _, o := range m.offers {
		all = append(all, o)
	}
	m.mu.Unlock()
	answer(w, http.StatusOK, all)
}

func (m *market) sell(w http.ResponseWriter, r *http.Request) {
	var o offer
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&o); err != nil || o.Item == "" || o.Price < 1 {
		http.Error(w, `say what you sell: {"item": "ring", "price": 7}`, http.StatusBadRequest)
		return
	}
	if err := work(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	m.mu.Lock()
	m.next++
	o.ID, o.Seller = m.next, r.Header.Get("X-Account")
	m.offers[o.ID] = o
	m.mu.Unlock()
	answer(w, http.StatusCreated, o)
}

func (m *market) buy(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil {
		http.Error(w, "an offer's id is a number", http.StatusBadRequest)
		return
	}
	if err := work(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	m.mu.Lock()
	o, ok := m.offers[id]
	delete(m.offers, id)
	m.mu.Unlock()
	if !ok {
		http.Error(w, "no such offer: it may have been sold", http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, o)
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		fmt.Println("marketplace: answering:", err) // the caller has gone
	}
}
