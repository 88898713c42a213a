package app

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// RunRow is a run as `weir runs --json` prints it.
type RunRow struct {
	Run        string        `json:"run"`
	Flow       string        `json:"flow"`
	Status     string        `json:"status"`
	Created    time.Time     `json:"created"`
	Updated    time.Time     `json:"updated"`
	User       string        `json:"user"`
	Origin     string        `json:"origin"`
	Parent     string        `json:"parent"`   // "" for a run without a parent
	Children   int           `json:"children"` // its own, not theirs
	Events     int64         `json:"events"`
	Interrupts []Interrupt   `json:"interrupts"`
	Usage      Usage         `json:"usage"`
	Error      *engine.Error `json:"error"`
}

// RunRowOf returns the row of a run for a report.
func RunRowOf(r *store.Run) RunRow {
	return RunRow{
		Run: r.ID, Flow: r.Flow, Status: r.Head.Status.String(), Created: r.Created, Updated: r.Updated,
		User: r.User, Origin: r.Origin, Parent: r.Parent, Events: r.Events, Interrupts: InterruptsOf(r.Head.Waiting),
		Usage: UsageOf(r.Head.Usage), Error: r.Head.Error,
	}
}

// IsInterrupted reports whether a run could continue and no process executes it: the one
// that did was stopped, or died.
func IsInterrupted(r *store.Run) bool {
	if r.Head.Status != engine.Running && r.Head.Status != engine.Pending {
		return false
	}
	return r.Owner == "" || r.Expired || runner.OwnerDead(r.Owner)
}

// RunDetails is a run as `weir show --json` prints it.
type RunDetails struct {
	Run        string          `json:"run"`
	Flow       string          `json:"flow"`
	Status     string          `json:"status"`
	Stopped    bool            `json:"stopped"` // no process executes it, and resume continues it
	Event      int64           `json:"event"`   // the last one
	At         int64           `json:"at"`      // of it, Unix milliseconds
	User       string          `json:"user"`
	Origin     string          `json:"origin"`
	Parent     string          `json:"parent"`     // "" for the root of a tree
	ParentNode string          `json:"parentNode"` // whose child the run is, in the parent
	Inputs     engine.Values   `json:"inputs"`
	Outputs    engine.Values   `json:"outputs"`
	Absent     engine.Values   `json:"absent"` // declared outputs without a value, and why
	State      engine.Values   `json:"state"`
	Interrupts []Interrupt     `json:"interrupts"`
	Usage      Usage           `json:"usage"`
	Error      *engine.Error   `json:"error"`
	Fork       *ForkOrigin     `json:"fork"` // null where its past is its own
	Nodes      []NodeReport    `json:"nodes"`
	Contexts   []ContextReport `json:"contexts"`
	Children   []ChildRun      `json:"children"` // as they are now
}

// NodeReport is what happened to a node.
type NodeReport struct {
	Node     string        `json:"node"`
	Type     string        `json:"type"`
	Status   string        `json:"status"`
	Attempts int           `json:"attempts"`
	Started  int64         `json:"started"` // Unix milliseconds
	Micros   int64         `json:"us"`
	Cached   bool          `json:"cached"`
	Outputs  engine.Values `json:"outputs"`
	Metadata engine.Values `json:"metadata"`
	Error    *engine.Error `json:"error"`
}

// ContextReport is a context with its messages.
type ContextReport struct {
	ID       string          `json:"id"`
	Kind     string          `json:"kind"`
	Label    string          `json:"label"`
	Parent   string          `json:"parent"`
	Model    string          `json:"model"`
	Messages []convo.Message `json:"messages"`
}

// RunDetailsOf returns a run with those around it.
func RunDetailsOf(ctx context.Context, db history.TreeStore, v *runner.RunView) (*RunDetails, error) {
	s := runDetailsOf(v)
	var err error
	if s.Parent != "" {
		if s.ParentNode, err = history.ParentNode(ctx, db, s.Run, s.Parent); err != nil {
			return nil, err
		}
	}
	if s.Children, err = ChildRunsOf(ctx, db, s.Run, v.Commits); err != nil {
		return nil, err
	}
	row, err := db.Run(ctx, s.Run)
	s.Stopped = err == nil && row.Events == v.Run.Events() && IsInterrupted(&row)
	return s, err
}

func runDetailsOf(v *runner.RunView) *RunDetails {
	r := v.Run
	s := &RunDetails{
		Run: r.ID, Flow: r.Start.Flow, Status: r.Status().String(), Event: r.Events(), At: r.Now(),
		User: r.Start.User, Origin: r.Start.Origin, Parent: r.Start.Parent, Inputs: OrEmpty(r.Start.Inputs), Outputs: OrEmpty(r.Outputs()), Absent: OrEmpty(r.Absent()),
		State: StateValues(r.State()), Interrupts: InterruptsOf(r.Interrupts()), Usage: UsageOf(r.Usage()), Error: r.Failure(),
		Nodes: []NodeReport{}, Contexts: []ContextReport{},
	}
	s.Fork = ForkOriginOf(r)
	c := history.NewTimeline(v)
	for _, path := range c.Order {
		s.Nodes = append(s.Nodes, NodeReportOf(c.Nodes[path]))
	}
	for _, id := range slices.Sorted(maps.Keys(v.Contexts)) {
		s.Contexts = append(s.Contexts, ContextReportOf(v.Contexts[id]))
	}
	return s
}

