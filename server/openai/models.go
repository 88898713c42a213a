package openai

import (
	"net/http"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/session"
)

// model is a flow as a model of the protocol.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	// Name and Description are shown by some clients.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

func modelOf(f *app.ServedFlow) model {
	return model{ID: f.Name, Object: "model", OwnedBy: "weir", Name: f.Name, Description: f.Description}
}

// listModels lists the flows that take messages.
func listModels(w http.ResponseWriter, _ *http.Request, c *server.Caller) {
	flows, err := c.Flows()
	if err != nil {
		handle(w, c, err)
		return
	}
	list := []model{}
	for _, f := range flows {
		if takesChat(f) {
			list = append(list, modelOf(f))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func getModel(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	f, err := flowOf(c, r.PathValue("model"))
	if err != nil {
		handle(w, c, err)
		return
	}
	writeJSON(w, http.StatusOK, modelOf(f))
}

// flowOf finds the flow that a model names.
func flowOf(c *server.Caller, name string) (*app.ServedFlow, error) {
	f, err := c.Flow(name)
	if err != nil || !takesChat(f) {
		p := server.NotFound("model", name)
		p.Errors = []server.Mistake{{Place: "body.model"}}
		p.Hint = "GET /v1/models lists the models: the flows of this server that take messages"
		p.Code = engine.CodeNotFound
		return nil, p
	}
	return f, nil
}

// takesChat reports whether a message is all that a flow needs to start.
func takesChat(f *app.ServedFlow) bool {
	message, ok := session.MessageInput(f.Flow)
	if !ok {
		return false
	}
	for _, in := range f.Inputs {
		if in.Required && in.Name != message.Name {
			return false
		}
	}
	return true
}
