package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// documentKind are documents that are deleted with their session: title/SESSION,
// budget/SESSION, and label/LABEL/SESSION for each label.
const documentKind = "session"

const (
	titlePrefix  = "title/"
	labelPrefix  = "label/"
	budgetPrefix = "budget/"
	// documentPage is how many documents are read at once.
	documentPage = 1000
)

const (
	// MaxLabels is how many labels a session has at most.
	MaxLabels = 20
	// MaxTitle is the maximal length of a title, in bytes.
	MaxTitle = 200
)

// Names is what people call a session.
type Names struct {
	// Title is "" if none was set.
	Title string `json:"title"`
	// Labels are sorted.
	Labels []string `json:"labels"`
}

// labelBody is the body of a label.
type labelBody struct {
	Created time.Time `json:"created"` // when the session was
	By      string    `json:"by"`
}

// titleBody is the body of a title.
type titleBody struct {
	Title string `json:"title"`
	By    string `json:"by"`
}

// Names returns the title and the labels of a session. In a store without documents,
// sessions have none.
func (m *Manager) Names(ctx context.Context, id string) (Names, error) {
	n := Names{Labels: []string{}}
	list, err := m.store.Documents(ctx, store.DocumentFilter{Kind: documentKind, Run: id, Limit: documentPage})
	if errors.Is(err, store.ErrUnsupported) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	for i := range list {
		switch d := &list[i]; {
		case strings.HasPrefix(d.ID, titlePrefix):
			var b titleBody
			if err := json.Unmarshal(d.Body, &b); err != nil {
				return n, fmt.Errorf("title of session %s: %w", id, err)
			}
			n.Title = b.Title
		case strings.HasPrefix(d.ID, labelPrefix):
			label, _, _ := strings.Cut(strings.TrimPrefix(d.ID, labelPrefix), "/")
			n.Labels = append(n.Labels, label)
		}
	}
	slices.Sort(n.Labels)
	return n, nil
}

// Names is Manager.Names of this session.
func (s *Session) Names(ctx context.Context) (Names, error) { return s.m.Names(ctx, s.ID) }

// Rename is Manager.Rename of this session.
func (s *Session) Rename(ctx context.Context, title, by string) error {
	return s.m.Rename(ctx, s.ID, title, by)
}

// SetLabels is Manager.SetLabels of this session.
func (s *Session) SetLabels(ctx context.Context, labels []string, by string) error {
	return s.m.SetLabels(ctx, s.ID, labels, by)
}

// Rename gives a session a title of at most MaxTitle bytes in one line; "" removes it. By is
// who did. The error has the code usage for another title, and is store.ErrNotFound if there is
// no session with that id.
func (m *Manager) Rename(ctx context.Context, id, title, by string) error {
	title = strings.TrimSpace(title)
	if len(title) > MaxTitle || !utf8.ValidString(title) || strings.ContainsFunc(title, unicode.IsControl) {
		return nameError(fmt.Sprintf("a title is one line of at most %d bytes", MaxTitle))
	}
	row, err := m.store.Session(ctx, id)
	if err != nil {
		return err
	}
	if title == "" {
		return m.removeDocument(ctx, titlePrefix+row.ID)
	}
	return m.changeDocument(ctx, &row, titlePrefix+row.ID, func(json.RawMessage) (any, error) { return titleBody{title, by}, nil })
}

func nameError(message string) error {
	return &engine.Error{Code: engine.CodeUsage, Permanent: true, Message: message}
}

// SetLabels sets all labels of a session: at most MaxLabels of lower case letters, digits, dots,
// hyphens and underscores, each of at most 64 bytes. By is who did. The error has the code usage
// for other labels, and is store.ErrNotFound if there is no session with that id.
func (m *Manager) SetLabels(ctx context.Context, id string, labels []string, by string) error {
	form := regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	for _, label := range labels {
		if !form.MatchString(label) {
			return nameError(fmt.Sprintf("the label %q has other characters than lower case letters, digits, dots, hyphens and underscores, or more than 64", label))
		}
	}
	labels = slices.Compact(slices.Sorted(slices.Values(labels)))
	if len(labels) > MaxLabels {
		return nameError(fmt.Sprintf("a session has at most %d labels", MaxLabels))
	}
	row, err := m.store.Session(ctx, id)
	if err != nil {
		return err
	}
	have, err := m.Names(ctx, row.ID)
	if err != nil {
		return err
	}
	for _, label := range labels {
		if slices.Contains(have.Labels, label) {
			continue
		}
		body := labelBody{row.Created.UTC(), by}
		if err := m.changeDocument(ctx, &row, labelPrefix+label+"/"+row.ID, func(json.RawMessage) (any, error) { return body, nil }); err != nil {
			return err
		}
	}
	for _, label := range have.Labels {
		if slices.Contains(labels, label) {
			continue
		}
		if err := m.removeDocument(ctx, labelPrefix+label+"/"+row.ID); err != nil {
			return err
		}
	}
	return nil
}

