package openai

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/server"
)

func itoa(n int) string { return strconv.Itoa(n) }

// endUser is the person for whom a request is made.
type endUser struct {
	// caller reaches the objects of that person.
	caller *server.Caller
	// known: only they send requests with this token and these names.
	known bool
	// names narrow the search for a session: what the client says of the person and of the
	// conversation, believed or not.
	names []string
}

// endUserOf finds the end user of a request. A name in the request is believed only from a
// token with the scope act-as; with another token it narrows the search for a session and
// does nothing else. Also that person must have access to the flow that the model names.
func endUserOf(c *server.Caller, r *http.Request, b caller, model string) (endUser, error) {
	h := r.Header
	named := ""
	for _, name := range []string{h.Get("X-Weir-User"), h.Get("X-OpenWebUI-User-Id"), b.SafetyIdentifier, b.User} {
		if named == "" {
			named = name
		}
	}
	if len(named) > 200 || strings.TrimSpace(named) != named {
		return endUser{}, server.InvalidRequest("body.user", "the user is longer than 200 bytes, or begins or ends with a blank")
	}
	u := endUser{caller: c, names: []string{named, h.Get("X-OpenWebUI-Chat-Id")}}
	switch {
	case c.MayActAs() && named != "":
		as, err := c.As(named)
		if err != nil {
			return endUser{}, err
		}
		if _, err := flowOf(as, model); err != nil {
			return endUser{}, err
		}
		u.caller, u.known = as, true
	case c.MayActAs():
		// The token serves several people, and the request does not say which of them it is from.
	default:
		u.known = c.User() != ""
	}
	return u, nil
}

// isTask reports whether a user interface asks for something about a conversation, such as
// a title, and not within it.
func isTask(r *http.Request, q *request) bool {
	if r.Header.Get("X-Weir-Task") != "" {
		return true
	}
	return len(q.history) == 0 && q.message.Role == convo.User && strings.HasPrefix(q.message.Text, "### Task:")
}
