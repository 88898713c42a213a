package node

import (
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

// ArtifactsKey is where the recorded result of a tool call has the artifacts
// that the tool declared.
const ArtifactsKey = "artifacts"

// artifacts gathers what one call of a tool declares.
type artifacts struct {
	mu   sync.Mutex
	list []any
	done bool
}

// add notes an artifact; what comes after the call has ended is too late.
func (l *artifacts) add(a trajectory.Artifact) {
	v, err := a.Value()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && !l.done { // Declare has checked it
		l.list = append(l.list, v)
	}
}

// into puts what was declared into a recorded result.
func (l *artifacts) into(result map[string]any) engine.Value {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = true
	if l.list != nil {
		result[ArtifactsKey] = l.list
	}
	return result
}

// caller says for whom the node calls tools.
func (c *Ctx) caller() tool.Caller {
	i := c.info
	return tool.Caller{Run: i.Run, Flow: i.Flow, User: i.User, Session: i.Session, Round: i.Round}
}
