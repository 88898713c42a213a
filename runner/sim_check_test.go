package runner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// effectLog stands outside: it knows what was asked of it, and what the journal
// says.
type effectLog struct {
	run            string
	life           int
	lastLife       map[string]int // key -> life in which it was asked last
	journaled      map[string]bool
	announced      map[string]bool // whether it happened is asked where it is not known
	retriesAllowed map[string]int  // how often a person said to ask again
	askedFor       map[string]int
	cancelled      bool // and durably so
	asks           int
	err            error
}

func newEffectLog(run string) *effectLog {
	return &effectLog{
		run: run, life: 1, lastLife: map[string]int{}, journaled: map[string]bool{},
		announced: map[string]bool{}, retriesAllowed: map[string]int{}, askedFor: map[string]int{},
	}
}

func (l *effectLog) asked(path string, attempt int, key string) error {
	l.asks++
	l.askedFor[key]++
	switch {
	case l.announced[key] && l.askedFor[key] > 1+l.retriesAllowed[key]:
		l.fail("%s is asked for %d times and a person allowed it %d times", key, l.askedFor[key], 1+l.retriesAllowed[key])
	case !strings.HasPrefix(key, l.run+"/"+path+"/ask#"):
		l.fail("%s#%d asks under the key %s", path, attempt, key)
	case l.journaled[key]:
		l.fail("%s is asked for again and its result is journaled", key)
	case l.lastLife[key] == l.life:
		l.fail("%s is asked for twice without a crash between", key)
	case l.cancelled:
		l.fail("%s is asked for after the cancellation was durable", key)
	}
	l.lastLife[key] = l.life
	return nil
}

func (l *effectLog) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

func (l *effectLog) committed(c engine.Commit) {
	for _, e := range c.Events {
		switch e := e.(type) {
		case *engine.EffectCompleted:
			key := l.run + "/" + e.Key
			if l.journaled[key] {
				l.fail("%s is journaled twice", key)
			}
			l.journaled[key] = true
		case *engine.EffectStarted:
			l.announced[l.run+"/"+e.Key] = true
		case *engine.InterruptAnswered:
			if path, effect, ok := strings.Cut(e.ID, ":effect."); ok && e.Value == "retry" {
				effect, _, _ = strings.Cut(effect, ".")
				l.retriesAllowed[l.run+"/"+path+"/"+effect]++
			}
		case *engine.CancelRequested:
			l.cancelled = true
		}
	}
}

// expected is what the model says of a flow, with and without a person who
// completes what fails.
type expected struct {
	g        *simGraph
	m        *simModel
	result   any
	ok       bool
	failures []string
}

func newExpected(g *simGraph, forced bool) *expected {
	x := &expected{g: g}
	x.m, x.result, x.ok, x.failures = g.evaluate(forced)
	return x
}

// byHand reports whether the model says that nothing but a person completes the node. One
// that failed while the run was failing because of another node is not among them where its
// retries, its error port or its onError would have taken that: it runs again when the
// cause has been completed.
func (x *expected) byHand(path string) bool {
	o := x.m.nodes[path]
	return o != nil && o.outputs["value"] == "forced "+path
}

// checkJournal holds what happened against the model.
func (x *expected) checkJournal(commits []engine.Commit, r Result) error {
	j := &journalCheck{x: x, started: map[string]int{}, ended: map[string]bool{}, completed: map[string]bool{}}
	n, last := int64(0), int64(0)
	for i, c := range commits {
		if c.Seq != int64(i+1) || c.First != n+1 || c.At < last {
			return fmt.Errorf("commit %d: seq %d first %d at %d after event %d at %d", i+1, c.Seq, c.First, c.At, n, last)
		}
		n, last = n+int64(len(c.Events)), c.At
		for _, e := range c.Events {
			if err := j.event(e); err != nil {
				return fmt.Errorf("commit %d: %w", c.Seq, err)
			}
		}
	}
	if r.Status == engine.Cancelled {
		if _, ok := j.last.(*engine.RunCancelled); !ok || !j.cancel {
			return fmt.Errorf("a cancelled run ends with %T", j.last)
		}
		return nil
	}
	if len(x.failures) > 0 {
		if r.Status != engine.Failed {
			return fmt.Errorf("the run is %s; the model says that %v fail it", r.Status, x.failures)
		}
		return nil
	}
	if r.Status != engine.Completed {
		return fmt.Errorf("the run is %s (%s, %v); the model says completed", r.Status, asJSON(r.Error), r.Interrupts)
	}
	return j.complete(r)
}

type journalCheck struct {
	x         *expected
	started   map[string]int
	ended     map[string]bool
	completed map[string]bool
	cancel    bool
	last      engine.Event
	notes     int // that no completion has followed yet
}

