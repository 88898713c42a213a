package flow

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sharedState is shared by the loaders of a flow and of the flows that it uses.
type sharedState struct {
	Source
	cat Catalogue
	// invalidTypes are those whose schema of settings was reported as invalid.
	invalidTypes map[*TypeSpec]bool
	// files are the files that were read, by path; nil for an invalid one, whose problems
	// were reported. open are those being read, outermost first.
	files map[string]*Flow
	kept  map[string]*Flow // by fingerprint
	open  []string
	size  int
}

func newSharedState(s Source, c Catalogue) *sharedState {
	return &sharedState{Source: s, cat: c, invalidTypes: map[*TypeSpec]bool{}, files: map[string]*Flow{}, kept: map[string]*Flow{}}
}

// pin is an entry of `uses`.
type pin struct {
	key  *member
	sum  string
	used bool
}

const pinPattern = "^sha256:[0-9a-f]{64}$"

// readPins reads `uses`.
func (l *loader) readPins(f fields) {
	valid := regexp.MustCompile(pinPattern)
	entries := f.entries("uses", "fingerprints")
	for i := range entries {
		m := &entries[i]
		sum, _ := m.val.asText()
		if !valid.MatchString(sum) {
			l.reportAt(m.val, CodeBadValue, fmt.Sprintf("uses must give the fingerprint of a flow, sha256: and 64 hex digits; got %s", l.describe(m.val)), "")
			continue
		}
		l.pins[m.key] = &pin{key: m, sum: sum}
	}
}

// setUses sets the flows that its nodes named.
func (l *loader) setUses() {
	for _, ref := range slices.Sorted(maps.Keys(l.pins)) {
		if p := l.pins[ref]; !p.used {
			l.reportAtKey(p.key, CodeUnknownReference, fmt.Sprintf("uses pins %s, which no node runs", quote(ref)), "remove the entry")
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(l.used)) {
		if f := l.used[ref]; f != nil && f != l.flow {
			l.flow.Uses = append(l.flow.Uses, Use{ref, f})
		}
	}
}

// read loads a flow and the flows that it uses; nil if there are problems.
func (l *loader) read() *Flow {
	l.open = append(l.open, l.path())
	f := l.load()
	l.open = l.open[:len(l.open)-1]
	if len(l.problems) > 0 || f == nil {
		return nil
	}
	f.cachedFingerprint = f.computeFingerprint()
	return f
}

// path returns the path of the flow's file in the form in which paths are compared.
func (l *loader) path() string { return filepath.Clean(l.file) }

// useFlow finds the flow that a node runs, and sets the node's ports.
func (s *scope) useFlow(it *nodeDraft, with *value) {
	it.ports = Ports{AnyIn: true, AnyOut: true} // nothing is checked for an unknown flow
	v := with.get("flow")
	ref, _ := it.node.With["flow"].(string)
	if v == nil || ref == "" {
		return // the schema requires it
	}
	child := s.l.use(v, ref)
	if child == nil {
		return
	}
	if child == s.l.flow {
		it.node.With["flow"] = Self
	}
	it.node.Uses = child
	it.ports = it.spec.Uses.PortsFor(it.node.With, child)
	if it.spec.Uses.Check != nil {
		s.report(with, it.spec.Uses.Check(it.node.With, child))
	}
}

// nameFlows finds the flows that a node's settings name besides `flow`.
func (s *scope) nameFlows(it *nodeDraft, with *value) {
	for _, r := range it.spec.Flows(it.node.With) {
		path := strings.Split(r.Setting, ".")
		v := locate(with, path)
		if r.Ref == "" || v.kind == kindObject || v.kind == kindList { // other checks report it
			continue
		}
		child := s.l.use(v, r.Ref)
		if child == nil {
			continue
		}
		if child == s.l.flow {
			setAt(it.node.With, path, Self)
		}
		if !slices.Contains(it.node.Runs, child) {
			it.node.Runs = append(it.node.Runs, child)
		}
		if r.Check != nil {
			s.report(with, r.Check(child))
		}
	}
	if it.spec.choosesFlow(it.node) {
		it.ports = it.spec.Uses.PortsForAny(it.node.With, it.node.Runs)
	}
}

// setAt sets an existing text, at a path of keys and indexes.
func setAt(v any, path []string, text string) {
	key, rest := path[0], path[1:]
	switch v := v.(type) {
	case map[string]any:
		if len(rest) > 0 {
			setAt(v[key], rest, text)
		} else {
			v[key] = text
		}
	case []any:
		i, err := strconv.Atoi(key)
		switch {
		case err != nil || i < 0 || i >= len(v):
		case len(rest) > 0:
			setAt(v[i], rest, text)
		default:
			v[i] = text
		}
	}
}

// use finds the flow of a reference; it reports an error once and returns nil.
func (l *loader) use(v *value, ref string) *Flow {
	if ref == Self {
		return l.flow
	}
	if f, known := l.used[ref]; known {
		return f
	}
	var f *Flow
	if p := l.pins[ref]; p != nil {
		p.used = true
		f = l.usePinned(v, ref, p.sum)
	} else {
		f = l.useNamed(v, ref)
	}
	l.used[ref] = f
	return f
}

// usePinned finds the flow with a fingerprint: among those given in Go, the stored ones, or
// in the file that it was read from.
func (l *loader) usePinned(v *value, ref, sum string) *Flow {
	if f := l.kept[sum]; f != nil {
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(l.Flows)) {
		if f := l.Flows[name]; f.Fingerprint() == sum {
			return f
		}
	}
	var f *Flow
	if l.ByFingerprint != nil {
		data, err := l.ByFingerprint(sum)
		if err != nil {
			l.reportAt(v, CodeUnknownFlow, fmt.Sprintf("the flow %s (%s) cannot be loaded: %v", ref, sum, err), "")
			return nil
		}
		f = l.child(v, ref+".json", data)
	} else {
		f = l.useNamed(v, ref)
	}
	if f != nil && f.Fingerprint() != sum {
		l.reportAt(v, CodeFlowChanged, fmt.Sprintf("%s is pinned to %s, but its present fingerprint is %s", ref, sum, f.Fingerprint()),
			"restore the pinned flow, or remove it from uses to accept the present one")
		return nil
	}
	if f != nil {
		l.kept[sum] = f
	}
	return f
}

// useNamed finds the flow by its name in Go, or by its path.
func (l *loader) useNamed(v *value, ref string) *Flow {
	if f := l.Flows[ref]; f != nil {
		return f
	}
	if l.Files == nil {
		l.reportAt(v, CodeUnknownFlow, fmt.Sprintf("the flow %s does not exist: this flow was not read from a file, and may use only itself and flows that are given with it", quote(ref)),
			l.suggest(ref, func() []string { return append(slices.Collect(maps.Keys(l.Flows)), Self) }))
		return nil
	}
	file := filepath.FromSlash(ref)
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(l.file), file)
	}
	file = filepath.Clean(file)
	if file == l.path() {
		return l.flow
	}
	if i := slices.Index(l.open, file); i >= 0 {
		circle := append(slices.Clone(l.open[i:]), file)
		l.reportAt(v, CodeFlowCycle, "flows use each other in a cycle: "+strings.Join(circle, " -> "), "repeat with a loop, or let one flow use itself with flow: self")
		return nil
	}
	if f, known := l.files[file]; known {
		return f
	}
	data, err := l.Files.Read(file)
	if err != nil {
		l.reportUnreadable(v, ref, file, err)
		return nil
	}
	f := l.child(v, file, data)
	l.files[file] = f
	return f
}

