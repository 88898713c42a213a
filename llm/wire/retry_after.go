package wire

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-run/weir/llm"
)

// MaxWait is the longest wait that a server may ask for.
const MaxWait = 24 * time.Hour

// AddRetryAdvice adds to an error what a refusal's headers say: how long to wait, and,
// by X-Should-Retry, whether to ask again.
func AddRetryAdvice(e *llm.Error, h http.Header) {
	e.RetryAfter = RetryAfter(h)
	switch h.Get("X-Should-Retry") {
	case "true":
		e.Retry = true
	case "false":
		e.Retry = false
	}
}

// RetryAfter reads how long a server asks to wait, at most MaxWait, 0 where it
// does not say. The header is seconds or a date (RFC 9110, 10.2.3), the date
// read against the server's own clock; Retry-After-Ms is OpenAI's, and some
// gateways'.
func RetryAfter(h http.Header) time.Duration {
	if v, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return boundedWait(v * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return boundedWait(s * float64(time.Second))
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return boundedWait(float64(at.Sub(sent)))
}

func boundedWait(ns float64) time.Duration {
	switch {
	case math.IsNaN(ns) || ns <= 0:
		return 0
	case ns >= float64(MaxWait):
		return MaxWait
	}
	return time.Duration(ns)
}
