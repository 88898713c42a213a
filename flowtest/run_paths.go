package flowtest

import (
	"context"
	"strings"
	"sync"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

// runPaths knows where in the tree of a test's runs a run is.
type runPaths struct {
	mu     sync.Mutex
	w      *weir.Weir
	prefix map[string]string // of the paths of a run's nodes, by run: "research>"
	order  []string
}

func newRunPaths(root string) *runPaths {
	return &runPaths{prefix: map[string]string{root: ""}, order: []string{root}}
}

// prefixOf is what stands before the paths of a run's nodes: nothing for the test's
// own, "research>" for the run that its node research began.
func (p *runPaths) prefixOf(run string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, known := p.prefix[run]; known {
		return at
	}
	for i := 0; i < len(p.order); i++ { // the list grows meanwhile
		p.addChildren(p.order[i])
		if at, known := p.prefix[run]; known {
			return at
		}
	}
	return "?>" // a run that a tool began: nothing in it is named by the test
}

// addChildren notes the runs that a run has begun. That it waits for them is durable
// before they begin.
func (p *runPaths) addChildren(run string) {
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

// effectKey is an effect key as if the test's own run had made it: RUN/PATH/NAME#1.
func (p *runPaths) effectKey(key string) string {
	run, rest, _ := strings.Cut(key, "/")
	if run == runID {
		return key
	}
	return runID + "/" + p.prefixOf(run) + rest
}
