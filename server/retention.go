package server

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/store"
)

const (
	// retentionKind are documents of policies by name, due when they are applied next.
	retentionKind = "retention"
	// retentionEvery is how often a policy is applied, and retentionBatch how many runs it deletes with one entry in the
	// audit log.
	retentionEvery = time.Hour
	retentionBatch = 100
	maxPolicies    = 200
)

// policy says what is deleted after a time.
type policy struct {
	Of     string   `json:"of" enum:"runs,sessions"`
	Flow   string   `json:"flow" doc:"Only those of the flow with this name; empty is all"`
	Status []string `json:"status" doc:"Of runs: only those with one of these statuses; empty is all that have ended"`
	// OlderThan is in seconds.
	OlderThan int64 `json:"olderThan" doc:"For how many seconds nothing has changed in what is deleted"`
}

// policyRow is a policy that is in force.
type policyRow struct {
	Name string `json:"name"`
	policy
	By        string    `json:"by" doc:"Who set it"`
	Changed   time.Time `json:"changed"`
	Next      time.Time `json:"next" doc:"When it is applied next"`
	LastError string    `json:"lastError" doc:"Why it could not be applied; empty if it could"`
}

type keptPolicy struct {
	policy
	By        string `json:"by"`
	LastError string `json:"lastError"`
}

// PolicyPath names a retention policy.
type PolicyPath struct {
	Policy string `path:"policy" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"The name of the policy"`
}

type putPolicyInput struct {
	PolicyPath
	Body struct {
		Of     string   `json:"of" enum:"runs,sessions" doc:"Runs that are no rounds of a session, or sessions with their rounds"`
		Flow   string   `json:"flow,omitempty" maxLength:"200" doc:"Only those of the flow with this name"`
		Status []string `json:"status,omitempty" maxItems:"3" doc:"Of runs: completed, failed, cancelled; without it all of these"`
		// OlderThan is at most 100 years.
		OlderThan int64  `json:"olderThan" minimum:"1" maximum:"3153600000" doc:"For how many seconds nothing has changed in what is deleted"`
		Confirm   string `json:"confirm,omitempty" doc:"The member confirmation of the answer that shows what the policy deletes now"`
	}
}

// retentionPreview says what a policy deletes at once.
type retentionPreview struct {
	Confirmation string        `json:"confirmation" doc:"Send it as the member confirm to put the policy in force; empty once it is"`
	Done         bool          `json:"done" doc:"The policy is in force"`
	Runs         []string      `json:"runs" doc:"The runs that it deletes now, at most 500"`
	Sessions     int           `json:"sessions" doc:"How many sessions it deletes now"`
	More         bool          `json:"more" doc:"There are more than 500 runs"`
	Kept         []app.KeptRun `json:"kept" doc:"Runs and sessions that are old enough and stay, and why"`
}

type policyList struct {
	Policies []policyRow `json:"policies"`
}

func (s *Server) registerRetention() {
	op := func(id, method, path, summary, description string) operation {
		return operation{id: id, method: method, path: "/v1/retention" + path, scope: Admin, summary: summary, description: description, tags: []string{"operation"}}
	}
	register(s, op("listRetention", http.MethodGet, "", "List the retention policies", ""), listRetention)
	register(s, op("putRetention", http.MethodPut, "/{policy}", "Have old runs or sessions deleted",
		"Without a confirmation it shows what the policy deletes now, and changes nothing. With it the policy is in force, and is applied every hour: the runs and sessions "+
			"of all users that nothing has changed for so long are deleted, unless something else shares their past. The audit log lists what was deleted."), putRetention)
	register(s, op("deleteRetention", http.MethodDelete, "/{policy}", "Delete a retention policy; what it selects stays", ""), deleteRetention)
}

