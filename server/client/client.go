// Package client calls the HTTP API of a Weir server. Client has methods for what most
// programs do; Do reaches every operation that /openapi.json describes.
//
// It must not import anything else of Weir: a program that links it links no engine.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client is a server, and the token for it. The zero Token is for servers that need none.
// Its methods may be called concurrently.
type Client struct {
	// URL is the address of the server: "http://127.0.0.1:8420".
	URL string
	// Token is one that `weir tokens create` made.
	Token string
	// HTTP sends the requests; nil sends them without a time limit.
	HTTP *http.Client
}

// Error is an answer that is not a success. Code is stable; docs/errors.md lists the codes.
type Error struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Hint   string `json:"hint"`
	// Errors are the single mistakes of a request or a flow.
	Errors []Mistake `json:"errors"`
	// Confirmation belongs to a deletion that needs one.
	Confirmation string `json:"confirmation"`
}

// Mistake is one of several.
type Mistake struct {
	Place   string `json:"place"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// Error says what happened, with the code and what to do.
func (e *Error) Error() string {
	lines := []string{fmt.Sprintf("%s (%s)", e.Detail, e.Code)}
	for _, m := range e.Errors {
		lines = append(lines, m.Place+": "+m.Message)
	}
	if e.Hint != "" {
		lines = append(lines, e.Hint)
	}
	return strings.Join(lines, "\n  ")
}

// Flow is a flow of the server.
type Flow struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Fingerprint string         `json:"fingerprint"`
	Inputs      map[string]any `json:"inputs"` // JSON Schema
}

// Run is the state of a run.
type Run struct {
	ID         string         `json:"run"`
	Status     string         `json:"status"`
	Outputs    map[string]any `json:"outputs"`
	Interrupts []Interrupt    `json:"interrupts"`
	Usage      Usage          `json:"usage"`
	Error      *RunError      `json:"error"`
	// Truncated are the values that are too large for the answer: their outputs are nil. Value reads them.
	Truncated []Truncated `json:"truncated"`
}

// Interrupt is something that a run waits for.
type Interrupt struct {
	ID     string         `json:"id"`
	Node   string         `json:"node"`
	Prompt string         `json:"prompt"`
	Schema map[string]any `json:"schema"`
}

// Usage is what a run has spent. Cost is in millionths of a US dollar.
type Usage struct {
	Calls  int   `json:"calls"`
	Input  int   `json:"input"`
	Output int   `json:"output"`
	Cost   int64 `json:"cost"`
}

// RunError is why a run failed.
type RunError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// Start says what to run.
type Start struct {
	Flow   string         `json:"flow"`
	Inputs map[string]any `json:"inputs,omitempty"`
	// Model replaces the flow's: "provider/model".
	Model string `json:"model,omitempty"`
	// Key makes the request repeatable for 24 hours: the same key returns the same run.
	Key string `json:"-"`
	// Wait is how many seconds to wait until the run rests, at most 60.
	Wait int `json:"-"`
}

// Sent is what became of a message to a session.
type Sent struct {
	Session string `json:"session"`
	Message string `json:"message"`
	Run     string `json:"run"`
	Status  string `json:"status"` // queued, or that of the run
	Text    string `json:"text"`   // the reply, once the run rests
	Report  *Run   `json:"report"`
	// Truncated are the values that are too large for the answer. Value reads them.
	Truncated []Truncated `json:"truncated"`
}

// Message says something in a session.
type Message struct {
	Text string
	// Inputs are inputs of the flow besides the message.
	Inputs map[string]any
	// Key and Wait are as those of Start.
	Key  string
	Wait int
}

// Flows lists the flows of the server.
func (c *Client) Flows(ctx context.Context) ([]Flow, error) {
	var out struct {
		Flows []Flow `json:"flows"`
	}
	err := c.Do(ctx, http.MethodGet, "/v1/flows", nil, &out)
	return out.Flows, err
}

// StartRun starts a run.
func (c *Client) StartRun(ctx context.Context, s Start) (*Run, error) {
	var out Run
	err := c.send(ctx, http.MethodPost, fmt.Sprintf("/v1/runs?wait=%d", s.Wait), s.Key, s, &out)
	return &out, err
}

// Run returns the state of a run.
func (c *Client) Run(ctx context.Context, id string) (*Run, error) {
	var out Run
	err := c.Do(ctx, http.MethodGet, "/v1/runs/"+url.PathEscape(id), nil, &out)
	return &out, err
}

// Answer answers a question of a run, and waits up to some seconds until the run rests.
func (c *Client) Answer(ctx context.Context, run, interrupt string, value any, wait int) (*Run, error) {
	var out Run
	body := map[string]any{"interrupt": interrupt, "value": value}
	err := c.Do(ctx, http.MethodPost, fmt.Sprintf("/v1/runs/%s/answer?wait=%d", url.PathEscape(run), wait), body, &out)
	return &out, err
}

// Cancel cancels a run, and waits up to some seconds until it has ended.
func (c *Client) Cancel(ctx context.Context, run, reason string, wait int) (*Run, error) {
	var out Run
	err := c.Do(ctx, http.MethodPost, fmt.Sprintf("/v1/runs/%s/cancel?wait=%d", url.PathEscape(run), wait), map[string]any{"reason": reason}, &out)
	return &out, err
}

// OpenSession starts a session with a flow, or finds that of a thread, and returns its id.
func (c *Client) OpenSession(ctx context.Context, flow, thread string) (string, error) {
	var out struct {
		Session string `json:"session"`
	}
	body := map[string]any{"flow": flow}
	if thread != "" {
		body["thread"] = thread
	}
	err := c.Do(ctx, http.MethodPost, "/v1/sessions", body, &out)
	return out.Session, err
}

// Send sends a message to a session.
func (c *Client) Send(ctx context.Context, session string, m Message) (*Sent, error) {
	var out Sent
	body := map[string]any{"message": m.Text}
	if m.Inputs != nil {
		body["inputs"] = m.Inputs
	}
	err := c.send(ctx, http.MethodPost, fmt.Sprintf("/v1/sessions/%s/messages?wait=%d", url.PathEscape(session), m.Wait), m.Key, body, &out)
	return &out, err
}

// Do sends a request with a JSON body, nil for none, and decodes the answer into out, which
// may be nil. An *Error is an answer that is not a success.
func (c *Client) Do(ctx context.Context, method, path string, body, out any) error {
	return c.send(ctx, method, path, "", body, out)
}

func (c *Client) send(ctx context.Context, method, path, key string, body, out any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	r, err := c.request(ctx, method, path, content)
	if err != nil {
		return err
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := c.http().Do(r)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer answer.Body.Close()
	if err := errorOf(answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if out == nil || answer.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.URL, "/")+path, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return r, nil
}

func (c *Client) http() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return &http.Client{}
}

// maxError bounds how much of an error is read.
const maxError = 1 << 20

// errorOf returns the error of an answer, nil for a success.
func errorOf(answer *http.Response) error {
	if answer.StatusCode < http.StatusMultipleChoices {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxError))
	if err != nil {
		return err
	}
	e := &Error{Status: answer.StatusCode}
	if json.Unmarshal(text, e) != nil || e.Code == "" {
		e.Code, e.Detail = "failed", fmt.Sprintf("the server answered %s: %.200s", answer.Status, text)
	}
	return e
}
