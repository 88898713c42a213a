package vendorapi

import (
	"net/http"

	"github.com/weir-run/weir/internal/httpcall"
	"github.com/weir-run/weir/llm"
)

// AddRetryAdvice sets the wait of an error from the headers of the answer, and, from X-Should-Retry, whether to
// retry.
func AddRetryAdvice(e *llm.Error, h http.Header) {
	e.RetryAfter = httpcall.RetryAfter(h)
	switch h.Get("X-Should-Retry") {
	case "true":
		e.Retry = true
	case "false":
		e.Retry = false
	}
}
