package auditlog

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/store"
)

// The outcomes that a Filter knows.
const (
	OutcomeOK      = "ok"      // a status below 400
	OutcomeRefused = "refused" // a status from 400 to 499
	OutcomeFailed  = "failed"  // a status from 500
	OutcomeOpen    = "open"    // in progress, or its process died
)

// Filter selects entries; fields with their zero value select all.
type Filter struct {
	User, Token, Outcome string
	// Action is the whole action, or a part of it.
	Action string
	// Object is the id of something that the action is about, or the name of a user.
	Object string
	// Since is inclusive, Until is not.
	Since, Until time.Time
}

const (
	// readPage is how many documents are read at once, and maxRead how many entries one call of List looks at.
	readPage = 500
	maxRead  = 5000
)

// Page is a part of the log.
type Page struct {
	Entries []Entry `json:"entries"`
	Next    string  `json:"next" doc:"The cursor of the next page; empty on the last one. A page may have fewer entries than the limit, or none, and still have a next one"`
}

// List returns at most limit entries, the newest first, behind the cursor after. A page may have fewer entries than the
// limit and still have a next one: one call looks at 5,000 entries.
func (l *Log) List(ctx context.Context, f Filter, after string, limit int) (*Page, error) {
	users, err := l.names.all(ctx)
	if err != nil {
		return nil, err
	}
	out := &Page{Entries: []Entry{}}
	if !f.Until.IsZero() {
		after = max(after, idPrefix(f.Until.Add(time.Millisecond-1))+"~")
	}
	for seen := 0; seen < maxRead; seen += readPage {
		docs, err := l.store.Documents(ctx, store.DocumentFilter{Kind: store.AuditKind, After: after, Limit: readPage})
		if err != nil {
			return nil, err
		}
		more, err := out.add(docs, &f, users, limit)
		if err != nil || !more {
			return out, err
		}
		after = docs[len(docs)-1].ID
	}
	out.Next = after
	return out, nil
}

// add adds the entries among documents that a filter selects, up to the limit, and reports whether older ones are
// to be read. It sets Next where the page is full.
func (p *Page) add(docs []store.Document, f *Filter, users map[string]string, limit int) (more bool, err error) {
	for i := range docs {
		e, err := entryOf(&docs[i])
		if err != nil || !f.Since.IsZero() && e.At.Before(f.Since) {
			return false, err
		}
		if e.reveal(users); !f.selects(&e.Entry) {
			continue
		}
		if p.Entries = append(p.Entries, e.Entry); len(p.Entries) == limit {
			if i+1 < len(docs) || len(docs) == readPage {
				p.Next = docs[i].ID
			}
			return false, nil
		}
	}
	return len(docs) == readPage, nil
}

func entryOf(d *store.Document) (k kept, err error) {
	if err := json.Unmarshal(d.Body, &k); err != nil {
		return k, fmt.Errorf("read entry %s of the audit log: %w", d.ID, err)
	}
	k.ID = d.ID
	return k, nil
}

// reveal puts the names of users in place of pseudonyms.
func (k *kept) reveal(users map[string]string) {
	name := func(pseudonym string) string {
		if pseudonym == "" {
			return ""
		}
		if user, ok := users[pseudonym]; ok {
			return user
		}
		return "erased:" + pseudonym
	}
	k.User = name(k.User)
	if k.Objects = maps.Clone(k.Objects); k.Objects == nil {
		k.Objects = map[string]string{}
	}
	for _, kind := range userKinds() {
		if k.Objects[kind] != "" {
			k.Objects[kind] = name(k.Objects[kind])
		}
	}
}

// userKinds are the kinds of objects whose ids are names of users: whom the action is about, and for whom a
// program acts.
func userKinds() []string { return []string{"user", "for"} }

// Outcome returns how an action ended.
func (e *Entry) Outcome() string {
	switch {
	case e.Status == 0:
		return OutcomeOpen
	case e.Status >= 500:
		return OutcomeFailed
	case e.Status >= 400:
		return OutcomeRefused
	}
	return OutcomeOK
}

func (f *Filter) selects(e *Entry) bool {
	return (f.User == "" || e.User == f.User) && (f.Token == "" || e.Token == f.Token) && (f.Outcome == "" || e.Outcome() == f.Outcome) &&
		strings.Contains(e.Action, f.Action) && (f.Until.IsZero() || e.At.Before(f.Until)) &&
		(f.Object == "" || slices.Contains(slices.Collect(maps.Values(e.Objects)), f.Object))
}

// Verified is what Verify found.
type Verified struct {
	Entries int `json:"entries"`
	Chains  int `json:"chains"`
	// Problems name entries that were changed, and numbers that are missing between entries.
	Problems []string `json:"problems"`
}

// Verify checks that no entry was changed as it began, and that none is missing between the oldest and the newest of each
// chain. Outcomes, entries missing at the end of a chain, and a chain that was removed or written again as a whole are not found.
func (l *Log) Verify(ctx context.Context) (*Verified, error) {
	type link struct {
		number         int64
		digest, before string
	}
	out, next := &Verified{Problems: []string{}}, make(map[string]link)
	for after := ""; ; {
		docs, err := l.store.Documents(ctx, store.DocumentFilter{Kind: store.AuditKind, After: after, Limit: readPage})
		if err != nil {
			return nil, err
		}
		for i := range docs { // the newest first
			k, err := entryOf(&docs[i])
			if err != nil {
				return nil, err
			}
			out.Entries++
			if k.digest(k.Before, k.Begun) != k.Digest {
				out.Problems = append(out.Problems, fmt.Sprintf("entry %s was changed", k.ID))
			}
			later, known := next[k.Chain]
			if known && (later.number != k.Number+1 || later.before != k.Digest) {
				out.Problems = append(out.Problems, fmt.Sprintf("chain %s: entry %d does not follow entry %d", k.Chain, later.number, k.Number))
			}
			next[k.Chain] = link{k.Number, k.Digest, k.Before}
		}
		if len(docs) < readPage {
			out.Chains = len(next)
			return out, nil
		}
		after = docs[len(docs)-1].ID
	}
}
