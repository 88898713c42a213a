package runner

import (
	"errors"
	"net/http"

	"github.com/weir-run/weir/internal/guard"
	"github.com/weir-run/weir/node"
)

// guardedHTTP is an HTTP client whose errors can be read, whatever the client of a program returns.
type guardedHTTP struct{ node.HTTPDoer }

// Do implements node.HTTPDoer.
func (g guardedHTTP) Do(req *http.Request) (*http.Response, error) {
	r, err := g.HTTPDoer.Do(req)
	switch {
	case guard.Unreadable(err):
		err = errors.New(guard.Text(err))
	case err == nil && (r == nil || r.Body == nil):
		err = errors.New("the HTTP client returned neither a response nor an error")
	}
	return r, err
}
