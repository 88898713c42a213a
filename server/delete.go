package server

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

type deleteInput struct {
	SessionPath
	Confirm string `query:"confirm" doc:"The member confirmation of the answer that lists what would be deleted"`
}

type deleteRunInput struct {
	RunPath
	Confirm string `query:"confirm" doc:"The member confirmation of the answer that lists what would be deleted"`
}

type deleteUserInput struct {
	User    string `path:"user" minLength:"1" maxLength:"200" doc:"The name of the user"`
	Confirm string `query:"confirm" doc:"The member confirmation of the answer that lists what would be deleted"`
}

func (s *Server) registerDeletions() {
	register(s, operation{
		id: "deleteRun", method: http.MethodDelete, path: "/v1/runs/{run}", scope: Start, tags: []string{"runs"},
		summary: "Delete a run with its child runs and forks", description: "A round of a session is deleted with its session.",
	}, deleteRun)
	register(s, operation{
		id: "deleteUser", method: http.MethodDelete, path: "/v1/users/{user}", scope: Admin, tags: []string{"users"},
		summary:     "Erase a user",
		description: "Deletes the sessions, runs, memory, trajectories, tokens, flows, webhooks and triggers of the user, and the forks that share the past of those runs. Backups and what was exported stay.",
	}, deleteUser)
}

func deleteRun(c *call, in *deleteRunInput) (*body[*Deleted], error) {
	row, err := c.run(in.Run)
	if err != nil {
		return nil, err
	}
	if row.Session != "" || row.Parent != "" {
		p := newProblem(http.StatusConflict, engine.CodeStatusConflict, "the run is part of something larger and is deleted with it")
		p.Hint = "delete its session, or the run that started it"
		return nil, p
	}
	return c.deleteConfirmed("run", in.Run, in.Confirm, func(ctx context.Context, o store.DeleteOptions) (store.DeleteResult, error) {
		return c.app.DeleteRun(ctx, in.Run, o)
	})
}

func deleteUser(c *call, in *deleteUserInput) (*body[*Deleted], error) {
	return c.deleteConfirmed("user", in.User, in.Confirm, func(ctx context.Context, o store.DeleteOptions) (store.DeleteResult, error) {
		return c.app.DeleteUser(ctx, in.User, o)
	})
}

// Deleted says what a deletion deletes.
type Deleted struct {
	Sessions     int    `json:"sessions"`
	Runs         int    `json:"runs"`
	Messages     int    `json:"messages"`
	Memories     int    `json:"memories"`
	Trajectories int    `json:"trajectories"`
	Learned      int    `json:"learned"`
	Forks        []Fork `json:"forks" doc:"Runs and sessions that share the past of what is deleted, and are deleted with it"`
}

// Fork is a run or a session; the other is empty.
type Fork struct {
	Session string `json:"session"`
	Run     string `json:"run"`
}

func deletedOf(r *store.DeleteResult) *Deleted {
	d := &Deleted{
		Sessions: r.Sessions, Runs: r.Runs, Messages: r.Messages, Memories: r.Memories, Trajectories: r.Trajectories, Learned: r.Learned, Forks: []Fork{},
	}
	for _, f := range r.Forks {
		d.Forks = append(d.Forks, Fork{f.Session, f.Run})
	}
	return d
}

func deleteSession(c *call, in *deleteInput) (*body[*Deleted], error) {
	if _, err := c.session(in.Session); err != nil {
		return nil, err
	}
	return c.deleteConfirmed("session", in.Session, in.Confirm, func(ctx context.Context, o store.DeleteOptions) (store.DeleteResult, error) {
		return c.app.DeleteSession(ctx, in.Session, o)
	})
}

// deleteConfirmed lists what it would delete, and deletes it if the request has the
// confirmation of exactly that list.
func (c *call) deleteConfirmed(
	kind, id, confirm string, do func(ctx context.Context, o store.DeleteOptions) (store.DeleteResult, error),
) (*body[*Deleted], error) {
	plan, err := do(c, store.DeleteOptions{DryRun: true})
	if err != nil {
		return nil, conflictIfOwned(err)
	}
	if err := c.ownsForks(plan.Forks); err != nil {
		return nil, err
	}
	list := deletedOf(&plan)
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	confirmation := hex.EncodeToString(c.digest("delete "+kind, c.who.user, id, string(text))[:16])
	if !hmac.Equal([]byte(confirmation), []byte(confirm)) {
		p := newProblem(http.StatusConflict, engine.CodeConfirmation, "the "+kind+" was not deleted: the deletion needs a confirmation of what it deletes")
		p.Confirmation, p.Deletes = confirmation, list
		return nil, p
	}
	done, err := do(context.WithoutCancel(c), store.DeleteOptions{})
	if err != nil {
		return nil, conflictIfOwned(err)
	}
	return bodyOf(deletedOf(&done)), nil
}

// ownsForks refuses to delete what another user forked.
func (c *call) ownsForks(forks []store.Tree) error {
	for _, f := range forks {
		var err error
		if f.Session != "" {
			_, err = c.session(f.Session)
		} else {
			_, err = c.run(f.Run)
		}
		if err != nil {
			return newProblem(http.StatusForbidden, engine.CodeForbidden, "a run or session of another user shares this past; only a token with the scope admin can delete it")
		}
	}
	return nil
}

func conflictIfOwned(err error) error {
	if errors.Is(err, store.ErrOwned) {
		p := newProblem(http.StatusConflict, engine.CodeRunOwned, "a process executes a run of what is to be deleted")
		p.Hint = "cancel the run, or wait until it has ended"
		return p
	}
	return err
}
