package weir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/sandbox"
)

// Blocked lists the unfinished runs that this process cannot continue, with the reasons. It is
// empty unless Options.Recover is set.
func (w *Weir) Blocked() []runner.Blocked {
	return append(w.local.Blocked(), w.sessions.Blocked()...)
}

// Continue is Resume for callers that act without a request of a person. The error is
// runner.ErrPoisoned for a run that has repeatedly crashed the processes that executed it, and
// a *runner.Missing if this process lacks something that the run needs.
func (w *Weir) Continue(ctx context.Context, id string) (*Run, error) {
	if w.runner != nil {
		return w.wake(ctx, id, false)
	}
	p, err := w.programIfRunnable(ctx, id)
	if err != nil {
		return nil, err
	}
	x, err := w.local.Recover(ctx, p, id)
	if err != nil {
		return nil, err
	}
	return &Run{ID: id, w: w, exec: x}, nil
}

// Missing lists the node types, tools, model providers, executors and secrets that the run's flow names
// and that this process lacks. It is empty if nothing is missing.
func (w *Weir) Missing(ctx context.Context, id string) ([]string, error) {
	_, err := w.programIfRunnable(ctx, id)
	if m, ok := errors.AsType[*runner.Missing](err); ok {
		return m.What, nil
	}
	return nil, err
}

