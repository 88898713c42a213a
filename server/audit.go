package server

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/store"
)

// auditTime bounds how long the end of a request may take to be recorded.
const auditTime = 10 * time.Second

// changes reports whether requests of a route are recorded in the audit log: all but reads.
func (r *routes) changes(pattern string) bool {
	method, _, _ := strings.Cut(pattern, " ")
	return r.audited[pattern] || method != http.MethodGet && method != http.MethodHead && !r.reads[pattern]
}

// auditOf starts the entry of a request before it takes effect. It returns nil for a request that changes nothing.
func (s *Server) auditOf(r *http.Request, pattern string, who *principal) (*auditlog.Action, error) {
	if s.audit == nil || !s.routes.changes(pattern) {
		return nil, nil //nolint:nilnil // a nil Action records nothing
	}
	return s.audit.Begin(context.WithoutCancel(r.Context()), entryOf(r, pattern, who))
}

func entryOf(r *http.Request, pattern string, who *principal) auditlog.Entry {
	return auditlog.Entry{Via: "api", User: who.user, Token: who.token, Action: pattern, Objects: objectsOf(pattern, r.URL)}
}

// endAudit records how a request ended.
func (s *Server) endAudit(a *auditlog.Action, r *http.Request, out *statusWriter) {
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTime)
	defer cancel()
	err := error(nil)
	if to := out.Header().Get("Location"); to != "" && out.status < http.StatusMultipleChoices {
		err = a.About(ctx, "made", strings.TrimPrefix(to, s.options.BasePath))
	}
	if end := a.End(ctx, out.status, ""); end != nil {
		err = end
	}
	if err != nil {
		s.logger.ErrorContext(ctx, "the outcome of a request is not in the audit log", "error", err)
	}
}

// recordAudit records a request that has ended: one that was refused before it could take effect, or one that
// needs no token and was accepted.
func (s *Server) recordAudit(r *http.Request, pattern string, who *principal, via string, status int, code string) {
	if s.audit == nil || !s.routes.changes(pattern) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTime)
	defer cancel()
	e := entryOf(r, pattern, who)
	e.Via, e.Status, e.Code = via, status, code
	if err := s.audit.Record(ctx, e); err != nil {
		s.logger.ErrorContext(ctx, "a request is not in the audit log", "error", err)
	}
}

// recordedNames are the wildcards of routes whose values are recorded, by the kind of object. Names that a
// user has chosen freely, such as those of filters, are contents; secrets in paths are secrets.
func recordedNames() map[string]string {
	out := map[string]string{"item": "memory"}
	for _, kind := range []string{
		"run", "session", "flow", "webhook", "trigger", "delivery", "message", "version", "response", "conversation", "other", "context", "user", "token", "model", "policy", "file",
	} {
		out[kind] = kind
	}
	return out
}

// maxRecordedID bounds the ids of objects in the audit log, in bytes.
const maxRecordedID = 200

// objectsOf returns the ids that the path of a request names.
func objectsOf(pattern string, at *url.URL) map[string]string {
	out, names := map[string]string{}, recordedNames()
	_, path, _ := strings.Cut(pattern, " ")
	given := strings.Split(at.EscapedPath(), "/")
	for i, part := range strings.Split(path, "/") {
		kind := names[strings.Trim(part, "{}")]
		if !strings.HasPrefix(part, "{") || kind == "" || i >= len(given) || strings.HasPrefix(path, "/a/") {
			continue
		}
		id, err := url.PathUnescape(given[i])
		if err != nil || len(id) > maxRecordedID || strings.HasPrefix(id, tokenPrefix) { // the client sent a secret in place of an id
			continue
		}
		out[kind] = id
	}
	return out
}

// about adds an object to the entry of the request in the audit log.
func (c *call) about(kind, id string) error {
	return c.who.action.About(context.WithoutCancel(c), kind, id)
}

// trimAudit deletes old entries of the audit log, as long as ctx lasts.
func (s *Server) trimAudit(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if _, err := s.audit.Trim(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.logger.WarnContext(ctx, "delete old entries of the audit log", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

type listAuditInput struct {
	User    string `query:"user" maxLength:"200" doc:"Only what this user did"`
	Token   string `query:"token" maxLength:"100" doc:"Only what was done with the token of this id"`
	Action  string `query:"action" maxLength:"200" doc:"Only actions that contain this text, such as /cancel or DELETE"`
	Object  string `query:"object" maxLength:"400" doc:"Only what is about this id, or about the user of this name"`
	Outcome string `query:"outcome" enum:"ok,refused,failed,open" doc:"open: in progress, or the process died"`
	Since   string `query:"since" format:"date-time" doc:"Only what began at this time or later"`
	Until   string `query:"until" format:"date-time" doc:"Only what began before this time"`
	Cursor  string `query:"cursor" maxLength:"100" doc:"The member next of the page before"`
	Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

func (s *Server) registerAudit() {
	register(s, operation{
		id: "listAudit", method: http.MethodGet, path: "/v1/audit", scope: Admin, tags: []string{"audit"}, summary: "List who changed what, the newest first",
		description: "One entry for each request that changes something. It is written before the request takes effect, and completed with the outcome. Entries have no contents.",
	}, listAudit)
	register(s, operation{
		id: "verifyAudit", method: http.MethodGet, path: "/v1/audit/verify", scope: Admin, tags: []string{"audit"}, summary: "Verify that no entry was changed or removed",
		description: "Entries of each process form a chain of digests. What is missing at either end of a chain, and changed outcomes, are not found.",
	}, verifyAudit)
}

func listAudit(c *call, in *listAuditInput) (*body[*auditlog.Page], error) {
	if c.audit == nil {
		return nil, &store.Unsupported{Capability: "documents"}
	}
	f := auditlog.Filter{User: in.User, Token: in.Token, Action: in.Action, Object: in.Object, Outcome: in.Outcome}
	for _, at := range []struct {
		name, text string
		to         *time.Time
	}{{"since", in.Since, &f.Since}, {"until", in.Until, &f.Until}} {
		if at.text == "" {
			continue
		}
		var err error
		if *at.to, err = time.Parse(time.RFC3339, at.text); err != nil {
			return nil, invalidRequest("query."+at.name, "expected a time such as 2026-11-23T10:00:00Z")
		}
	}
	page, err := c.audit.List(c, f, in.Cursor, in.Limit)
	return bodyOf(page), err
}

func verifyAudit(c *call, _ *struct{}) (*body[*auditlog.Verified], error) {
	if c.audit == nil {
		return nil, &store.Unsupported{Capability: "documents"}
	}
	v, err := c.audit.Verify(c)
	return bodyOf(v), err
}

// AuditedRoutes lists the patterns of the routes whose requests are recorded in the audit log, for tests.
func (s *Server) AuditedRoutes() []string {
	var out []string
	for pattern := range s.routes.scopes {
		if s.routes.changes(pattern) {
			out = append(out, pattern)
		}
	}
	slices.Sort(out)
	return out
}
