package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// Edit sends a message in the place of a person's message at a position of the history, from 0. A
// fork of the session, which Sent names, takes it.
func (c *Client) Edit(ctx context.Context, session string, position int, m Message) (*Sent, error) {
	body := map[string]any{"message": m.Text}
	return c.sendInFork(ctx, session, position, "edit", m, body)
}

// Regenerate sends a person's message at a position of the history, from 0, again. A fork of the
// session, which Sent names, takes it. Message.Text is not used.
func (c *Client) Regenerate(ctx context.Context, session string, position int, m Message) (*Sent, error) {
	return c.sendInFork(ctx, session, position, "regenerate", m, map[string]any{})
}

func (c *Client) sendInFork(ctx context.Context, session string, position int, what string, m Message, body map[string]any) (*Sent, error) {
	if m.Inputs != nil {
		body["inputs"] = m.Inputs
	}
	var out Sent
	path := fmt.Sprintf("/v1/sessions/%s/messages/%d/%s?wait=%d", url.PathEscape(session), position, what, m.Wait)
	err := c.send(ctx, http.MethodPost, path, m.Key, body, &out)
	return &out, err
}

// SessionBudget is what the rounds of a session may spend together, and have spent. A maximum of
// 0 is no limit.
type SessionBudget struct {
	MaxTokens int     `json:"maxTokens"`
	MaxCalls  int     `json:"maxCalls"`
	MaxCost   float64 `json:"maxCost"` // US dollars
	// Increase is what was added for this session; the maxima contain it.
	Increase   BudgetIncrease `json:"increase"`
	UsedTokens int64          `json:"usedTokens"`
	UsedCalls  int            `json:"usedCalls"`
	UsedMicros int64          `json:"usedMicros"` // millionths of a US dollar
}

// BudgetIncrease is what is added to the budget of a session.
type BudgetIncrease struct {
	Tokens int     `json:"tokens,omitempty"`
	Calls  int     `json:"calls,omitempty"`
	Cost   float64 `json:"cost,omitempty"` // US dollars
}

// SessionBudget returns the budget of a session.
func (c *Client) SessionBudget(ctx context.Context, session string) (*SessionBudget, error) {
	var out SessionBudget
	err := c.Do(ctx, http.MethodGet, "/v1/sessions/"+url.PathEscape(session)+"/budget", nil, &out)
	return &out, err
}

// IncreaseSessionBudget adds to the budget of a session. It holds for rounds that start afterwards.
// The key is as that of Start.
func (c *Client) IncreaseSessionBudget(ctx context.Context, session string, more BudgetIncrease, key string) (*SessionBudget, error) {
	var out SessionBudget
	err := c.send(ctx, http.MethodPost, "/v1/sessions/"+url.PathEscape(session)+"/budget", key, more, &out)
	return &out, err
}
