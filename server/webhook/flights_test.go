package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server/webhook"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// TestASlowReceiverDelaysOnlyItsUser has a user with a receiver that does not answer, and many
// deliveries that are due before those of another user.
func TestASlowReceiverDelaysOnlyItsUser(t *testing.T) {
	t.Parallel()
	release, taken := make(chan struct{}), make(chan string, 100)
	var mu sync.Mutex
	held, most := 0, 0
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		held++
		most = max(most, held)
		mu.Unlock()
		select {
		case <-release:
		case <-r.Context().Done():
		}
		mu.Lock()
		held--
		mu.Unlock()
	}))
	defer slow.Close()
	quick := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { taken <- r.Header.Get("Webhook-Id") }))
	defer quick.Close()
	s := memory.New()
	w := webhook.New(webhook.Options{Store: s.Capabilities().Documents, Runs: s, HTTP: new(http.Client), Key: []byte("key")})
	for user, url := range map[string]string{"ada": slow.URL, "bob": quick.URL} {
		if err := w.Put(t.Context(), &webhook.Hook{ID: user, User: user, URL: url, Events: []string{webhook.RunFailed}}); err != nil {
			t.Fatal(err)
		}
	}
	const deliveries = 60
	for i := range deliveries {
		failRun(t, s, fmt.Sprint("ada", i), "ada")
	}
	failRun(t, s, "bob", "bob")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	<-taken // with receivers one after another, it would come after all of the other user
	mu.Lock()
	if held > 4 || most > 4 {
		t.Errorf("%d requests to the slow receiver at once", most)
	}
	mu.Unlock()
	close(release)
	cancel()
	<-ended
}

// TestNoticesAreTakenWhileDeliveriesOfAUserWait has more deliveries of a user wait than are looked at until the first of
// them is due again: with a clock that is behind, they are due at once.
func TestNoticesAreTakenWhileDeliveriesOfAUserWait(t *testing.T) {
	t.Parallel()
	release, begun, taken := make(chan struct{}), make(chan struct{}, 100), make(chan struct{}, 100)
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-release
	}))
	defer slow.Close()
	quick := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken <- struct{}{} }))
	defer quick.Close()
	s := memory.New()
	w := webhook.New(webhook.Options{
		Store: s.Capabilities().Documents, Runs: s, HTTP: new(http.Client), Key: []byte("key"), Clock: func() time.Time { return time.Now().Add(-time.Hour) },
	})
	for user, url := range map[string]string{"ada": slow.URL, "bob": quick.URL} {
		if err := w.Put(t.Context(), &webhook.Hook{ID: user, User: user, URL: url, Events: []string{webhook.RunFailed}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		failRun(t, s, fmt.Sprint("ada", i), "ada")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	for range 4 {
		<-begun
	}
	failRun(t, s, "bob", "bob")
	select {
	case <-taken:
	case <-time.After(time.Minute):
		t.Error("the notice of a run waits for the deliveries of another user")
	}
	close(release)
	cancel()
	<-ended
}

func failRun(t *testing.T, s store.Store, id, user string) {
	t.Helper()
	a := store.Append{
		Commit: engine.Commit{Run: id, Seq: 1, First: 1, At: 1, Events: []engine.Event{&engine.RunStarted{}}}, Fence: 1,
		Start:   &store.RunStart{NewRun: store.NewRun{ID: id, Flow: "f", User: user, At: time.UnixMilli(1)}},
		Acquire: &store.Lease{Owner: "me", TTL: time.Hour}, Head: store.Head{Status: engine.Failed, Error: &engine.Error{Code: "failed", Message: "m"}},
	}
	if err := s.Append(t.Context(), []store.Append{a})[0]; err != nil {
		t.Fatal(err)
	}
}
