package llmtest

import (
	"net/http"
	"strings"
)

// vendorAPI is one API of a vendor.
type vendorAPI interface {
	// name is Request.API.
	name() string
	// routes are its paths, as net/http's patterns have them.
	routes() []string
	// key is the key that a request came with.
	key(r *http.Request) string
	// read checks a request and says it in Weir's words.
	read(r *http.Request, body []byte, known issuedIDs) *parsedRequest
	// whole and stream are a turn as it is sent; number is unique to it.
	whole(t *Turn, a *parsedRequest, number int) []byte
	stream(t *Turn, a *parsedRequest, number int) []string
	// tail is how many events at the end of a stream say nothing that the
	// answer needs.
	tail() int
	// refusal is the body of a failure, fault the same inside a stream. The
	// codes of Failure are OpenAI's; a wire says what its vendor says instead,
	// with the message in it.
	refusal(f *Failure) string
	fault(f *Failure) string
	// issue remembers what the turn gave out that may come back.
	issue(t *Turn, a *parsedRequest, number int, known issuedIDs)
}

// vendorAPIs are all that a Server speaks.
func vendorAPIs() []vendorAPI {
	return []vendorAPI{
		responsesAPI{responsesShape()},
		chatAPI{chatShape()},
		newAnthropicAPI(),
		newGeminiAPI(),
		newInteractionsAPI(),
	}
}

// tailOf is the tail of the wire of that name.
func tailOf(api string) int {
	for _, w := range vendorAPIs() {
		if w.name() == api {
			return w.tail()
		}
	}
	return 0
}

// parsedRequest is a request as a wire has read it.
type parsedRequest struct {
	Request
	authorized bool
	streamed   bool
	usage      bool // include_usage
	encrypted  bool // include reasoning.encrypted_content
	summary    bool // what the model thinks is to be told
	// lost is how the vendor says that it has no such conversation, nil if it has.
	lost *Failure
}

// bearer is the token of an Authorization header.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}