func listRetention(c *call, _ *struct{}) (*body[policyList], error) {
	docs, err := c.app.Store.Documents(c, store.DocumentFilter{Kind: retentionKind, Limit: maxPolicies})
	out := policyList{Policies: []policyRow{}}
	for i := range docs {
		var k keptPolicy
		err = errors.Join(err, json.Unmarshal(docs[i].Body, &k))
		out.Policies = append(out.Policies, policyRow{docs[i].ID, k.policy, k.By, docs[i].Updated.UTC(), docs[i].Due.UTC(), k.LastError})
	}
	return bodyOf(out), err
}

func putRetention(c *call, in *putPolicyInput) (*body[retentionPreview], error) {
	p := policy{in.Body.Of, in.Body.Flow, append([]string{}, in.Body.Status...), in.Body.OlderThan}
	if p.Of == "sessions" && len(p.Status) > 0 {
		return nil, invalidRequest("body.status", "sessions have no status")
	}
	if err := runner.CheckName("flow", p.Flow); err != nil {
		return nil, invalidRequest("body.flow", err.Error())
	}
	if _, err := p.statuses(); err != nil {
		return nil, err
	}
	out, err := c.previewRetention(c, &p)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	out.Confirmation = hex.EncodeToString(c.digest("retention", c.who.user, in.Policy, string(text))[:16])
	if !hmac.Equal([]byte(out.Confirmation), []byte(in.Body.Confirm)) {
		return bodyOf(*out), nil
	}
	out.Confirmation, out.Done = "", true
	d := store.Document{Kind: retentionKind, ID: in.Policy, Due: time.Now()}
	_, err = c.keepOwn(d, "", maxPolicies, keptPolicy{policy: p, By: c.by()})
	return bodyOf(*out), err
}

func deleteRetention(c *call, in *PolicyPath) (*struct{}, error) {
	err := c.app.Store.DeleteDocument(context.WithoutCancel(c), retentionKind, in.Policy, 0)
	if errors.Is(err, store.ErrNotFound) {
		return nil, notFound("retention policy", in.Policy)
	}
	return nil, err
}

// statuses returns the statuses of runs that a policy selects.
func (p *policy) statuses() ([]engine.Status, error) {
	var out []engine.Status
	for _, name := range p.Status {
		status, err := app.StatusNamed(name)
		if err != nil || !status.Ended() || status == engine.NotNeeded {
			return nil, invalidRequest("body.status", "a policy selects runs that have ended: completed, failed, cancelled")
		}
		out = append(out, status)
	}
	return out, nil
}

// previewRetention finds what a policy deletes.
func (s *Server) previewRetention(ctx context.Context, p *policy) (*retentionPreview, error) {
	out := &retentionPreview{Runs: []string{}, Kept: []app.KeptRun{}}
	if p.Of == "sessions" {
		gone, err := s.pruneSessions(ctx, p, true)
		if err != nil {
			return nil, err
		}
		out.Sessions = gone.Sessions
		for _, k := range gone.Kept {
			why := "a record that stays shares its past"
			if k.Busy {
				why = "a process executes it, or a fork of it"
			}
			out.Kept = append(out.Kept, app.KeptRun{Run: k.Session, Why: why})
		}
		return out, nil
	}
	selected, err := s.oldRuns(ctx, p, maxBulk)
	if err != nil {
		return nil, err
	}
	for i := range selected.Runs {
		out.Runs = append(out.Runs, selected.Runs[i].ID)
	}
	out.More, out.Kept = selected.More, selected.Kept
	return out, nil
}

func (p *policy) age() time.Duration { return time.Duration(p.OlderThan) * time.Second }

func (s *Server) pruneSessions(ctx context.Context, p *policy, dryRun bool) (store.DeleteResult, error) {
	return s.app.PruneSessions(ctx, store.PruneOptions{Flow: p.Flow, OlderThan: p.age(), DryRun: dryRun})
}

func (s *Server) oldRuns(ctx context.Context, p *policy, most int) (*app.BulkSelection, error) {
	statuses, err := p.statuses()
	if err != nil {
		return nil, err
	}
	return s.app.SelectOldRuns(ctx, store.Filter{Flow: p.Flow, Status: statuses}, time.Now().Add(-p.age()), most)
}