// changeDocument writes what next makes of the present body, nil for none. It tries again
// where another process has written meanwhile.
func (m *Manager) changeDocument(ctx context.Context, row *store.Session, id string, next func(json.RawMessage) (any, error)) error {
	for {
		d, err := m.store.Document(ctx, documentKind, id)
		if errors.Is(err, store.ErrNotFound) {
			d, err = store.Document{Kind: documentKind, ID: id, User: row.User, Run: row.ID}, nil
		}
		if err != nil {
			return err
		}
		body, err := next(d.Body)
		if err != nil {
			return err
		}
		if d.Body, err = json.Marshal(body); err != nil {
			return err
		}
		_, err = m.store.PutDocument(ctx, d)
		if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		// The session may have been deleted meanwhile, and its documents before this one.
		if _, err := m.store.Session(ctx, row.ID); err != nil {
			return errors.Join(err, m.removeDocument(context.WithoutCancel(ctx), id))
		}
		return nil
	}
}

// removeDocument removes a document, if there is one.
func (m *Manager) removeDocument(ctx context.Context, id string) error {
	if err := m.store.DeleteDocument(ctx, documentKind, id, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// ListLabelled returns the sessions with a label that the filter selects, newest first.
func (m *Manager) ListLabelled(ctx context.Context, label string, f store.SessionFilter) ([]store.Session, error) {
	entries, err := m.labelled(ctx, label, f.User)
	if err != nil {
		return nil, err
	}
	if f.Before != "" {
		last, err := m.store.Session(ctx, f.Before)
		if err != nil {
			return nil, err
		}
		end := labelledSession{last.ID, last.Created}
		entries = slices.DeleteFunc(entries, func(e labelledSession) bool { return newestFirst(e, end) <= 0 })
	}
	limit, out := cmp.Or(f.Limit, 100), []store.Session{}
	for _, e := range entries {
		if !strings.HasPrefix(e.id, f.Prefix) {
			continue
		}
		row, err := m.store.Session(ctx, e.id)
		if errors.Is(err, store.ErrNotFound) || err == nil && f.Flow != "" && row.Flow != f.Flow {
			continue
		}
		if err != nil {
			return nil, err
		}
		if out = append(out, row); len(out) == limit {
			break
		}
	}
	return out, nil
}

// labelledSession is a session with a label.
type labelledSession struct {
	id      string
	created time.Time
}

// newestFirst orders sessions as listings do.
func newestFirst(a, b labelledSession) int {
	if d := b.created.Compare(a.created); d != 0 {
		return d
	}
	return strings.Compare(b.id, a.id)
}

// labelled returns the sessions with a label, newest first; those of one user unless that is "".
func (m *Manager) labelled(ctx context.Context, label, user string) ([]labelledSession, error) {
	var out []labelledSession
	for after := ""; ; {
		page, err := m.store.Documents(ctx, store.DocumentFilter{
			Kind: documentKind, Prefix: labelPrefix + label + "/", User: user, After: after, Limit: documentPage,
		})
		if err != nil {
			return nil, err
		}
		for i := range page {
			var b labelBody
			if err := json.Unmarshal(page[i].Body, &b); err != nil {
				return nil, fmt.Errorf("label %s of session %s: %w", label, page[i].Run, err)
			}
			out = append(out, labelledSession{page[i].Run, b.Created})
		}
		if len(page) < documentPage {
			slices.SortFunc(out, newestFirst)
			return out, nil
		}
		after = page[len(page)-1].ID
	}
}
