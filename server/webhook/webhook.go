// Package webhook reports to other programs what happens to runs: it turns the notices that
// commits leave into deliveries, and sends those, signed, until the receiver has taken them.
// Several processes on one store share the work.
//
// It must not know the HTTP API, and sends ids, no contents.
package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// The kinds of documents of this package.
const (
	hookKind     = store.NoticeKind
	deliveryKind = "delivery" // by HOOK/EVENT
)

// The events that a receiver can ask for.
const (
	RunCompleted = "run.completed"
	RunFailed    = "run.failed"
	RunCancelled = "run.cancelled"
	RunWaiting   = "run.waiting" // a question is open that was not open before
	BudgetNear   = "budget.near" // 80% of a budget or of a quota are used
)

// Events lists all events.
func Events() []string {
	return []string{RunCompleted, RunFailed, RunCancelled, RunWaiting, BudgetNear}
}

// Hook is a receiver.
type Hook struct {
	ID   string `json:"id"`
	User string `json:"user" doc:"Whose runs it is about"`
	URL  string `json:"url"`
	// Events are those that it receives, Flow the only flow, "" for all.
	Events []string `json:"events"`
	Flow   string   `json:"flow" doc:"Only runs of the flow with this name; empty is all"`
	// All: runs of all users.
	All    bool `json:"all" doc:"Runs of all users; needs the scope admin"`
	Paused bool `json:"paused" doc:"Nothing is sent; deliveries wait"`
	// Key numbers the secrets of the hook. Before RotatedUntil its deliveries are signed with
	// the secret before, too.
	Key          int       `json:"key" doc:"The number of its secret"`
	RotatedUntil time.Time `json:"rotatedUntil,omitzero" doc:"Until then deliveries are signed with the secret before, too"`
	Created      time.Time `json:"created"`

	version int64
}

// Delivery is one event for one receiver.
type Delivery struct {
	ID    string    `json:"id" doc:"The header webhook-id; the same in every try"`
	Hook  string    `json:"webhook"`
	Event string    `json:"event"`
	Run   string    `json:"run"`
	At    time.Time `json:"at" doc:"When it happened"`
	// State is pending, delivered or failed.
	State string `json:"state" enum:"pending,delivered,failed"`
	Tries []Try  `json:"tries" doc:"The newest last"`
	// Next is when it is tried again.
	Next    time.Time       `json:"next,omitzero"`
	Payload json.RawMessage `json:"payload" doc:"What is sent"`

	version int64
}

// Try is one try to deliver.
type Try struct {
	At     time.Time `json:"at"`
	Status int       `json:"status" doc:"Of the answer; 0 without one"`
	Error  string    `json:"error"`
	Micros int64     `json:"micros"`
}

// The states of a delivery.
const (
	pending   = "pending"
	delivered = "delivered"
	failed    = "failed"
)

// Options of a Sender. All but Logger and Clock are required.
type Options struct {
	Store store.DocumentStore
	Runs  interface {
		Run(ctx context.Context, id string) (store.Run, error)
	}
	// HTTP sends the deliveries. It must refuse addresses that outsiders must not reach, and
	// redirects are not followed.
	HTTP *http.Client
	// Key is the secret from which those of hooks derive.
	Key    []byte
	Logger *slog.Logger
	Clock  func() time.Time
}

// Sender keeps hooks and sends deliveries. Its methods may be called concurrently.
type Sender struct {
	o       Options
	http    *http.Client
	flights flights
}

// New returns a Sender. Run makes it send.
func New(o Options) *Sender {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	c := *o.HTTP
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Sender{o: o, http: &c}
}

// Secret returns the secret with which deliveries of a hook are signed, in the form of
// Standard Webhooks. It derives from the number of the hook's key and is not kept.
func (s *Sender) Secret(h *Hook) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(s.secret(h.ID, h.Key))
}

func (s *Sender) secret(id string, number int) []byte {
	m := hmac.New(sha256.New, s.o.Key)
	m.Write([]byte("webhook " + id + " " + strconv.Itoa(number)))
	return m.Sum(nil)
}

// Check returns an *engine.Error for a hook that cannot be used.
func (h *Hook) Check() error {
	invalid := func(format string, args ...any) error {
		return &engine.Error{Code: engine.CodeInput, Permanent: true, Message: fmt.Sprintf(format, args...)}
	}
	u, err := url.Parse(h.URL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return invalid("url: expected an address that begins with https:// or http://")
	case u.User != nil:
		return invalid("url: a user name or password cannot stand in a URL; deliveries are signed instead")
	case len(h.Events) == 0:
		return invalid("events: expected at least one of %q", Events())
	}
	for _, e := range h.Events {
		if !slices.Contains(Events(), e) {
			return invalid("events: there is no event %q; there are %q", e, Events())
		}
	}
	return nil
}

