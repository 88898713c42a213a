package app

import (
	"context"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// SessionRow is a session as `weir sessions --json` prints it.
type SessionRow struct {
	Session     string    `json:"session"`
	User        string    `json:"user"`
	Flow        string    `json:"flow"`
	Thread      string    `json:"thread"`
	Title       string    `json:"title"`
	Labels      []string  `json:"labels"`
	Parent      string    `json:"parent"`
	ParentRound int       `json:"parent_round"`
	At          int       `json:"at"` // how many of the messages are the parent's
	Rounds      int       `json:"rounds"`
	Messages    int       `json:"messages"`
	Queued      int       `json:"queued"`
	Holder      string    `json:"run"` // the round that has not ended, "" for none
	Usage       Usage     `json:"usage"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
	Expires     string    `json:"expires"` // "" is never
}

// SessionRow returns the row of a session for a report.
func (a *App) SessionRow(ctx context.Context, s *store.Session) (SessionRow, error) {
	names, err := a.SessionNames(ctx, s.ID)
	return sessionRowOf(s, &names), err
}

// SessionRows returns the rows of sessions for a report.
func (a *App) SessionRows(ctx context.Context, list []store.Session) ([]SessionRow, error) {
	rows := make([]SessionRow, 0, len(list))
	for i := range list {
		row, err := a.SessionRow(ctx, &list[i])
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func sessionRowOf(s *store.Session, names *session.Names) SessionRow {
	r := SessionRow{
		Session: s.ID, User: s.User, Flow: s.Flow, Thread: s.Thread, Title: names.Title, Labels: names.Labels, Parent: s.Parent, ParentRound: s.ParentRound, At: s.ParentLength,
		Rounds: s.Rounds, Messages: s.Length, Queued: s.Queued, Holder: s.Holder, Usage: UsageOf(s.Usage),
		Created: s.Created, Updated: s.Updated,
	}
	if !s.Expires.IsZero() {
		r.Expires = s.Expires.UTC().Format(time.RFC3339)
	}
	return r
}

// MessageRow is a message of a session as --json prints it.
type MessageRow struct {
	Position int           `json:"position"`
	Run      string        `json:"run"`
	Round    int           `json:"round"` // 0 is what came with the parent
	Status   string        `json:"status"`
	At       time.Time     `json:"at"`
	Message  convo.Message `json:"message"`
}

// MessageRows returns messages of a session for a report.
func MessageRows(list []store.SessionMessage) []MessageRow {
	rows := make([]MessageRow, 0, len(list))
	for i := range list {
		m := &list[i]
		rows = append(rows, MessageRow{m.Position, m.Run, m.Round, m.Status.String(), m.At, m.Message})
	}
	return rows
}

// QueuedRow is a message that waits for a round as --json prints it.
type QueuedRow struct {
	ID      string       `json:"id"`
	By      string       `json:"by"`
	Origin  string       `json:"origin"` // "" is a call from Go
	At      time.Time    `json:"at"`
	Message engine.Value `json:"message"`
}

// QueuedRows returns queued messages for a report.
func QueuedRows(list []session.QueuedMessage) []QueuedRow {
	rows := make([]QueuedRow, 0, len(list))
	for _, w := range list {
		rows = append(rows, QueuedRow{w.ID, w.By, w.Origin, w.At, w.Message})
	}
	return rows
}
