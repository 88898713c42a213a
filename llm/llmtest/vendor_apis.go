package llmtest

import (
	"net/http"
	"strings"
)

// vendorAPI is one API of a vendor.
type vendorAPI interface {
	// name is Request.API.
	name() string
	// routes are its paths, as patterns of net/http.
	routes() []string
	// key returns the key of a request.
	key(r *http.Request) string
	// read checks a request and converts it to Weir's types.
	read(r *http.Request, body []byte, known issuedIDs) *parsedRequest
	// whole and stream return a turn as it is sent; number is unique to it.
	whole(t *Turn, a *parsedRequest, number int) []byte
	stream(t *Turn, a *parsedRequest, number int) []string
	// tail is the number of events at the end of a stream that the answer does not need.
	tail() int
	// refusal is the body of a failure, fault the same inside a stream. The codes of Failure are OpenAI's; other APIs
	// send the vendor's message with that of the Failure.
	refusal(f *Failure) string
	fault(f *Failure) string
	// issue stores what the turn issued for later requests.
	issue(t *Turn, a *parsedRequest, number int, known issuedIDs)
}

// vendorAPIs returns all APIs that a Server implements.
func vendorAPIs() []vendorAPI {
	return []vendorAPI{
		responsesAPI{responsesShape()},
		chatAPI{chatShape()},
		newAnthropicAPI(),
		newGeminiAPI(),
		newInteractionsAPI(),
	}
}

// tailOf returns the tail of the API with that name.
func tailOf(api string) int {
	for _, w := range vendorAPIs() {
		if w.name() == api {
			return w.tail()
		}
	}
	return 0
}

// parsedRequest is a request after parsing.
type parsedRequest struct {
	Request
	authorized bool
	streamed   bool
	usage      bool // include_usage
	encrypted  bool // include reasoning.encrypted_content
	summary    bool // the model's thinking is to be included
	// lost is the vendor's error for a missing conversation, nil if it has the conversation.
	lost *Failure
}

// bearer returns the token of an Authorization header.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}
