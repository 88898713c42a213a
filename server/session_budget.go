package server

import (
	"context"

	"github.com/weir-run/weir/session"
)

// sessionBudget is the budget of a session; 0 limits nothing.
type sessionBudget struct {
	MaxTokens  int                    `json:"maxTokens" doc:"Tokens that the rounds may use together, with what was added; 0 is no limit"`
	MaxCalls   int                    `json:"maxCalls" doc:"Model calls, likewise"`
	MaxCost    float64                `json:"maxCost" doc:"US dollars, likewise"`
	Increase   session.BudgetIncrease `json:"increase" doc:"What was added for this session; the limits contain it"`
	UsedTokens int64                  `json:"usedTokens" doc:"Input and output tokens of all rounds"`
	UsedCalls  int                    `json:"usedCalls"`
	UsedMicros int64                  `json:"usedMicros" doc:"Millionths of a US dollar"`
}

type sessionBudgetInput struct {
	SessionPath
	Keyed
	Body struct {
		Calls int `json:"calls,omitempty" minimum:"1" maximum:"1000000" doc:"Model calls to add"`
		// The bounds keep sums far from overflow.
		Tokens int     `json:"tokens,omitempty" minimum:"1" maximum:"1000000000" doc:"Tokens to add"`
		Cost   float64 `json:"cost,omitempty" exclusiveMinimum:"0" maximum:"1000000" doc:"US dollars to add"`
	}
}

func sessionBudgetOf(b session.Budget) sessionBudget {
	return sessionBudget{
		MaxTokens: b.Limits.MaxTokens, MaxCalls: b.Limits.MaxCalls, MaxCost: b.Limits.MaxCost, Increase: b.Increase,
		UsedTokens: int64(b.Used.Input) + int64(b.Used.Output), UsedCalls: b.Used.Calls, UsedMicros: b.Used.CostMicros,
	}
}

func getSessionBudget(c *call, in *SessionPath) (*body[sessionBudget], error) {
	x, err := c.openOwn(in.Session)
	if err != nil {
		return nil, err
	}
	b, err := x.Budget(c)
	return bodyOf(sessionBudgetOf(b)), err
}

func increaseSessionBudget(c *call, in *sessionBudgetInput) (*body[sessionBudget], error) {
	x, err := c.openOwn(in.Session)
	if err != nil {
		return nil, err
	}
	more := session.BudgetIncrease{Tokens: in.Body.Tokens, Calls: in.Body.Calls, Cost: in.Body.Cost}
	if more == (session.BudgetIncrease{}) {
		return nil, invalidRequest("body", "the request adds nothing: give calls, tokens or cost")
	}
	_, err = c.once("budget "+in.Session, in.Key, in.Body, func(id string) (string, error) {
		if in.Key == "" {
			id = ""
		}
		_, err := x.IncreaseBudgetOnce(context.WithoutCancel(c), id, more, c.by())
		return in.Session, err
	})
	if err != nil {
		return nil, err
	}
	b, err := x.Budget(c)
	return bodyOf(sessionBudgetOf(b)), err
}
