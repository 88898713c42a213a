package server

import (
	"errors"
	"net/http"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/stops"
	"github.com/weir-run/weir/store"
)

type stopModelsInput struct {
	Body struct {
		Models string `json:"models" minLength:"1" maxLength:"200" doc:"A provider, how provider/model begins, or * for all"`
		Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Shown to those who wait"`
	}
}

type allowModelsInput struct {
	Models string `query:"models" required:"true" minLength:"1" maxLength:"200" doc:"As they were stopped"`
}

type modelStopList struct {
	Stops []llm.Stop `json:"stops"`
}

func (s *Server) registerModelStops() {
	register(s, operation{
		id: "listModelStops", method: http.MethodGet, path: "/v1/model-stops", scope: Admin, tags: []string{"models"}, summary: "List the models that are stopped",
	}, listModelStops)
	register(s, operation{
		id: "stopModels", method: http.MethodPut, path: "/v1/model-stops", scope: Admin, tags: []string{"models"}, summary: "Have calls of models wait",
		description: "Within a second, no process on the store begins a call of them. Calls in flight end. Nothing fails: calls that wait are made once the models are allowed.",
	}, stopModels)
	register(s, operation{
		id: "allowModels", method: http.MethodDelete, path: "/v1/model-stops", scope: Admin, tags: []string{"models"}, summary: "Have calls of stopped models made again",
	}, allowModels)
}

func listModelStops(c *call, _ *struct{}) (*body[modelStopList], error) {
	list, err := stops.New(c.app.Store).List(c)
	if err != nil {
		return nil, err
	}
	return bodyOf(modelStopList{append([]llm.Stop{}, list...)}), nil
}

func stopModels(c *call, in *stopModelsInput) (*body[modelStopList], error) {
	if err := stops.Check(in.Body.Models); err != nil {
		return nil, newProblem(http.StatusUnprocessableEntity, engine.CodeRequest, err.Error())
	}
	if err := c.about("models", in.Body.Models); err != nil {
		return nil, err
	}
	if err := stops.New(c.app.Store).Stop(c, in.Body.Models, c.by(), in.Body.Reason); err != nil {
		return nil, err
	}
	return listModelStops(c, nil)
}

func allowModels(c *call, in *allowModelsInput) (*body[modelStopList], error) {
	if err := c.about("models", in.Models); err != nil {
		return nil, err
	}
	err := stops.New(c.app.Store).Allow(c, in.Models)
	if errors.Is(err, store.ErrNotFound) {
		return nil, notFound("stop of the models", in.Models)
	}
	if err != nil {
		return nil, err
	}
	return listModelStops(c, nil)
}
