package server

import (
	"net/http"

	"github.com/weir-run/weir/trajectory/draw"
)

// drawing is an answer that is an image.
type drawing struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *Server) registerDrawing() {
	register(s, operation{
		id: "drawTrajectory", method: http.MethodGet, path: "/v1/runs/{run}/trajectory.svg", scope: Read, tags: []string{"history"},
		summary: "Get the trajectory of an agent as an image",
	}, drawTrajectory)
}

func drawTrajectory(c *call, in *graphInput) (*drawing, error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	g, err := c.app.Trajectory(c, in.Run, in.Sub)
	if err != nil {
		return nil, err
	}
	text, err := draw.Render(g, "svg")
	return &drawing{"image/svg+xml", text}, err
}
