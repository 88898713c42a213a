package server

import (
	"net/http"

	"github.com/weir-run/weir/engine"
)

type reloaded struct {
	Changed []string `json:"changed" doc:"Paths of the settings that have changed, without values. A new key in the same file is not listed."`
}

func (s *Server) registerReload() {
	register(s, operation{
		id: "reloadConfiguration", method: http.MethodPost, path: "/v1/reload", scope: Admin, tags: []string{"operation"},
		summary:     "Read the configuration again",
		description: "Secrets, and how providers are reached, change for calls that begin from then on. If anything else has changed, or a key cannot be read, the answer is 409, and everything stays as it is.",
	}, reloadConfiguration)
}

func reloadConfiguration(c *call, _ *struct{}) (*body[reloaded], error) {
	if c.options.Reload == nil {
		return nil, newProblem(http.StatusNotImplemented, engine.CodeStoreUnsupported, "this server has no configuration that it could read again")
	}
	changed, err := c.options.Reload()
	if err != nil {
		return nil, err
	}
	if changed == nil {
		changed = []string{}
	}
	return bodyOf(reloaded{changed}), nil
}