// applyRetention applies the policies that are due. Of several processes one applies each.
func (s *Server) applyRetention(ctx context.Context) error {
	due, err := s.app.Store.ClaimDocuments(ctx, retentionKind, retentionEvery, maxPolicies)
	for i := range due {
		d := &due[i]
		var k keptPolicy
		if e := json.Unmarshal(d.Body, &k); e != nil {
			err = errors.Join(err, e)
			continue
		}
		failed := s.apply(ctx, d.ID, &k.policy)
		if ctx.Err() != nil {
			return ctx.Err() // it is due again when the claim has ended
		}
		if k.LastError = ""; failed != nil {
			k.LastError = problemOf(failed).Detail
			err = errors.Join(err, fmt.Errorf("retention policy %s: %w", d.ID, failed))
		}
		d.Due = time.Now().Add(retentionEvery)
		var e error
		if d.Body, e = json.Marshal(k); e == nil {
			_, e = s.app.Store.PutDocument(ctx, *d)
		}
		if !errors.Is(e, store.ErrChanged) && !errors.Is(e, store.ErrNotFound) { // the policy was changed meanwhile
			err = errors.Join(err, e)
		}
	}
	return err
}

// apply deletes what a policy selects, with an entry in the audit log before each batch of runs. Entries that would be
// empty are not written.
func (s *Server) apply(ctx context.Context, name string, p *policy) error {
	if p.Of == "sessions" {
		plan, err := s.pruneSessions(ctx, p, true)
		if err != nil || plan.Sessions == 0 {
			return err
		}
		return s.audited(ctx, map[string]string{"policy": name, "sessions": itoa(int64(plan.Sessions))}, func() error {
			_, err := s.pruneSessions(ctx, p, false)
			return err
		})
	}
	deleted := false
	err := s.deleteOldRuns(ctx, name, p, &deleted)
	if !deleted {
		return err
	}
	_, e := s.app.Compact(ctx)
	return errors.Join(err, e)
}

func (s *Server) deleteOldRuns(ctx context.Context, name string, p *policy, deleted *bool) error {
	for {
		selected, err := s.oldRuns(ctx, p, retentionBatch)
		if err != nil || len(selected.Runs) == 0 {
			return err
		}
		ids := make([]string, 0, len(selected.Runs))
		for i := range selected.Runs {
			ids = append(ids, selected.Runs[i].ID)
		}
		err = s.audited(ctx, map[string]string{"policy": name, "runs": strings.Join(ids, " ")}, func() error {
			for i := range selected.Runs {
				gone, err := s.deleteUnchanged(ctx, name, &selected.Runs[i])
				if err != nil {
					return err
				}
				*deleted = *deleted || gone
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// deleteUnchanged deletes a run that a policy has selected, unless something has changed in it since: a person may have
// retried it.
func (s *Server) deleteUnchanged(ctx context.Context, name string, r *store.Run) (gone bool, err error) {
	x, err := s.app.Store.Run(ctx, r.ID)
	if err == nil && (!x.Head.Status.Ended() || !x.Updated.Equal(r.Updated)) {
		return false, nil
	}
	if err == nil {
		_, err = s.app.ActOn(ctx, app.BulkDelete, &x, "retention policy "+name)
	}
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// audited does something that the schedule wants, with an entry in the audit log.
func (s *Server) audited(ctx context.Context, objects map[string]string, do func() error) error {
	a, err := s.audit.Begin(ctx, auditlog.Entry{Via: "schedule", Action: "apply retention policy", Objects: objects})
	if err != nil {
		return err
	}
	status, code := http.StatusOK, ""
	if err = do(); err != nil {
		p := problemOf(err)
		status, code = p.Status, p.Code
	}
	return errors.Join(err, a.End(context.WithoutCancel(ctx), status, code))
}