// declared checks that a node which declares data has said so once, right before its
// completion, and no other has.
func (j *journalCheck) declared(path string, before engine.Event) error {
	note, ok := before.(*engine.NoteRecorded)
	if want := j.x.g.find(path).declares; want != (ok && note.Path == path) || want != (j.notes == 1) {
		return fmt.Errorf("%s declares an artifact: %v; before its completion there is %#v, and there are %d notes", path, want, before, j.notes)
	}
	j.notes = 0
	return nil
}

func (j *journalCheck) event(e engine.Event) error {
	before := j.last
	j.last = e
	switch e := e.(type) {
	case *engine.NodeStarted:
		return j.start(e)
	case *engine.NodeResumed, *engine.IterationStarted:
		if j.cancel {
			return fmt.Errorf("%s after the cancellation", e.Kind())
		}
	case *engine.NodeCompleted:
		j.ended[e.Path] = true
		if err := j.declared(e.Path, before); err != nil {
			return err
		}
		return j.outcome(e.Path, "completed", e.Outputs)
	case *engine.NoteRecorded:
		j.notes++
	case *engine.NodeErrored:
		if e.Handled != "" {
			j.ended[e.Path] = true
		}
		switch e.Handled {
		case "port":
			return j.outcome(e.Path, "failed", e.Outputs)
		case "value":
			return j.outcome(e.Path, "completed", e.Outputs)
		}
	case *engine.NodeOverridden:
		j.ended[e.Path] = true
		return j.outcome(e.Path, "completed", e.Outputs)
	case *engine.NodeSkipped:
		j.ended[e.Path] = true
		return j.outcome(e.Path, "skipped", nil)
	case *engine.NodeNotNeeded:
		j.ended[e.Path] = true
		return j.outcome(e.Path, "not_needed", nil)
	case *engine.CancelRequested:
		j.cancel = true
	}
	return nil
}

func (j *journalCheck) start(e *engine.NodeStarted) error {
	if j.cancel {
		return fmt.Errorf("%s starts after the cancellation", e.Path)
	}
	if want := j.started[e.Path] + 1; e.Attempt != want {
		return fmt.Errorf("%s starts attempt %d, expected %d", e.Path, e.Attempt, want)
	}
	j.started[e.Path]++
	o := j.x.m.nodes[e.Path]
	if o == nil {
		return fmt.Errorf("%s starts and is not in the model", e.Path)
	}
	for _, p := range o.parents {
		if !j.ended[p] {
			return fmt.Errorf("%s starts before its parent %s has ended", e.Path, p)
		}
	}
	return nil
}

// outcome compares how a node ended with the model.
func (j *journalCheck) outcome(path, status string, outputs engine.Values) error {
	if j.completed[path] {
		return fmt.Errorf("%s ends twice", path)
	}
	j.completed[path] = true
	o := j.x.m.nodes[path]
	if o == nil {
		return fmt.Errorf("%s is %s and not in the model", path, status)
	}
	if o.status != status {
		return fmt.Errorf("%s is %s, the model says %s", path, status, o.status)
	}
	if status == "failed" && o.outputs["error"] == nil {
		return nil // of a composite: whose error it is depends on order
	}
	got, want := withoutAttempts(valuesJSON(outputs)), withoutAttempts(asJSON(o.outputs))
	if status != "skipped" && status != "not_needed" && got != want {
		return fmt.Errorf("%s gives %s, the model says %s", path, got, want)
	}
	return nil
}

// complete checks that nothing is missing from a completed run.
func (j *journalCheck) complete(r Result) error {
	for path, o := range j.x.m.nodes {
		if !j.completed[path] && o.status != "stuck" && !j.x.m.tainted {
			return fmt.Errorf("%s did not end, the model says %s", path, o.status)
		}
		if o.status == "completed" && o.attempts > j.started[path] && !j.x.m.tainted {
			return fmt.Errorf("%s had %d attempts, the model says %d", path, j.started[path], o.attempts)
		}
	}
	got, ok := r.Outputs.Get("result")
	if ok != j.x.ok || ok && withoutAttempts(asJSON(got)) != withoutAttempts(asJSON(j.x.result)) {
		return fmt.Errorf("the run gives %v %s, the model says %v %s", ok, asJSON(got), j.x.ok, asJSON(j.x.result))
	}
	return nil
}