// programOnceOpened returns programIfRunnable for recovery, which the runner begins before Open
// has set all of w: it waits until opened is closed.
func (w *Weir) programOnceOpened(opened <-chan struct{}) func(context.Context, string) (*runner.Program, error) {
	return func(ctx context.Context, id string) (*runner.Program, error) {
		select {
		case <-opened:
			return w.programIfRunnable(ctx, id)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// programIfRunnable returns the program of a run if this process has everything that the run
// needs, otherwise a *runner.Missing.
func (w *Weir) programIfRunnable(ctx context.Context, id string) (*runner.Program, error) {
	if err := w.local.CheckRunner(ctx, id); err != nil {
		return nil, err
	}
	p, err := w.programOf(ctx, id)
	if err != nil {
		return nil, err
	}
	start, err := w.local.EffectiveStart(ctx, id)
	if e, ok := errors.AsType[*engine.Error](err); ok && e.Code == engine.CodeFork { // it has no commit
		start, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	changed, err := w.changed(ctx, p, start)
	if len(changed) > 0 {
		if start, err = w.startWithAcceptedChanges(ctx, id, start); err == nil {
			changed, err = w.changed(ctx, p, start)
		}
	}
	if err != nil {
		return nil, err
	}
	if what := w.missing(p, start, changed); len(what) > 0 {
		return nil, &runner.Missing{Run: id, What: what}
	}
	return p, nil
}

// startWithAcceptedChanges returns the first event of a run with the changes that were accepted
// since.
func (w *Weir) startWithAcceptedChanges(ctx context.Context, id string, start *engine.RunStarted) (*engine.RunStarted, error) {
	now := *start
	// The past that a fork shares may have changes that were accepted for the other run.
	for c, err := range w.store.Commits(ctx, id, 0) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", id, err)
		}
		for _, e := range c.Events {
			switch e := e.(type) {
			case *engine.RunForked:
				now.Pinned, now.Specs = e.Pinned, e.Specs
			case *engine.ChangesAccepted:
				now.Pinned, now.Specs = e.Pinned, e.Specs
			}
		}
	}
	return &now, nil
}

// changed lists the node types, with their ports, and the tools that differ from those that a
// run was started with.
func (w *Weir) changed(ctx context.Context, p *runner.Program, start *engine.RunStarted) ([]string, error) {
	if start == nil {
		return nil, nil
	}
	out := p.MissingDependencies(start.Pinned)
	if start.Specs == "" || start.Specs == p.Specs || p.RecordedSpecs == nil {
		return out, nil
	}
	was, err := history.StoredSpecs(ctx, w.store, start.Specs)
	if was == nil || err != nil {
		return out, err
	}
	for _, c := range was.Changes(p.Fingerprint, p.RecordedSpecs) {
		out = append(out, c.String())
	}
	return out, nil
}

// missing adds what else this process lacks for a run.
func (w *Weir) missing(p *runner.Program, start *engine.RunStarted, out []string) []string {
	n := newRequirements()
	for _, f := range p.Flow.Dependencies() {
		n.addGraph(&f.Graph)
		if start == nil || f != p.Flow {
			n.addContext(f)
		}
		w.addTools(n, f)
	}
	if start != nil {
		for _, m := range modelsOfStart(start) {
			n.addModel(m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.providers)) {
		if !w.replays && !w.providers[name] {
			out = append(out, fmt.Sprintf("the provider of models %s is not configured", name))
		}
	}
	for e := range n.executors { // order: the list is sorted below
		if !e.isIn(w.localOptions.Services.Executors) {
			out = append(out, e.String()+" is not offered")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.secrets)) {
		if _, ok := w.secret(name); !ok {
			out = append(out, fmt.Sprintf("the secret %s is not set", name))
		}
	}
	out = append(out, w.missingSecretsOfTools(n.tools)...)
	slices.Sort(out)
	return slices.Compact(out)
}

// missingSecretsOfTools lists the secrets that tools need and this process lacks.
func (w *Weir) missingSecretsOfTools(names map[string]bool) (out []string) {
	for name := range names { // order: the caller sorts the list
		if t := w.tools.Get(name); t != nil && t.MissingSecrets != nil {
			for _, secret := range t.MissingSecrets() {
				out = append(out, fmt.Sprintf("the secret %s of the tool %s is not set", secret, name))
			}
		}
	}
	return out
}

// modelsOfStart returns the models of the main context at the start of a run.
func modelsOfStart(s *engine.RunStarted) []string {
	settings, ok := runner.MainSettings(s)
	if !ok || settings.Provider == "" {
		return nil
	}
	out := []string{settings.Provider + "/" + settings.Model}
	if f := settings.Fallback; f != nil {
		out = append(out, f.Models...)
	}
	return out
}

// addTools adds the tools that a flow names, with what the flows that they run need. Those of a node that takes all tools
// are not among them: a model may use others.
func (w *Weir) addTools(n *requirements, f *flow.Flow) {
	names, _ := runner.ToolNames(&f.Graph)
	for _, name := range names {
		if n.tools[name] {
			continue
		}
		n.tools[name] = true
		if ft := w.toolFlows[name].Flow; ft != nil {
			for _, used := range ft.Dependencies() {
				n.addGraph(&used.Graph)
				n.addContext(used)
				w.addTools(n, used)
			}
		}
	}
}

// requirements lists the providers, secrets, tools and executors that the nodes of flows name. Those that a value
// names during a run are not included.
type requirements struct {
	providers, secrets, tools map[string]bool
	executors                 map[wantedExecutor]bool
}

func newRequirements() *requirements {
	return &requirements{providers: map[string]bool{}, secrets: map[string]bool{}, tools: map[string]bool{}, executors: map[wantedExecutor]bool{}}
}

// wantedExecutor is the executor that a code node needs; each text may be empty.
type wantedExecutor struct{ name, language string }

// String names the executor, as "the executor mine".
func (e wantedExecutor) String() string {
	if e.name != "" {
		return "the executor " + e.name
	}
	return "an executor for " + e.language
}

// isIn reports whether the executor is offered, as a code node looks for it.
func (e wantedExecutor) isIn(set *sandbox.Set) bool {
	x := set.ForLanguage(e.language)
	if e.name != "" {
		x = set.Get(e.name)
	}
	return x != nil && (e.language == "" || x.Language() == e.language)
}

// addExecutor adds what runs the code of a node.
func (n *requirements) addExecutor(x *flow.Node) {
	_, code := x.With["code"]
	_, prompt := x.With["prompt"]
	if x.Type != "action" && x.Type != "decision" || !code && !prompt {
		return
	}
	var e wantedExecutor
	e.name, _ = x.With["executor"].(string)
	e.language, _ = x.With["language"].(string)
	if e.name == "" && e.language == "" {
		e.language = "python"
	}
	n.executors[e] = true
}

var secretName = regexp.MustCompile(`\bsecrets\.([A-Za-z_][A-Za-z0-9_]*)`)

func (n *requirements) addGraph(g *flow.Graph) {
	for _, x := range g.Nodes {
		n.addSettings(x.With)
		n.addExecutor(x)
		if x.Body != nil {
			n.addGraph(x.Body)
		}
	}
}

// addContext adds the providers of the models of a flow.
func (n *requirements) addContext(f *flow.Flow) {
	for _, m := range modelsOf(f) {
		n.addModel(m)
	}
}

// modelsOf lists the models of a flow's main context.
func modelsOf(f *flow.Flow) []string {
	if len(f.Context.Models) > 0 {
		return f.Context.Models
	}
	return []string{f.Context.Model}
}

// addModels adds the providers of a list of fallback models.
func (n *requirements) addModels(list []any) {
	for _, m := range list {
		if s, ok := m.(string); ok {
			n.addModel(s)
		}
	}
}

func (n *requirements) addSettings(v any) {
	switch t := v.(type) {
	case map[string]any:
		for k, x := range t {
			if s, ok := x.(string); ok && k == "model" {
				n.addModel(s)
			}
			if list, ok := x.([]any); ok && k == "models" {
				n.addModels(list)
			}
			n.addSettings(x)
		}
	case []any:
		for _, x := range t {
			n.addSettings(x)
		}
	case string:
		if !strings.Contains(t, "{{") {
			return
		}
		for _, m := range secretName.FindAllStringSubmatch(t, -1) {
			n.secrets[m[1]] = true
		}
	}
}

// addModel adds the provider of a model named PROVIDER/MODEL.
func (n *requirements) addModel(name string) {
	if provider, _, ok := strings.Cut(name, "/"); ok && provider != "" && !strings.Contains(name, "{{") {
		n.providers[provider] = true
	}
}
