package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/server/filestore"
	"github.com/weir-run/weir/store"
)

// exportedKinds are the kinds of documents of a user: an export has all of them. Those of audit names hold nothing
// but the name.
func exportedKinds() []string {
	return []string{
		store.UserKind, store.QuotaKind, store.QuotaDayKind, store.QuotaNearKind, store.FlowKind, store.FlowTextKind, store.LabelKind, store.RatingKind, store.FilterKind,
		store.NoticeKind, "delivery", store.TriggerKind, store.TriggerFileKind, linkKind, loginKind, testKind, tokenOriginKind, "session",
		filestore.Kind, filestore.PieceKind, filestore.UseKind,
		"openai.response", "openai.conversation", "openai.history", "openai.turn", "openai.request", "openai.progress",
	}
}

const (
	// exportPage is how many rows are read at once, exportPieces how many pieces of files, and exportMessages how many messages.
	exportPage     = 200
	exportPieces   = 8
	exportMessages = 500
)

func (s *Server) registerUserExport() {
	register(s, operation{
		id: "exportUser", method: http.MethodGet, path: "/v1/users/{user}/export", scope: Admin, audited: true, tags: []string{"users"},
		summary: "Export what the database has about a user, as JSON lines",
		description: "Each line has a member type, and one with the content: the record and tokens of the user, sessions with their messages, runs with their events, memory, values that flows keep, " +
			"documents (flows, labels, ratings, filters, webhooks, triggers, quotas) and the entries of the user in the audit log. The last line has the type end. Secrets are not in it.",
	}, exportUser)
}

func exportUser(c *call, in *UserPath) (*download, error) {
	return &download{"application/x-ndjson", `attachment; filename="user.ndjson"`, func(h huma.Context) {
		_, w := humago.Unwrap(h)
		if err := c.writeUser(newLongAnswer(w), in.User); err != nil {
			// The status is sent: cutting the connection is the only way to say so.
			c.logger.ErrorContext(c, "export of a user failed", "error", err)
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// userExport writes the lines of an export. The first error ends it.
type userExport struct {
	ctx  context.Context
	s    *Server
	user string
	out  *json.Encoder
}

// writeUser writes an export.
func (c *call) writeUser(w io.Writer, user string) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	x := &userExport{c, c.Server, user, json.NewEncoder(buffered)}
	x.out.SetEscapeHTML(false)
	for _, part := range []func() error{x.tokens, x.documents, x.sessions, x.runs, x.memories, x.state, x.audit} {
		if err := part(); err != nil {
			return err
		}
	}
	if err := x.line("end", map[string]any{"user": user, "at": time.Now().UTC().Truncate(time.Second)}); err != nil {
		return err
	}
	return buffered.Flush()
}

// line writes a line with a type and a member of that name.
func (x *userExport) line(kind string, content any) error {
	return x.out.Encode(map[string]any{"type": kind, kind: content})
}

func (x *userExport) tokens() error {
	list, err := x.s.app.Store.Tokens(x.ctx, x.user)
	now := time.Now()
	for i := range list {
		err = errors.Join(err, x.line("token", tokenRowOf(&list[i], now)))
	}
	return err
}

func (x *userExport) documents() error {
	for _, kind := range exportedKinds() {
		page := exportPage
		if kind == filestore.PieceKind {
			page = exportPieces
		}
		for after := ""; ; {
			docs, err := x.s.app.Store.Documents(x.ctx, store.DocumentFilter{Kind: kind, User: x.user, After: after, Limit: page})
			if err != nil {
				return err
			}
			for i := range docs {
				d := &docs[i]
				row := map[string]any{"kind": d.Kind, "id": d.ID, "run": d.Run, "created": d.Created.UTC(), "updated": d.Updated.UTC(), "body": d.Body}
				if err := x.line("document", row); err != nil {
					return err
				}
			}
			if len(docs) < page {
				break
			}
			after = docs[len(docs)-1].ID
		}
	}
	return nil
}

func (x *userExport) sessions() error {
	for before := ""; ; {
		list, err := x.s.app.Store.Sessions(x.ctx, store.SessionFilter{User: x.user, Before: before, Limit: exportPage})
		if err != nil {
			return err
		}
		for i := range list {
			if err := errors.Join(x.line("session", &list[i]), ignoreDeleted(x.messages(list[i].ID))); err != nil {
				return err
			}
		}
		if len(list) < exportPage {
			return nil
		}
		before = list[len(list)-1].ID
	}
}

// messages writes the history of a session.
func (x *userExport) messages(session string) error {
	for from := 0; ; from += exportMessages {
		list, err := x.s.app.Store.SessionHistory(x.ctx, session, from, from+exportMessages)
		if err != nil {
			return err
		}
		for i := range list {
			if err := x.line("message", map[string]any{"session": session, "position": from + i, "message": list[i]}); err != nil {
				return err
			}
		}
		if len(list) < exportMessages {
			return nil
		}
	}
}

func (x *userExport) runs() error {
	for before := ""; ; {
		list, err := x.s.app.Store.Runs(x.ctx, store.Filter{User: x.user, Before: before, Limit: exportPage})
		if err != nil {
			return err
		}
		for i := range list {
			if err := errors.Join(x.line("run", &list[i]), ignoreDeleted(x.events(list[i].ID))); err != nil {
				return err
			}
		}
		if len(list) < exportPage {
			return nil
		}
		before = list[len(list)-1].ID
	}
}

// events writes the journal of a run, the past that it shares included.
func (x *userExport) events(run string) error {
	for commit, err := range x.s.app.Store.Commits(x.ctx, run, 0) {
		if err != nil {
			return err
		}
		for i, e := range commit.Events {
			if err := x.line("event", weir.Item{Run: run, Number: commit.First + int64(i), At: commit.When(i), Event: e}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *userExport) memories() error {
	list, err := x.s.app.Store.Memories(x.ctx, memory.Filter{User: x.user})
	for i := range list {
		err = errors.Join(err, x.line("memory", &list[i]))
	}
	return ignoreUnsupported(err)
}

func (x *userExport) state() error {
	list, err := x.s.app.UserState(x.ctx, x.user)
	for i := range list {
		v := &list[i]
		row := map[string]any{"flow": v.Flow, "key": v.Key, "value": v.Value, "version": v.Version, "run": v.Run, "by": v.By, "at": v.At.UTC()}
		err = errors.Join(err, x.line("state", row))
	}
	return ignoreUnsupported(err)
}

func (x *userExport) audit() error {
	if x.s.audit == nil {
		return nil
	}
	for after := ""; ; {
		page, err := x.s.audit.List(x.ctx, auditlog.Filter{User: x.user}, after, exportPage)
		if err != nil {
			return err
		}
		for i := range page.Entries {
			if err := x.line("audit", &page.Entries[i]); err != nil {
				return err
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// ignoreDeleted drops the error of a run or session that was deleted during the export.
func ignoreDeleted(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// ignoreUnsupported drops the error of a store that lacks a capability: it has nothing of the user there.
func ignoreUnsupported(err error) error {
	if errors.Is(err, store.ErrUnsupported) {
		return nil
	}
	return err
}
