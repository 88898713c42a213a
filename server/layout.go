package server

import (
	"net/http"
	"sync"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/flow/graph"
	"github.com/weir-run/weir/internal/lru"
)

// drawnFlow is a flow as it is drawn.
type drawnFlow struct {
	Flow        string        `json:"flow"`
	Fingerprint string        `json:"fingerprint"`
	Layout      *graph.Layout `json:"layout" doc:"Positions of nodes and lines in pixels. Equal fingerprints have equal layouts."`
}

// maxLayouts is how many layouts a server keeps.
const maxLayouts = 100

// layoutCache has the layouts of the flows that were drawn last, by fingerprint.
type layoutCache struct {
	sync.Mutex
	lru.Map[string, *graph.Layout]
}

func (s *Server) registerLayout() {
	register(s, operation{
		id: "getFlowGraph", method: http.MethodGet, path: "/v1/flows/{flow}/graph", scope: Read, tags: []string{"flows"},
		summary: "Get the drawing of a flow as positions",
	}, getFlowGraph)
	register(s, operation{
		id: "getRunGraph", method: http.MethodGet, path: "/v1/runs/{run}/graph", scope: Read, tags: []string{"history"},
		summary: "Get the drawing of the flow that a run executes, as positions",
	}, getRunGraph)
}

func getFlowGraph(c *call, in *flowPath) (*body[drawnFlow], error) {
	f, err := c.flow(in.Flow)
	if err != nil {
		return nil, err
	}
	return bodyOf(c.draw(f.Flow)), nil
}

func getRunGraph(c *call, in *RunPath) (*body[drawnFlow], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	f, err := c.app.FlowOf(c, in.Run)
	if err != nil {
		return nil, err
	}
	return bodyOf(c.draw(f)), nil
}

// draw returns the layout of a flow. Those of large flows take time, so the last ones are
// kept.
func (s *Server) draw(f *weir.Flow) drawnFlow {
	fingerprint := f.Fingerprint()
	s.layouts.Lock()
	l, ok := s.layouts.Get(fingerprint)
	s.layouts.Unlock()
	if !ok {
		l = graph.LayoutOf(f, s.app.Catalogue())
		s.layouts.Lock()
		s.layouts.Put(fingerprint, l)
		s.layouts.Unlock()
	}
	return drawnFlow{f.Name, fingerprint, l}
}
