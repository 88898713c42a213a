package flowtest

import (
	"context"
	"strings"
	"sync"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

// runPaths has the positions of the runs in the tree of a test.
type runPaths struct {
	mu     sync.Mutex
	w      *weir.Weir
	prefix map[string]string // prefix of node paths, by run: "research>"
	order  []string
}

func newRunPaths(root string) *runPaths {
	return &runPaths{prefix: map[string]string{root: ""}, order: []string{root}}
}

// addRoot makes a round of a session another root run.
func (p *runPaths) addRoot(run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.prefix[run]; !known {
		p.prefix[run] = ""
		p.order = append(p.order, run)
	}
}

// prefixOf returns the prefix of the paths of a run's nodes: "" for the root run, "research>" for the child run of
// its node research.
func (p *runPaths) prefixOf(run string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, known := p.prefix[run]; known {
		return at
	}
	for i := 0; i < len(p.order); i++ { // the list grows concurrently
		p.addChildren(p.order[i])
		if at, known := p.prefix[run]; known {
			return at
		}
	}
	return "?>" // the child run of a tool, which a test cannot name
}

// addChildren adds the child runs of a run. That the run waits for them is durable before they start.
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

// effectKey returns an effect key as if the root run had made it: RUN/PATH/NAME#1.
func (p *runPaths) effectKey(key string) string {
	run, rest, _ := strings.Cut(key, "/")
	if run == runID {
		return key
	}
	return runID + "/" + p.prefixOf(run) + rest
}
