package httpcall

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// MaxWait is the longest wait that a server may request.
const MaxWait = 24 * time.Hour

// RetryAfter returns the wait that a server requests, at most MaxWait, 0 if it requests none. The header is seconds
// or a date (RFC 9110, 10.2.3), which is compared with the server's own clock; OpenAI and some gateways send
// Retry-After-Ms.
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
