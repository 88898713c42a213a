package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

const (
	// requestTime limits a request that runs no code; public clients use the same value.
	requestTime = 60 * time.Second
	// deleteTime limits the deletion of a sandbox, which is always tried at the end of a job.
	deleteTime = 15 * time.Second
	// retries is the number of times that a request is repeated after a 429 with Retry-After.
	retries = 3
	// sandboxGrace is the time by which an undeleted sandbox outlives its job.
	sandboxGrace = time.Minute
	// maxAnswer limits an answer of the API, in bytes.
	maxAnswer = 1 << 20
)

// cloudSandbox is the API's description of a new sandbox.
type cloudSandbox struct {
	ID           string `json:"sandboxID"`
	Domain       string `json:"domain"`
	EnvdVersion  string `json:"envdVersion"`
	EnvdToken    string `json:"envdAccessToken"`
	TrafficToken string `json:"trafficAccessToken"`
}

// create creates a sandbox that ends by itself some time after the job's limit.
func (e *Executor) create(ctx context.Context, jobTime time.Duration) (*cloudSandbox, *sandbox.Error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	body := map[string]any{
		"templateID": e.options.Template, "timeout": int64((jobTime + sandboxGrace + time.Second - 1) / time.Second),
		"allow_internet_access": false, "metadata": map[string]string{"by": "weir"},
	}
	var b cloudSandbox
	if err := e.callAPI(ctx, http.MethodPost, "/v2/sandboxes", body, &b); err != nil {
		return nil, err
	}
	if b.ID == "" {
		return nil, &sandbox.Error{Code: engine.CodeSandboxFailed, Message: "E2B made a sandbox and did not say its id", Retry: true}
	}
	return &b, nil
}

// remove deletes a sandbox, even if ctx has ended; a missing one counts as deleted.
func (e *Executor) remove(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	_ = e.callAPI(ctx, http.MethodDelete, "/sandboxes/"+url.PathEscape(id), nil, nil) // the sandbox ends by itself
}

// callAPI calls the API, and repeats the call when it requests a wait.
func (e *Executor) callAPI(ctx context.Context, method, path string, body, into any) *sandbox.Error {
	key, fault := e.key()
	if fault != nil {
		return fault
	}
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return lostSandboxError("ask E2B", err)
		}
	}
	for attempt := 0; ; attempt++ {
		r, err := http.NewRequestWithContext(ctx, method, e.options.API+path, bytes.NewReader(raw))
		if err != nil {
			return lostSandboxError("ask E2B", err)
		}
		r.Header.Set("X-API-Key", key)
		r.Header.Set("Content-Type", "application/json")
		answer, err := e.options.HTTP.Do(r)
		if err != nil {
			return e.unreachableError(ctx, err)
		}
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		_ = answer.Body.Close()
		if err != nil {
			return e.unreachableError(ctx, err)
		}
		wait, asked := retryAfter(answer)
		if asked && attempt < retries && fitsDeadline(ctx, wait) {
			if err := pause(ctx, wait); err != nil {
				return e.unreachableError(ctx, err)
			}
			continue
		}
		return readAnswer(method, answer, text, into)
	}
}

// retryAfter returns the wait that a busy server requests, in whole seconds.
func retryAfter(answer *http.Response) (time.Duration, bool) {
	if answer.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(answer.Header.Get("Retry-After")), 10, 31)
	return time.Duration(n) * time.Second, err == nil
}

func fitsDeadline(ctx context.Context, wait time.Duration) bool {
	deadline, limited := ctx.Deadline()
	return !limited || time.Now().Add(wait).Before(deadline)
}

func pause(ctx context.Context, wait time.Duration) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readAnswer reads an answer of the API.
func readAnswer(method string, answer *http.Response, text []byte, into any) *sandbox.Error {
	status := answer.StatusCode
	if status >= 200 && status < 300 {
		if into == nil {
			return nil
		}
		if err := json.Unmarshal(text, into); err != nil {
			return lostSandboxError("read the answer of E2B", err)
		}
		return nil
	}
	if method == http.MethodDelete && status == http.StatusNotFound {
		return nil
	}
	err := &sandbox.Error{Code: engine.CodeSandboxFailed, Message: fmt.Sprintf("E2B answers %d: %s", status, serverMessage(answer, text))}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		err.Code, err.Hint = engine.CodeSandboxUnavailable, "See that the key is the one of this server, and is still good."
	case status == http.StatusTooManyRequests || status >= 500:
		err.Retry = true
	}
	return err
}

// serverMessage returns the server's message: that of an error {code, message}, or the text.
func serverMessage(answer *http.Response, text []byte) string {
	var e struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &e) == nil && e.Message != "" {
		return e.Message
	}
	const shown = 300
	if t := strings.TrimSpace(string(text)); t != "" {
		return strings.ToValidUTF8(t[:min(len(t), shown)], "")
	}
	return http.StatusText(answer.StatusCode)
}

// unreachableError returns the error of a request without an answer.
func (e *Executor) unreachableError(ctx context.Context, err error) *sandbox.Error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return lostSandboxError("reach E2B at "+e.options.API, err)
}

func lostSandboxError(what string, err error) *sandbox.Error {
	return &sandbox.Error{Code: engine.CodeSandboxFailed, Message: what + ": " + err.Error(), Retry: true}
}
