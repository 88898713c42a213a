// Package auditlog records who changed what on a server: one entry for each request that changes
// something, written before the request takes effect and completed with its outcome.
//
// Entries hold routes, ids and times. It must not know the HTTP API, and is given no contents and
// no secrets. Users are stored as pseudonyms, so that the entries outlive the erasure of a user.
package auditlog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/store"
)

// Defaults of Options.
const (
	DefaultKeep    = 90 * 24 * time.Hour
	DefaultEntries = 1_000_000
)

// Entry is one action. The members from Status on are known when it has ended.
type Entry struct {
	ID string    `json:"id"`
	At time.Time `json:"at" doc:"When it began"`
	// Via is what brought it: "api", "public" for an answer link or a signed request, "schedule" or "command".
	Via string `json:"via" enum:"api,public,schedule,command" doc:"public: an answer link, or a signed request, which have no user"`
	// User is who acts; "" is the owner of the process. The user of an entry that was
	// erased since is "erased:" and a pseudonym, the same in all entries of the log.
	User string `json:"user" doc:"Who acts; empty is the owner of the process. A user who was erased is erased: and a pseudonym"`
	// Token is the id of the token, "" without one.
	Token string `json:"token" doc:"The id of the token; empty without one"`
	// Action is the route, such as "POST /v1/runs/{run}/cancel", or the name of what the server does by itself.
	Action string `json:"action" doc:"The route, or the name of what the server does by itself"`
	// Objects are ids by kind, such as "run". Names of users are pseudonyms in the store.
	Objects map[string]string `json:"objects" doc:"What it is about: ids by kind, such as run, session, flow or user"`
	// Status is that of the answer, in terms of HTTP; 0 while the action is in progress, or if its process died.
	Status int `json:"status" doc:"The HTTP status of the answer; 0 while it is in progress, or if its process died"`
	// Code is that of the error, "" for none.
	Code  string    `json:"code" doc:"The code of the error; empty for none"`
	Ended time.Time `json:"ended,omitzero"`
	// Chain and Number place the entry in the chain of the process that has written it, and Digest is
	// that of the entry as it began, and of the digest before.
	Chain  string `json:"chain" doc:"Entries of one chain are numbered from 1"`
	Number int64  `json:"number"`
	Digest string `json:"digest"`
}

// begun is the part of an entry that its digest covers.
type begun struct {
	ID, Before, Via, User, Token, Action, Chain string
	At                                          time.Time
	Number                                      int64
	Objects                                     map[string]string
}

