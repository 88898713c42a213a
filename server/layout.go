package server

import (
	"net/http"
	"slices"
	"strings"
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

// Folding says which bodies a drawing has.
type Folding struct {
	Fold bool     `query:"fold" doc:"Draw composites without their bodies"`
	Open []string `query:"open" maxItems:"200" doc:"With fold: paths of composites whose bodies are drawn, for example refine/draft"`
}

type flowGraphInput struct {
	Flow string `path:"flow" maxLength:"400" doc:"The name of the flow"`
	Folding
}

type runGraphInput struct {
	RunPath
	Folding
}

// maxLayouts is how many layouts a server keeps.
const maxLayouts = 100

// layoutCache has the layouts of the flows that were drawn last, by fingerprint and open bodies.
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

func getFlowGraph(c *call, in *flowGraphInput) (*body[drawnFlow], error) {
	f, err := c.flow(in.Flow)
	if err != nil {
		return nil, err
	}
	return bodyOf(c.draw(f.Flow, in.Folding)), nil
}

func getRunGraph(c *call, in *runGraphInput) (*body[drawnFlow], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	f, err := c.app.FlowOf(c, in.Run)
	if err != nil {
		return nil, err
	}
	return bodyOf(c.draw(f, in.Folding)), nil
}

// draw returns the layout of a flow. Those of large flows take time, so the last ones are
// kept.
func (s *Server) draw(f *weir.Flow, o Folding) drawnFlow {
	fingerprint := f.Fingerprint()
	key := fingerprint
	if o.Fold {
		slices.Sort(o.Open)
		key += " " + strings.Join(slices.Compact(o.Open), " ")
	}
	s.layouts.Lock()
	l, ok := s.layouts.Get(key)
	s.layouts.Unlock()
	if !ok {
		if o.Fold {
			l = graph.FoldedLayoutOf(f, s.app.Catalogue(), o.Open)
		} else {
			l = graph.LayoutOf(f, s.app.Catalogue())
		}
		s.layouts.Lock()
		s.layouts.Put(key, l)
		s.layouts.Unlock()
	}
	return drawnFlow{f.Name, fingerprint, l}
}