// reportUnreadable reports a file that cannot be read.
func (l *loader) reportUnreadable(v *value, ref, file string, err error) {
	if errors.Is(err, errOutside) {
		l.reportAt(v, CodeUnknownFlow, fmt.Sprintf("the flow file %s cannot be used: %v", quote(ref), errOutside),
			"move it below the folder of the flow, or list its folder under flows.folders of the configuration")
		return
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		l.reportAt(v, CodeUnknownFlow, fmt.Sprintf("the flow file %s cannot be read: %v", quote(ref), err), "")
		return
	}
	l.reportAt(v, CodeUnknownFlow, fmt.Sprintf("the flow file %s does not exist (%s)", quote(ref), file), l.suggest(ref, func() []string {
		names := flowFiles(l.Files.List(filepath.Dir(file)))
		folder := path.Dir(filepath.ToSlash(ref))
		for i, n := range names {
			if names[i] = path.Join(folder, n); strings.HasPrefix(ref, "./") {
				names[i] = "./" + names[i]
			}
		}
		return names
	}))
}

// child reads a flow that this one uses and adopts its problems.
func (l *loader) child(v *value, file string, data []byte) *Flow {
	l.size += len(data)
	switch {
	case len(l.open) > MaxUses:
		l.reportAt(v, CodeTooBig, fmt.Sprintf("flows are nested deeper than %d: %s", MaxUses, strings.Join(l.open, " -> ")), "")
		return nil
	case len(l.files)+len(l.kept) >= MaxFlows:
		l.reportAt(v, CodeTooBig, fmt.Sprintf("the flow uses more than %d flows, directly and indirectly", MaxFlows), "")
		return nil
	case l.size > MaxDependencySize:
		l.reportAt(v, CodeTooBig, fmt.Sprintf("the used flows have more than %d bytes together", MaxDependencySize), "")
		return nil
	}
	c := newLoader(l.sharedState, file, data)
	f := c.read()
	for _, p := range c.problems {
		if len(l.problems) <= MaxProblems {
			l.problems = append(l.problems, p)
		}
	}
	return f
}

// OutputType returns the port type of one of the flow's outputs: that of the port it is
// read from, text if it is composed of several, otherwise TypeAny.
func (f *Flow) OutputType(name string) PortType {
	if t, known := f.outTypes[name]; known {
		return t
	}
	return TypeAny
}
