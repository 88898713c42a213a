package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/store"
)

// ratingKind are documents by RUN/DIGEST, which are deleted with the run and with who rated.
const ratingKind = store.RatingKind

// Rating is what a user says of a run, or of one node of it.
type Rating struct {
	Run    string    `json:"run"`
	Flow   string    `json:"flow"`
	Node   string    `json:"node" doc:"The path of the node; empty for the run"`
	Rating string    `json:"rating" enum:"up,down,none"`
	Note   string    `json:"note"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

type rateInput struct {
	RunPath
	Body struct {
		Node   string `json:"node,omitempty" maxLength:"1000" doc:"The path of a node, to rate its answer; without it, the run"`
		Rating string `json:"rating" enum:"up,down,none"`
		Note   string `json:"note,omitempty" maxLength:"4000" doc:"With the rating none and no note, yours is deleted"`
	}
}

type listRatingsInput struct {
	Flow   string `query:"flow" maxLength:"400" doc:"Only of runs of the flow with this name"`
	Rating string `query:"rating" enum:"up,down,none"`
	Cursor string `query:"cursor" maxLength:"600" doc:"The member next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type ratingList struct {
	Ratings []Rating `json:"ratings"`
	Next    string   `json:"next" doc:"The cursor of the next page; empty on the last one. A page may have fewer than limit."`
}

func (s *Server) registerRatings() {
	tags := []string{"runs"}
	register(s, operation{
		id: "rateRun", method: http.MethodPut, path: "/v1/runs/{run}/ratings", scope: Answer, tags: tags, summary: "Rate a run or the answer of a node",
		description: "Each user has one rating of a run and of each node. It is not part of the record of the run.",
	}, rateRun)
	register(s, operation{id: "getRatings", method: http.MethodGet, path: "/v1/runs/{run}/ratings", scope: Read, tags: tags, summary: "List the ratings of a run"}, getRatings)
	register(s, operation{
		id: "listRatings", method: http.MethodGet, path: "/v1/ratings", scope: Read, tags: tags, summary: "List ratings of all runs",
		description: "Without the scope admin, your own.",
	}, listRatings)
}

func rateRun(c *call, in *rateInput) (*body[Rating], error) {
	row, err := c.run(in.Run)
	if err != nil {
		return nil, err
	}
	if in.Body.Node != "" {
		v, err := c.inspect(in.Run, 0)
		if err != nil {
			return nil, err
		}
		if history.NewTimeline(v).Nodes[in.Body.Node] == nil {
			return nil, notFound("node", in.Body.Node)
		}
	}
	out := Rating{row.ID, row.Flow, in.Body.Node, in.Body.Rating, in.Body.Note, c.by(), time.Now().UTC().Truncate(time.Second)}
	id := row.ID + "/" + hex.EncodeToString(c.digest(ratingKind, c.who.user, in.Body.Node)[:12])
	if out.Rating == "none" && out.Note == "" {
		err := c.app.Store.DeleteDocument(context.WithoutCancel(c), ratingKind, id, 0)
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return bodyOf(out), err
	}
	_, err = c.keepOwn(store.Document{Kind: ratingKind, ID: id, User: c.who.user, Run: row.ID}, row.ID+"/", maxRatings, out)
	return bodyOf(out), err
}

// maxRatings bounds the ratings of a run.
const maxRatings = 1000

func ratingsOf(docs []store.Document) ([]Rating, error) {
	out := make([]Rating, len(docs))
	for i := range docs {
		if err := json.Unmarshal(docs[i].Body, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func getRatings(c *call, in *RunPath) (*body[ratingList], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	docs, err := c.app.Store.Documents(c, store.DocumentFilter{Kind: ratingKind, Prefix: in.Run + "/", Limit: maxRatings})
	if err != nil {
		return nil, err
	}
	list, err := ratingsOf(docs)
	return bodyOf(ratingList{Ratings: list}), err
}

func listRatings(c *call, in *listRatingsInput) (*body[ratingList], error) {
	docs, err := c.app.Store.Documents(c, store.DocumentFilter{Kind: ratingKind, User: c.reachableUser(), After: in.Cursor, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	list, err := ratingsOf(docs)
	if err != nil {
		return nil, err
	}
	out := ratingList{Ratings: []Rating{}}
	for i := range list {
		if (in.Flow == "" || in.Flow == list[i].Flow) && (in.Rating == "" || in.Rating == list[i].Rating) {
			out.Ratings = append(out.Ratings, list[i])
		}
	}
	if len(docs) == in.Limit {
		out.Next = docs[in.Limit-1].ID
	}
	return bodyOf(out), nil
}
