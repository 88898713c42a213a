package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

type answersInput struct {
	Flow   string `query:"flow" doc:"Only questions of runs of the flow with this name"`
	User   string `query:"user" doc:"Only questions of runs of this user; of another user only with the scope admin"`
	Cursor string `query:"cursor" doc:"The member next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"The page ends with the run with which it has so many answers"`
}

// givenAnswer is a question that was answered.
type givenAnswer struct {
	Run    string     `json:"run"`
	Flow   string     `json:"flow"`
	User   string     `json:"user" doc:"Whose run it is"`
	Node   string     `json:"node" doc:"The path of the node that asked"`
	ID     string     `json:"interrupt"`
	Kind   string     `json:"kind" enum:"input,approval,budget,effect"`
	Prompt string     `json:"prompt"`
	By     string     `json:"by" doc:"Who answered; empty if that was not said"`
	At     int64      `json:"at" doc:"When, in Unix milliseconds"`
	Event  int64      `json:"event" doc:"The number of the event that has the answer"`
	Value  shownValue `json:"value"`
}

type answerList struct {
	Answers []givenAnswer `json:"answers"`
	Next    string        `json:"next" doc:"Continue with this cursor; empty if all runs were read. A page may have no answers and a cursor."`
}

// answersTime bounds how long a request reads journals.
const answersTime = 3 * time.Second

func (s *Server) registerAnswers() {
	register(s, operation{
		id: "listAnswers", method: http.MethodGet, path: "/v1/answers", scope: Read, tags: []string{"runs"}, summary: "List the questions of runs that people answered",
		description: "The newest runs come first, those of a page by the time of the answer, newest first. Reads the journals of the runs, for at most 3 seconds.",
	}, listAnswers)
}

func listAnswers(c *call, in *answersInput) (*body[answerList], error) {
	user, err := c.filterUser(in.User)
	if err != nil {
		return nil, err
	}
	f := store.Filter{Flow: in.Flow, User: user, Before: in.Cursor, Limit: searchPage}
	if in.Cursor != "" {
		if _, err := c.run(in.Cursor); err != nil {
			return nil, invalidRequest("query.cursor", "the cursor is not one of a page of answers; start with the first page")
		}
	}
	out, end := answerList{Answers: []givenAnswer{}}, time.Now().Add(answersTime)
	for out.Next == "" {
		page, err := c.app.Runs(c, f)
		if err != nil {
			return nil, err
		}
		for i := range page {
			list, err := c.answersOf(&page[i])
			if err != nil {
				return nil, err
			}
			out.Answers = append(out.Answers, list...)
			last := len(page) < f.Limit && i == len(page)-1
			if !last && (len(out.Answers) >= in.Limit || time.Now().After(end)) {
				out.Next = page[i].ID
				break
			}
		}
		if len(page) < f.Limit {
			break
		}
		f.Before = page[len(page)-1].ID
	}
	slices.SortStableFunc(out.Answers, func(a, b givenAnswer) int { return cmp.Compare(b.At, a.At) })
	return bodyOf(out), nil
}

// answersOf returns the answers that people gave to a run itself: those to its child runs are
// in their journals, and those that it shares with another run are that one's.
func (c *call) answersOf(r *store.Run) (out []givenAnswer, err error) {
	asked := make(map[string]asking)
	for commit, err := range c.app.Store.Commits(c, r.ID, 0) {
		if err != nil {
			return nil, fmt.Errorf("answers of run %s: %w", r.ID, err)
		}
		for i, e := range commit.Events {
			switch e := e.(type) {
			case *engine.RunForked:
				out = nil
			case *engine.NodeWaiting:
				for _, x := range e.Interrupts {
					asked[x.ID] = asking{x, e.Path}
				}
			case *engine.InterruptAnswered:
				a, ok := asked[e.ID]
				if !ok || !isAsked(a.Kind) {
					continue
				}
				out = append(out, givenAnswer{
					Run: r.ID, Flow: r.Flow, User: r.User, Node: a.node, ID: e.ID, Kind: string(a.Kind), Prompt: a.Prompt, By: e.By,
					At: commit.When(i), Event: commit.First + int64(i), Value: shown("answer", app.JSONOf(e.Value)),
				})
			}
		}
	}
	return out, nil
}

// asking is a question with the node that asked it.
type asking struct {
	engine.Interrupt
	node string
}

// isAsked reports whether people answer interrupts of a kind.
func isAsked(k engine.InterruptKind) bool {
	switch k {
	case engine.AwaitInput, engine.AwaitApproval, engine.AwaitBudget, engine.AwaitEffect:
		return true
	case engine.AwaitChild, engine.AwaitEvent, engine.AwaitTimer, engine.AwaitBreak:
	}
	return false
}
