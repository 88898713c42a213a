package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// readFlow reads the whole document into l.flow.
func (l *loader) readFlow(doc *value) {
	f := fields{l, doc, "a flow"}
	f.rejectUnknown(FlowKeys()...)
	if !l.version(doc) {
		return
	}
	l.name(doc, l.settings(doc).Name)
	l.readPins(f)
	s := l.readGraph(doc, nil, nil)
	l.flow.Graph = s.graph
	l.flow.outTypes = s.outputTypes(f)
	l.setUses()
}

// settings reads everything into l.flow except for the graph and other flows.
func (l *loader) settings(doc *value) *Flow {
	f := fields{l, doc, "a flow"}
	l.flow = &Flow{Name: f.text("name"), Description: f.text("description"), File: l.file}
	if v := doc.get("context"); v != nil && v.kind != kindNull {
		l.flow.Context = l.contextSettings(v)
	}
	if v := doc.get("session"); v != nil {
		l.flow.Session = l.sessions(v)
	}
	if v := doc.get("budget"); v != nil {
		l.flow.Spend = l.spend(v)
	}
	if v := doc.get("timeout"); v != nil && v.kind != kindNull {
		before := len(l.problems)
		if l.flow.Timeout = l.duration(v, "timeout"); l.flow.Timeout == 0 && len(l.problems) == before {
			l.reportAt(v, CodeBadDuration, "timeout of a flow must be above 0", "write 30s, 5m or 1h30m, or remove it")
		}
	}
	for _, m := range f.entries("inputs", "declared inputs") {
		l.input(&m)
	}
	for _, m := range f.entries("state", "declared keys") {
		l.stateKey(&m)
	}
	slices.SortFunc(l.flow.Inputs, func(a, b Input) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(l.flow.State, func(a, b StateKey) int { return cmp.Compare(a.Name, b.Name) })
	return l.flow
}

// version checks the `weir:` key; false ends the reading.
func (l *loader) version(doc *value) bool {
	v := doc.get("weir")
	if v == nil {
		l.reportAt(doc, CodeMissingKey, "the key weir is missing; expected weir: 1", "")
		return true
	}
	n, ok := v.scalar.(int64)
	switch {
	case v.kind != kindInt || !ok || n < 1:
		l.reportAt(v, CodeBadVersion, fmt.Sprintf("weir must be the version of the file, 1; got %s", l.describe(v)), "write weir: 1")
	case n > Version:
		l.reportAt(v, CodeNewerVersion, fmt.Sprintf("the file has version %d of flow files; this weir reads version %d", n, Version), "upgrade weir")
		return false
	}
	return true
}

func (l *loader) name(doc *value, name string) {
	v := doc.get("name")
	switch {
	case v == nil || v.kind == kindNull:
		l.reportAt(doc, CodeMissingKey, "the key name is missing; it identifies the flow in sessions and listings", "")
	case name == "" && v.kind == kindText, len(name) > MaxName, strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		l.reportAt(v, CodeBadID, fmt.Sprintf("the name of a flow must have 1 to %d bytes and no control characters", MaxName), "")
	}
}

// spend reads a spending budget.
func (l *loader) spend(v *value) SpendLimits {
	f, ok := l.object(v, "budget")
	if !ok {
		return SpendLimits{}
	}
	f.rejectUnknown("maxTokens", "maxCost", "maxCalls", "onLimit")
	s := SpendLimits{MaxTokens: f.count("maxTokens", maxSpendTokens), MaxCalls: f.count("maxCalls", maxSpendCalls), OnLimit: f.choice("onLimit", "fail", "pause", "branch")}
	if c := v.get("maxCost"); c != nil {
		switch n := c.scalar.(type) {
		case int64:
			s.MaxCost = float64(n)
		case float64:
			s.MaxCost = n
		}
		if s.MaxCost <= 0 || s.MaxCost > 1e6 {
			l.reportAt(c, CodeBadValue, fmt.Sprintf("maxCost must be in US dollars, above 0 and at most 1,000,000; got %s", l.describe(c)), "")
			s.MaxCost = 0
		}
	}
	if s.MaxTokens == 0 && s.MaxCost == 0 && s.MaxCalls == 0 {
		l.reportAt(v, CodeBadValue, "a budget must have at least one of maxTokens, maxCost and maxCalls", "to limit the input of one call use context.budget: {window, reserve}")
	}
	return s
}

// strategies lists the values of View.Strategy.
func strategies() []string { return []string{"window", "summary", "all"} }

func (l *loader) view(v *value) View {
	f, ok := l.object(v, "view")
	if !ok {
		return View{}
	}
	f.rejectUnknown("strategy", "low", "keepResults", "maxResult", "summary", "model")
	out := View{
		Low: f.count("low", 100), MaxResult: f.count("maxResult", maxViewTokens),
		Summary: f.count("summary", maxViewTokens), Model: f.text("model"),
	}
	out.Strategy = f.choice("strategy", strategies()...)
	if out.Strategy == "" {
		l.checkViewKeys(v, DefaultStrategy, ", which is the default")
	} else {
		l.checkViewKeys(v, out.Strategy, "")
	}
	if k := v.get("keepResults"); k != nil {
		n, ok := k.scalar.(int64)
		if !ok || n == 0 || n < -1 || n > maxKeepResults {
			l.reportAt(k, CodeBadValue, fmt.Sprintf("keepResults must be a whole number from 1, or -1 to clear none; got %s", l.describe(k)), "")
		}
		out.KeepResults = int(n)
	}
	return out
}

// DefaultStrategy is the strategy of a view that names none and has no context around it.
const DefaultStrategy = "window"

// UnreadByStrategy lists the keys of a view that its strategy does not read. A view that
// names no strategy has the one of the context around it.
func UnreadByStrategy(strategy string) []string {
	switch strategy {
	case "all":
		return []string{"low", "keepResults", "maxResult", "summary", "model"}
	case "window":
		return []string{"summary", "model"}
	}
	return nil
}

// checkViewKeys refuses keys of a view that its strategy does not read. why says where the
// strategy is from, "" if the view names it.
func (l *loader) checkViewKeys(v *value, strategy, why string) {
	for _, key := range UnreadByStrategy(strategy) {
		if k := v.get(key); k != nil && !l.AlreadyValid {
			l.reportAt(k, CodeBadValue, fmt.Sprintf("view.%s has no effect with strategy: %s%s", key, strategy, why), "remove it, or choose another strategy")
		}
	}
}

func (l *loader) temperature(v *value) *float64 {
	var t float64
	switch n := v.scalar.(type) {
	case int64:
		t = float64(n)
	case float64:
		t = n
	default:
		t = -1
	}
	if t < 0 || t > 2 {
		l.reportAt(v, CodeBadValue, fmt.Sprintf("temperature must be a number from 0 to 2; got %s", l.describe(v)), "")
		return nil
	}
	return &t
}

func (l *loader) input(m *member) {
	if !l.portName(m, "an input") {
		return
	}
	l.inputs[m.key] = true
	f, ok := l.object(m.val, "an input")
	if !ok {
		return
	}
	f.rejectUnknown("type", "required", "default", "description", "schema")
	in := Input{
		Name: m.key, Required: f.flag("required"), Description: f.text("description"),
		Type: PortType(f.choice("type", portTypes()...)), Schema: f.schema("schema"), Pos: l.pos(int(m.line), int(m.col)),
	}
	if in.Type == "" {
		in.Type = TypeAny
	}
	if d := m.val.get("default"); d != nil {
		in.Default = d.any()
		if d.kind != kindNull && !fits(in.Default, in.Type) {
			l.reportAt(d, CodeTypeMismatch, fmt.Sprintf("the default of %s is %s; expected %s", m.key, d.kind, in.Type), "")
		}
	}
	l.flow.Inputs = append(l.flow.Inputs, in)
}

func (l *loader) stateKey(m *member) {
	f, ok := l.object(m.val, "a declared key of the state")
	if m.key == "" {
		l.reportAtKey(m, CodeBadID, "a state key must have a name", "")
	}
	if !ok {
		return
	}
	f.rejectUnknown("scope", "reducer", "onConflict", "initial", "schema")
	k := StateKey{Name: m.key, Schema: f.schema("schema"), Pos: l.pos(int(m.line), int(m.col))}
	if k.Scope = f.choice("scope", ScopeRun, ScopeSession, ScopeUser); k.Scope == ScopeRun {
		k.Scope = ""
	}
	if v := m.val.get("initial"); v != nil {
		k.Initial = v.any()
	}
	if v := m.val.get("reducer"); v != nil {
		k.Reducer = l.reducer(v)
	}
	l.conflicts(m, f, &k)
	l.state[m.key] = k.Reducer
	l.flow.State = append(l.flow.State, k)
}

// conflicts reads onConflict, which a key with the scope user needs unless its reducer combines
// the writes of several runs.
func (l *loader) conflicts(m *member, f fields, k *StateKey) {
	k.OnConflict = f.choice("onConflict", ConflictFail, ConflictRetryRound)
	switch v := f.v.get("onConflict"); {
	case v != nil && k.Scope != ScopeUser:
		l.reportAt(v, CodeBadValue, fmt.Sprintf("state key %s has onConflict, and no other run writes it", quote(m.key)), "remove onConflict, or add scope: user")
	case v == nil && k.Scope == ScopeUser && !k.Reducer.Commutes():
		l.reportAtKey(m, CodeBadReducer, fmt.Sprintf("state key %s has the scope user, which several runs write at the same time, and no reducer that combines their writes", quote(m.key)),
			"add reducer: sum, min, max, append or merge, or onConflict: fail or retryRound, or use scope: session")
	}
}

func (l *loader) reducer(v *value) Reducer {
	all := []string{"append", "max", "merge", "min", "replace", "sum"}
	s, _ := v.asText()
	if !slices.Contains(all, s) {
		l.reportAt(v, CodeBadReducer, fmt.Sprintf("a reducer must be one of %s; got %s", strings.Join(all, ", "), l.describe(v)),
			l.nearest(s, func() []string { return all }))
		return ReduceNone
	}
	return Reducer(s)
}
