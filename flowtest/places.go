package flowtest

import (
	"context"
	"strings"
	"sync"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

// places knows where in the tree of a test's runs a run is.
type places struct {
	mu     sync.Mutex
	w      *weir.Weir
	prefix map[string]string // of the paths of a run's nodes, by run: "research>"
	order  []string
}

func newPlaces(root string) *places {
	return &places{prefix: map[string]string{root: ""}, order: []string{root}}
}

// of is what stands before the paths of a run's nodes: nothing for the test's
// own, "research>" for the run that its node research began.
func (p *places) of(run string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, known := p.prefix[run]; known {
		return at
	}
	for i := 0; i < len(p.order); i++ { // the list grows meanwhile
		p.children(p.order[i])
		if at, known := p.prefix[run]; known {
			return at
		}
	}
	return "?>" // a run that a tool began: nothing in it is named by the test
}

// children notes the runs that a run has begun. That it waits for them is durable
// before they begin.
func (p *places) children(run string) {
	v, err := p.w.Inspect(context.Background(), run, 0)
	if err != nil {
		return
	}
	for _, c := range v.Commits {
		for _, e := range c.Events {
			w, ok := e.(*engine.NodeWaiting)
			if !ok {
				continue
			}
			for _, i := range w.Interrupts {
				if i.Child == nil {
					continue
				}
				if _, known := p.prefix[i.Child.Run]; !known {
					p.prefix[i.Child.Run] = p.prefix[run] + w.Path + ">"
					p.order = append(p.order, i.Child.Run)
				}
			}
		}
	}
}

// key is an effect key as if the test's own run had made it: RUN/PATH/NAME#1.
func (p *places) key(key string) string {
	run, rest, _ := strings.Cut(key, "/")
	if run == runID {
		return key
	}
	return runID + "/" + p.of(run) + rest
}