// digest returns the digest of an entry as it began. Objects that were added later are not part of it.
func (e *Entry) digest(before string, objects map[string]string) string {
	text, _ := json.Marshal(begun{e.ID, before, e.Via, e.User, e.Token, e.Action, e.Chain, e.At.UTC(), e.Number, objects}) // texts can always be marshalled
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

// kept is the body of a document.
type kept struct {
	Entry
	// Before is the digest of the entry before, and Begun are the objects that were known at the beginning.
	Before string            `json:"before"`
	Begun  map[string]string `json:"begun"`
}

// Options of a Log.
type Options struct {
	// Keep is how long entries are kept; 0 is DefaultKeep.
	Keep time.Duration
	// Entries bounds their number; 0 is DefaultEntries.
	Entries int
}

// Log writes and reads entries. Its methods may be called concurrently.
type Log struct {
	store   store.DocumentStore
	options Options

	mu     sync.Mutex // held while an entry is added, so that the chain has an order
	chain  string     // "" before the first entry, and after one whose fate is unknown
	number int64
	last   string // digest
	at     time.Time

	names names
}

// New returns a Log in a store.
func New(s store.DocumentStore, o Options) *Log {
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Entries == 0 {
		o.Entries = DefaultEntries
	}
	return &Log{store: s, options: o, names: names{store: s, known: make(map[string]string)}}
}

// Action is an entry that has begun. A nil Action records nothing. Its methods may be called concurrently.
type Action struct {
	log *Log
	mu  sync.Mutex
	doc store.Document
	k   kept
}

// Begin records an action before it takes effect. It sets ID, At and the place in the chain. When it
// returns without an error, the entry is durable.
func (l *Log) Begin(ctx context.Context, e Entry) (*Action, error) {
	var err error
	if e.User, err = l.names.pseudonym(ctx, e.User); err != nil {
		return nil, err
	}
	objects := maps.Clone(e.Objects)
	for _, kind := range userKinds() {
		if objects[kind] == "" {
			continue
		}
		if objects[kind], err = l.names.pseudonym(ctx, objects[kind]); err != nil {
			return nil, err
		}
	}
	e.Objects = objects
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chain == "" {
		l.chain, l.number, l.last = strings.ToLower(rand.Text()[:16]), 0, ""
	}
	if e.At = time.Now().UTC().Truncate(time.Millisecond); e.At.Before(l.at) {
		e.At = l.at // the clock was set back: the order of ids is that of the chain
	}
	e.Chain, e.Number = l.chain, l.number+1
	e.ID = fmt.Sprintf("%s-%08x-%s", idPrefix(e.At), math.MaxUint32-uint32(e.Number), e.Chain[:8])
	e.Digest = e.digest(l.last, objects)
	a := &Action{log: l, k: kept{Entry: e, Before: l.last, Begun: objects}}
	a.doc = store.Document{Kind: store.AuditKind, ID: e.ID}
	if err := a.put(ctx); err != nil {
		l.chain = "" // it may have been written: its number is not given again
		return nil, fmt.Errorf("write the audit log: %w", err)
	}
	l.number, l.last, l.at = e.Number, e.Digest, e.At
	return a, nil
}

// Record records an action that has ended.
func (l *Log) Record(ctx context.Context, e Entry) error {
	a, err := l.Begin(ctx, e)
	if err != nil {
		return err
	}
	return a.End(ctx, e.Status, e.Code)
}

// About adds an object that is known only while the action is carried out. The kind "user" is for names of users.
// An empty id adds nothing.
func (a *Action) About(ctx context.Context, kind, id string) error {
	if a == nil || id == "" {
		return nil
	}
	if slices.Contains(userKinds(), kind) {
		var err error
		if id, err = a.log.names.pseudonym(ctx, id); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.k.Objects = maps.Clone(a.k.Objects)
	if a.k.Objects == nil {
		a.k.Objects = make(map[string]string)
	}
	a.k.Objects[kind] = id
	return nil
}

// Failed keeps the code of the error with which the action ends.
func (a *Action) Failed(code string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.k.Code = code
}

// End records the outcome: a status of HTTP, and the code of an error unless Failed has set it.
func (a *Action) End(ctx context.Context, status int, code string) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.k.Status, a.k.Ended = status, time.Now().UTC().Truncate(time.Millisecond)
	if a.k.Code == "" {
		a.k.Code = code
	}
	return a.put(ctx)
}

func (a *Action) put(ctx context.Context) (err error) {
	if a.doc.Body, err = json.Marshal(&a.k); err != nil {
		return err
	}
	a.doc, err = a.log.store.PutDocument(ctx, a.doc)
	return err
}

// idPrefix begins the ids of entries of a moment. Ids of later entries come first in the order of documents.
func idPrefix(t time.Time) string { return fmt.Sprintf("%016x", math.MaxInt64-t.UnixMilli()) }

// Trim deletes entries that are older than Options.Keep, and the oldest beyond Options.Entries.
func (l *Log) Trim(ctx context.Context, now time.Time) (deleted int, err error) {
	for {
		n, err := l.store.TrimDocuments(ctx, store.AuditKind, l.options.Entries, idPrefix(now.Add(-l.options.Keep))+"~")
		deleted += n
		if err != nil || n < store.MaxTrimmed {
			return deleted, err
		}
	}
}

// names knows the pseudonyms of users: documents that are deleted with the user.
type names struct {
	store store.DocumentStore
	mu    sync.Mutex
	known map[string]string // pseudonyms by user
}

// maxKnown bounds how many pseudonyms are remembered.
const maxKnown = 10_000

// pseudonym returns what stands for a user in entries. A user who was erased has a new one.
func (n *names) pseudonym(ctx context.Context, user string) (string, error) {
	if user == "" {
		return "", nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if id := n.known[user]; id != "" {
		switch _, err := n.store.Document(ctx, store.AuditNameKind, id); {
		case err == nil:
			return id, nil
		case !errors.Is(err, store.ErrNotFound):
			return "", err
		}
	}
	list, err := n.store.Documents(ctx, store.DocumentFilter{Kind: store.AuditNameKind, User: user, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		d, err := n.store.PutDocument(ctx, store.Document{Kind: store.AuditNameKind, ID: strings.ToLower(rand.Text()[:16]), User: user, Body: json.RawMessage(`{}`)})
		if err != nil {
			return "", err
		}
		list = append(list, d)
	}
	if len(n.known) >= maxKnown {
		clear(n.known)
	}
	n.known[user] = list[0].ID
	return list[0].ID, nil
}

// all returns the users by their pseudonyms.
func (n *names) all(ctx context.Context) (map[string]string, error) {
	out := make(map[string]string)
	for after := ""; ; {
		list, err := n.store.Documents(ctx, store.DocumentFilter{Kind: store.AuditNameKind, After: after, Limit: readPage})
		if err != nil {
			return nil, err
		}
		for i := range list {
			out[list[i].ID] = list[i].User
		}
		if len(list) < readPage {
			return out, nil
		}
		after = list[len(list)-1].ID
	}
}