// Put keeps a hook, new or changed. store.ErrExists, store.ErrChanged.
func (s *Sender) Put(ctx context.Context, h *Hook) error {
	if err := h.Check(); err != nil {
		return err
	}
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	d, err := s.o.Store.PutDocument(ctx, store.Document{Kind: hookKind, ID: h.ID, User: h.User, Version: h.version, Body: body})
	h.version = d.Version
	return err
}

// Hook returns a hook. store.ErrNotFound.
func (s *Sender) Hook(ctx context.Context, id string) (*Hook, error) {
	d, err := s.o.Store.Document(ctx, hookKind, id)
	if err != nil {
		return nil, err
	}
	return hookOf(&d)
}

func hookOf(d *store.Document) (*Hook, error) {
	h := &Hook{version: d.Version}
	if err := json.Unmarshal(d.Body, h); err != nil {
		return nil, fmt.Errorf("read webhook %s: %w", d.ID, err)
	}
	return h, nil
}

// Hooks lists the hooks of a user, of all if user is "".
func (s *Sender) Hooks(ctx context.Context, user string) ([]*Hook, error) {
	const page = 500
	out := []*Hook{}
	for after := ""; ; {
		list, err := s.o.Store.Documents(ctx, store.DocumentFilter{Kind: hookKind, User: user, After: after, Limit: page})
		if err != nil {
			return nil, err
		}
		for i := range list {
			after = list[i].ID
			h, err := hookOf(&list[i])
			if err != nil {
				return nil, err
			}
			out = append(out, h)
		}
		if len(list) < page {
			return out, nil
		}
	}
}

// Rotate gives a hook another secret. Deliveries are signed with both for a day.
func (s *Sender) Rotate(ctx context.Context, h *Hook) error {
	h.Key++
	h.RotatedUntil = s.o.Clock().Add(24 * time.Hour).UTC().Truncate(time.Second)
	return s.Put(ctx, h)
}

// Delete deletes a hook with its deliveries.
func (s *Sender) Delete(ctx context.Context, h *Hook) error {
	if err := s.o.Store.DeleteDocument(ctx, hookKind, h.ID, 0); err != nil {
		return err
	}
	for {
		list, err := s.o.Store.Documents(ctx, store.DocumentFilter{Kind: deliveryKind, Prefix: h.ID + "/", Limit: 500})
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if err := s.o.Store.DeleteDocument(ctx, deliveryKind, list[i].ID, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
	}
}

// Deliveries lists the deliveries of a hook by id, behind after.
func (s *Sender) Deliveries(ctx context.Context, hook, after string, limit int) ([]*Delivery, error) {
	if after != "" {
		after = hook + "/" + after
	}
	list, err := s.o.Store.Documents(ctx, store.DocumentFilter{Kind: deliveryKind, Prefix: hook + "/", After: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]*Delivery, 0, len(list))
	for i := range list {
		d, err := deliveryOf(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func deliveryOf(doc *store.Document) (*Delivery, error) {
	d := &Delivery{version: doc.Version}
	if err := json.Unmarshal(doc.Body, d); err != nil {
		return nil, fmt.Errorf("read delivery %s: %w", doc.ID, err)
	}
	return d, nil
}

// Resend has a delivery sent once more, whatever became of it. store.ErrNotFound.
func (s *Sender) Resend(ctx context.Context, hook, id string) (*Delivery, error) {
	for {
		doc, err := s.o.Store.Document(ctx, deliveryKind, hook+"/"+id)
		if err != nil {
			return nil, err
		}
		d, err := deliveryOf(&doc)
		if err != nil {
			return nil, err
		}
		d.State, d.Next = pending, s.o.Clock().UTC()
		if err = s.save(ctx, d, d.Next); !errors.Is(err, store.ErrChanged) {
			return d, err
		}
		// A try has ended meanwhile, and has changed the delivery.
	}
}

// save keeps a delivery, with which there is something to do at due.
func (s *Sender) save(ctx context.Context, d *Delivery, due time.Time) error {
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	hook, err := s.o.Store.Document(ctx, hookKind, d.Hook)
	if err != nil {
		return err
	}
	kept, err := s.o.Store.PutDocument(ctx, store.Document{
		Kind: deliveryKind, ID: d.Hook + "/" + d.ID, User: hook.User, Run: d.Run, Version: d.version, Body: body, Due: due,
	})
	d.version = kept.Version
	return err
}