// NodeReportOf returns what happened to a node for a report.
func NodeReportOf(n *history.NodeRecord) NodeReport {
	return NodeReport{
		Node: n.Path, Type: n.Type, Status: n.Status.String(), Attempts: n.Attempts, Started: n.Started,
		Micros: n.Duration(), Cached: n.Cached, Outputs: OrEmpty(n.Outputs), Metadata: OrEmpty(n.Metadata), Error: n.Error,
	}
}

// ContextReportOf returns a context with its messages for a report.
func ContextReportOf(c convo.Context) ContextReport {
	out := ContextReport{
		ID: c.ID, Kind: string(c.Kind), Label: c.Label, Parent: c.Parent,
		Model: ModelOf(c.Settings), Messages: []convo.Message{},
	}
	for _, m := range c.History.All() {
		out.Messages = append(out.Messages, m)
	}
	return out
}

// ModelOf returns the model of settings as "provider/model".
func ModelOf(s convo.Settings) string {
	if s.Provider == "" || strings.HasPrefix(s.Model, s.Provider+"/") {
		return s.Model
	}
	return s.Provider + "/" + s.Model
}

// OrEmpty returns values that are never nil.
func OrEmpty(v engine.Values) engine.Values {
	if v == nil {
		return engine.Values{}
	}
	return v
}

// StateValues returns the keys and values of a state.
func StateValues(s engine.State) engine.Values {
	out := engine.Values{}
	for _, k := range s.Keys() {
		v, _ := s.Get(k)
		out = append(out, engine.Named{Name: k, Value: v})
	}
	return out
}

// ForkOrigin says of a run whose past it shares.
type ForkOrigin struct {
	From   string `json:"from"`
	At     int64  `json:"at"`
	Shared Usage  `json:"shared_usage"` // not in usage
}

// ForkOriginOf returns where the past of a run comes from, nil for its own.
func ForkOriginOf(r *engine.Run) *ForkOrigin {
	f := r.Forked()
	if f == nil {
		return nil
	}
	return &ForkOrigin{From: f.From, At: f.At, Shared: UsageOf(r.SharedUsage())}
}

// ChildRun is a run in the tree of runs, as `weir show --json` prints its
// children.
type ChildRun struct {
	Run string `json:"run"`
	// Node is the path of the node, in the run above, whose child the run is; ""
	// where a model called it as a tool.
	Node       string        `json:"node"`
	Flow       string        `json:"flow"`
	Status     string        `json:"status"`
	Isolation  string        `json:"isolation"`
	Micros     int64         `json:"us"`
	Usage      Usage         `json:"usage"` // of its own children too
	Interrupts []Interrupt   `json:"interrupts"`
	Error      *engine.Error `json:"error"`
	Children   []ChildRun    `json:"children"`

	// Row is the run in listings.
	Row store.Run `json:"-"`
}

// ChildRunsOf returns the tree of child runs of a run; commits are its journal if that has
// been read.
func ChildRunsOf(ctx context.Context, s history.TreeStore, id string, commits []engine.Commit) ([]ChildRun, error) {
	tree, err := history.ChildTree(ctx, s, id, commits)
	return childRunsOf(tree), err
}

func childRunsOf(tree []history.ChildRun) []ChildRun {
	out := make([]ChildRun, 0, len(tree))
	for i := range tree {
		b := childRunOf(&tree[i].Row)
		b.Node, b.Isolation, b.Children = tree[i].Node, tree[i].Isolation, childRunsOf(tree[i].Children)
		out = append(out, b)
	}
	return out
}

func childRunOf(r *store.Run) ChildRun {
	return ChildRun{
		Run: r.ID, Flow: r.Flow, Status: r.Head.Status.String(), Micros: r.Updated.Sub(r.Created).Microseconds(),
		Usage: UsageOf(r.Head.Usage), Interrupts: InterruptsOf(r.Head.Waiting), Error: r.Head.Error,
		Children: []ChildRun{}, Row: *r,
	}
}

// RunStatuses returns the statuses that a run can have.
func RunStatuses() []string {
	var out []string
	for _, s := range []engine.Status{engine.Pending, engine.Running, engine.Paused, engine.Completed, engine.Failed, engine.Cancelled} {
		out = append(out, s.String())
	}
	return out
}

// StatusNamed returns the status with a name. A UsageError lists the names.
func StatusNamed(name string) (engine.Status, error) {
	for s := engine.Pending; s <= engine.NotNeeded; s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, usagef("there is no status %q; there are %s", name, strings.Join(RunStatuses(), ", "))
}