// valuesJSON returns the JSON of values, handles by their id.
func valuesJSON(v engine.Values) string {
	m := map[string]any{}
	for _, n := range v {
		m[n.Name] = n.Value
		if h, ok := n.Value.(engine.Handle); ok {
			id, _, _ := strings.Cut(h.ID, "@")
			m[n.Name] = id
		}
	}
	return asJSON(m)
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// checkState compares the state and contexts at the end of a completed run.
func (x *expected) checkState(r *engine.Run, contexts map[string]convo.Context) error {
	if x.m.tainted {
		return nil
	}
	var sum, most int64
	log, own := []string{}, 0
	for path, o := range x.m.nodes {
		n := x.g.find(path)
		if o.status != "completed" || n == nil || o.outputs["value"] == "instead of "+n.id || o.outputs["value"] == "forced "+path {
			continue
		}
		if n.op.Write {
			sum, most = sum+int64(len(path)), max(most, int64(len(path)))
			log = append(log, path)
		}
		if n.op.Own {
			own++
		}
	}
	slices.Sort(log)
	if err := checkReduced(r, sum, most, log); err != nil {
		return err
	}
	for _, k := range r.State().Keys() {
		if strings.HasPrefix(k, "own:") {
			own--
		}
	}
	if own != 0 {
		return fmt.Errorf("%d writes of single nodes are missing from the state", own)
	}
	return x.checkTurns(contexts)
}

func checkReduced(r *engine.Run, sum, most int64, log []string) error {
	got := map[string]any{}
	for _, k := range []string{"sum", "max", "log", "map"} {
		if v, ok := r.State().Get(k); ok {
			got[k] = v
		}
	}
	want := map[string]any{}
	if len(log) > 0 {
		m := map[string]any{}
		for _, p := range log {
			m[p] = len(p)
		}
		want = map[string]any{"sum": sum, "max": most, "log": log, "map": m}
		list := []string{}
		if l, ok := got["log"].([]any); ok {
			for _, e := range l {
				list = append(list, fmt.Sprint(e))
			}
		}
		slices.Sort(list)
		got["log"] = list
	}
	if asJSON(got) != asJSON(want) {
		return fmt.Errorf("the state is %s, the model says %s", asJSON(got), asJSON(want))
	}
	return nil
}

// find returns the node of a path such as "b#2/b_a".
func (g *simGraph) find(path string) *simNode {
	head, rest, nested := strings.Cut(path, "/")
	id, _, _ := strings.Cut(head, "#")
	for _, n := range g.nodes {
		if n.id == id {
			if nested {
				return n.body.find(rest)
			}
			return n
		}
	}
	return nil
}

// checkTurns: every turn is in its context once and whole, lanes stand together
// in index order.
func (x *expected) checkTurns(contexts map[string]convo.Context) error {
	for id := range contexts {
		if strings.Contains(id, "@") {
			return fmt.Errorf("the lane %s is left over", id)
		}
		if id != "main" && x.m.nodes[id] == nil {
			return fmt.Errorf("context %s is nobody's", id)
		}
	}
	for id, c := range contexts {
		paths, err := turnsOf(id, c)
		if err != nil {
			return err
		}
		if err := x.checkLanes(id, paths); err != nil {
			return err
		}
		got, want := slices.Sorted(slices.Values(paths)), slices.Sorted(slices.Values(x.m.turns[id]))
		if !slices.Equal(got, want) {
			return fmt.Errorf("in context %s spoke %v, the model says %v", id, got, want)
		}
	}
	for id := range maps.Keys(x.m.turns) {
		if _, ok := contexts[id]; !ok {
			return fmt.Errorf("context %s is not there", id)
		}
	}
	return nil
}

// turnsOf lists who spoke in a context; each turn must be whole.
func turnsOf(id string, c convo.Context) ([]string, error) {
	ms, err := c.Messages()
	if err != nil {
		return nil, err
	}
	var paths []string
	for i := 0; i < len(ms); i += 2 {
		path := strings.TrimSuffix(ms[i].ID, ".u")
		if i+1 >= len(ms) || ms[i+1].ID != path+".a" {
			return nil, fmt.Errorf("context %s: the turn of %s is torn apart: %v", id, path, ms)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// checkLanes: what was said in the lanes of a composite stands together, in
// index order.
func (x *expected) checkLanes(id string, paths []string) error {
	for i, path := range paths {
		owner, rest, ok := strings.Cut(path, "#")
		n := x.g.find(owner)
		if !ok || n.lanes < 2 && !n.fork {
			continue
		}
		if i > 0 && strings.HasPrefix(paths[i-1], owner+"#") {
			before := strings.TrimPrefix(paths[i-1], owner+"#")
			if iterationNumber(before) > iterationNumber(rest) {
				return fmt.Errorf("context %s: %s after %s", id, path, paths[i-1])
			}
			continue
		}
		for _, other := range paths[:i] {
			if strings.HasPrefix(other, owner+"#") {
				return fmt.Errorf("context %s: the lanes of %s are torn apart: %v", id, owner, paths)
			}
		}
	}
	return nil
}

// iterationNumber returns the iteration that the rest of a path begins with.
func iterationNumber(rest string) int {
	digits, _, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err)
	}
	return n
}
