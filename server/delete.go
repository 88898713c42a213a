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

// deleteSession lists what it would delete, and deletes it if the request has the
// confirmation of exactly that list.
func deleteSession(c *call, in *deleteInput) (*body[*Deleted], error) {
	if _, err := c.session(in.Session); err != nil {
		return nil, err
	}
	plan, err := c.app.DeleteSession(c, in.Session, store.DeleteOptions{DryRun: true})
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
	confirmation := hex.EncodeToString(c.digest("delete session", c.who.user, in.Session, string(text))[:16])
	if !hmac.Equal([]byte(confirmation), []byte(in.Confirm)) {
		p := newProblem(http.StatusConflict, engine.CodeConfirmation, "the session was not deleted: the deletion needs a confirmation of what it deletes")
		p.Confirmation, p.Deletes = confirmation, list
		return nil, p
	}
	done, err := c.app.DeleteSession(context.WithoutCancel(c), in.Session, store.DeleteOptions{})
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
		p := newProblem(http.StatusConflict, engine.CodeRunOwned, "a process executes a round of the session")
		p.Hint = "cancel the round, or wait until it has ended"
		return p
	}
	return err
}
