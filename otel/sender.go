package otel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// tracesPath is where a server takes traces, below its address.
	tracesPath = "/v1/traces"
	// requestTime bounds one request.
	requestTime = 10 * time.Second
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 64 << 10
	// batchSpans bounds the spans of one request.
	batchSpans = 512
	// maxRetryAfter is the longest pause that a server can ask for.
	maxRetryAfter = 30 * time.Second
)

// retryPauses are the pauses before the further tries of a request.
func retryPauses() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
}

// sender sends spans to a server that speaks OTLP over HTTP.
type sender struct {
	url     string
	headers map[string]string
	service string
	client  *http.Client
	pauses  []time.Duration
}

// tracesURL returns the address for traces: the endpoint, with the path of OTLP unless it has
// a path that ends so.
func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("the endpoint for traces must be the address of a server, such as http://localhost:4318")
	}
	if !strings.HasSuffix(u.Path, tracesPath) {
		u = u.JoinPath(tracesPath)
	}
	return u.String(), nil
}

// send sends spans and returns how many the server did not take. The error says why.
func (s *sender) send(ctx context.Context, spans []Span) (dropped int, err error) {
	body, err := Encode(spans, s.service)
	if err != nil {
		return len(spans), err
	}
	for try := 0; ; try++ {
		rejected, after, err := s.post(ctx, body)
		if err == nil || after < 0 || try == len(s.pauses) {
			if err != nil {
				rejected = len(spans)
			}
			return min(rejected, len(spans)), err
		}
		select {
		case <-time.After(max(after, s.pauses[try])):
		case <-ctx.Done():
			return len(spans), err
		}
	}
}

// post makes one request. A negative pause means that repeating it is useless.
func (s *sender) post(ctx context.Context, body []byte) (rejected int, pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return 0, -1, err
	}
	for name, value := range s.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case res.StatusCode/100 == 2 && err == nil:
		return rejectedSpans(answer), -1, nil
	case res.StatusCode/100 == 2:
		return 0, -1, nil // it was taken
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusBadGateway,
		res.StatusCode == http.StatusServiceUnavailable, res.StatusCode == http.StatusGatewayTimeout:
		return 0, retryAfter(res), fmt.Errorf("the server answered %s", res.Status)
	}
	return 0, -1, fmt.Errorf("the server answered %s", res.Status)
}

// rejectedSpans reads how many spans the server has not taken from a successful answer.
func rejectedSpans(answer []byte) int {
	var a struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, or a text with one
		} `json:"partialSuccess"`
	}
	_ = json.Unmarshal(answer, &a)                                                  // servers may answer with nothing
	n, _ := strconv.Atoi(strings.Trim(string(a.PartialSuccess.RejectedSpans), `"`)) // 0 where there is none
	return max(n, 0)
}

func retryAfter(res *http.Response) time.Duration {
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
