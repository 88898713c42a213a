package server

import (
	"maps"
	"net/http"
	"slices"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

type timelineInput struct {
	RunPath
	At    int64 `query:"at" minimum:"0" doc:"The run as it was after this event; 0 is now"`
	From  int   `query:"from" minimum:"0" doc:"The position of the first node"`
	Limit int   `query:"limit" minimum:"1" maximum:"20000" default:"5000" doc:"At most this many nodes"`
}

// RunOverview is a run without its nodes.
type RunOverview struct {
	User       string          `json:"user"`
	Origin     string          `json:"origin"`
	Session    string          `json:"session" doc:"The session whose round the run is; empty for other runs"`
	Round      int             `json:"round"`
	Parent     string          `json:"parent" doc:"The run above; empty for a root"`
	ParentNode string          `json:"parentNode" doc:"The node of it whose child the run is"`
	Stopped    bool            `json:"stopped" doc:"No process executes the run, and resume continues it"`
	Error      *engine.Error   `json:"error"`
	Interrupts []app.Interrupt `json:"interrupts" doc:"What the run waits for"`
	Fork       *app.ForkOrigin `json:"fork" doc:"null if the run does not share the past of another"`
	Children   []app.ChildRun  `json:"children" doc:"As they are now"`
	Contexts   []ContextRow    `json:"contexts"`
	Inputs     []shownValue    `json:"inputs"`
	Outputs    []shownValue    `json:"outputs"`
	Absent     []shownValue    `json:"absent" doc:"Declared outputs without a value, with the reason"`
	State      []shownValue    `json:"state"`
}

// timeline is what happened to the nodes of a run, without their values.
type timeline struct {
	Run         string    `json:"run"`
	Flow        string    `json:"flow"`
	Fingerprint string    `json:"fingerprint"`
	Status      string    `json:"status"`
	Event       int64     `json:"event" doc:"The number of the last event"`
	At          int64     `json:"at" doc:"The time of that event, Unix milliseconds"`
	Events      int64     `json:"events" doc:"The number of the run's newest event; greater than event if an earlier one was asked for"`
	Started     int64     `json:"started" doc:"Unix milliseconds"`
	Cursor      string    `json:"cursor" doc:"For GET .../stream: continues behind what this answer contains. Events up to the number event may come again."`
	Usage       app.Usage `json:"usage"`
	RunOverview
	Nodes []timelineNode `json:"nodes" doc:"In flow order; nodes of iterations follow their composite"`
	Total int            `json:"total" doc:"How many nodes there are"`
}

type timelineNode struct {
	Node     string          `json:"node" doc:"The path"`
	Type     string          `json:"type"`
	Status   string          `json:"status"`
	Attempts int             `json:"attempts"`
	Started  int64           `json:"started" doc:"The last attempt; Unix milliseconds, 0 if it has not started"`
	Ended    int64           `json:"ended" doc:"Unix milliseconds; 0 if it has not ended"`
	Micros   int64           `json:"us"`
	Cached   bool            `json:"cached"`
	Result   string          `json:"result" doc:"The beginning of the first output"`
	Error    *engine.Error   `json:"error"`
	Usage    app.Usage       `json:"usage"`
	Phases   []timelinePhase `json:"phases"`
}

type timelinePhase struct {
	Kind    string `json:"kind" doc:"queue (it could start, and waited for a slot or the turn of its item), grant (for a context that another node was writing), run, body, pull, retry, or what the node waited for: input, approval, event, timer, child, budget, effect, break"`
	From    int64  `json:"from" doc:"Unix milliseconds"`
	To      int64  `json:"to" doc:"Unix milliseconds; 0 if it has not ended"`
	Attempt int    `json:"attempt"`
}

const (
	// maxPhases bounds the phases of a node in a timeline.
	maxPhases = 50
	// maxResult bounds the beginning of a result in characters.
	maxResult = 120
)

func (s *Server) registerTimeline() {
	register(s, operation{
		id: "getTimeline", method: http.MethodGet, path: "/v1/runs/{run}/timeline", scope: Read, tags: []string{"history"},
		summary: "Get what happened to each node of a run, without the values, now or as it was at an event",
	}, getTimeline)
}

func getTimeline(c *call, in *timelineInput) (*body[timeline], error) {
	row, err := c.run(in.Run)
	if err != nil {
		return nil, err
	}
	cursor, err := c.app.Cursor(c, in.Run) // before the run is read, so that no event is missed
	if err != nil {
		return nil, err
	}
	v, err := c.inspect(in.Run, in.At)
	if err != nil {
		return nil, err
	}
	r, list := v.Run, history.NewTimeline(v)
	out := timeline{
		Run: r.ID, Flow: r.Start.Flow, Fingerprint: row.Fingerprint, Status: r.Status().String(), Event: r.Events(), At: r.Now(),
		Events: max(row.Events, r.Events()), Started: history.StartedAt(v), Cursor: cursor, Usage: app.UsageOf(r.Usage()),
		Nodes: []timelineNode{}, Total: len(list.Order),
	}
	if out.RunOverview, err = c.overviewOf(v, list, &row); err != nil {
		return nil, err
	}
	phases := history.PhasesOf(v, maxPhases)
	from := min(in.From, len(list.Order))
	for _, path := range list.Order[from:min(from+in.Limit, len(list.Order))] {
		out.Nodes = append(out.Nodes, timelineNodeOf(list.Nodes[path], phases[path]))
	}
	return bodyOf(out), nil
}

// overviewOf returns what a view says about the run as a whole; row is the run as it is now.
func (c *call) overviewOf(v *runner.RunView, list *history.Timeline, row *store.Run) (o RunOverview, err error) {
	r := v.Run
	o = RunOverview{
		User: r.Start.User, Origin: r.Start.Origin, Session: r.Start.Session, Round: r.Start.Round, Parent: r.Start.Parent,
		Stopped: row.Events == r.Events() && app.IsInterrupted(row), Error: r.Failure(), Interrupts: app.InterruptsOf(r.Interrupts()),
		Fork: app.ForkOriginOf(r), Contexts: []ContextRow{},
		Inputs: shownValues(r.Start.Inputs), Outputs: shownValues(r.Outputs()), Absent: shownValues(r.Absent()), State: shownValues(app.StateValues(r.State())),
	}
	if o.Parent != "" {
		if o.ParentNode, err = history.ParentNode(c, c.app.Store, r.ID, o.Parent); err != nil {
			return o, err
		}
	}
	if o.Children, err = app.ChildRunsOf(c, c.app.Store, r.ID, v.Commits); err != nil {
		return o, err
	}
	calls := lastCalls(v.Commits, list)
	for _, id := range slices.Sorted(maps.Keys(v.Contexts)) {
		x := v.Contexts[id]
		row := ContextRow{ID: x.ID, Kind: string(x.Kind), Label: x.Label, Parent: x.Parent, Model: app.ModelOf(x.Settings), Messages: x.History.Len(), At: x.At}
		if last := calls[id]; last != nil {
			row.Used, row.Window = last.Input+last.Output, c.windowOf(x.Settings)
		}
		o.Contexts = append(o.Contexts, row)
	}
	return o, nil
}

func timelineNodeOf(n *history.NodeRecord, phases []history.Phase) timelineNode {
	out := timelineNode{
		Node: n.Path, Type: n.Type, Status: n.Status.String(), Attempts: n.Attempts, Started: n.Started, Ended: n.Ended,
		Micros: n.Duration(), Cached: n.Cached, Error: n.Error, Phases: []timelinePhase{},
	}
	var spent engine.Usage
	for _, e := range n.Effects {
		if e.Usage != nil {
			spent = spent.Add(*e.Usage)
		}
	}
	out.Usage = app.UsageOf(spent)
	for _, x := range n.Outputs {
		if _, handle := x.Value.(engine.Handle); !handle {
			out.Result = resultOf(x.Value)
			break
		}
	}
	for _, p := range phases {
		out.Phases = append(out.Phases, timelinePhase{p.Kind, p.From, p.To, p.Attempt})
	}
	return out
}

// resultOf returns the beginning of a value as text.
func resultOf(v engine.Value) string {
	if s, ok := v.(string); ok {
		return excerpt.Chars(s, maxResult)
	}
	return excerpt.Chars(string(app.JSONOf(v)), maxResult)
}
