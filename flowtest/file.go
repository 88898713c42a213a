package flowtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
)

// Suffixes returns the extensions of test files.
func Suffixes() []string { return []string{".test.yaml", ".test.yml", ".test.json"} }

// File is a valid test file.
type File struct {
	// Path is the path of the file, FlowPath that of the tested flow.
	Path, FlowPath string
	Flow           *weir.Flow
	Tests          []*Test
}

// Test is one case of a file.
type Test struct {
	Name string
	Pos  flow.Pos
	// Skip is the reason why the test is not run; "" runs it.
	Skip string

	inputs, state map[string]any
	inputsPos     flow.Pos
	user, model   string
	targets       []string
	timeout       time.Duration
	network       bool
	secrets       map[string]string
	mocks         []*mock
	answers       []*answer
	tools         []*toolMock
	script        *script
	expect        expectation
	turns         []*conversationStep // of a conversation; nil for one run
}

// DefaultTimeout limits a test in real time; `timeout` overrides it.
const DefaultTimeout = 30 * time.Second

// Find lists the distinct test files for paths, in order: a file stands for itself, a folder or "folder/..." for the
// files below it. Folders whose names begin with a dot, node_modules and vendor are skipped. A missing path, a file
// that is not a test file, and a folder without tests are errors.
func Find(paths ...string) ([]string, error) {
	var out []string
	for _, p := range paths {
		found, err := find(p)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

func find(path string) ([]string, error) {
	root := path
	if rest, ok := strings.CutSuffix(filepath.ToSlash(path), "..."); ok && (rest == "" || strings.HasSuffix(rest, "/")) {
		root = filepath.Clean("./" + rest)
		if filepath.IsAbs(path) {
			root = filepath.Clean(rest)
		}
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("find tests: %w", err)
	}
	if !info.IsDir() {
		if !isTest(root) {
			return nil, fmt.Errorf("%s is not a test file: their names end in %s", path, strings.Join(Suffixes(), ", "))
		}
		return []string{root}, nil
	}
	var out []string
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor"):
			return filepath.SkipDir
		case !d.IsDir() && isTest(name):
			out = append(out, p)
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("there are no test files (*%s) under %s", strings.Join(Suffixes(), ", *"), root)
	}
	return out, err
}

func isTest(name string) bool {
	return slices.ContainsFunc(Suffixes(), func(s string) bool { return strings.HasSuffix(name, s) })
}

// fileReader reads one test file.
type fileReader struct {
	reader
	path string
	flow *weir.Flow
	cat  *node.Catalogue
	// toolFlows are the flows that the present test offers as tools. Any node may call them.
	toolFlows []*weir.Flow
}

// Load reads a test file and its flow. The error is a *flow.Invalid with all problems of both; a file that cannot be
// read is another error.
func Load(path string, o Options) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tests: %w", err)
	}
	return Parse(path, data, o)
}

// Parse is Load for bytes; other files are resolved relative to path.
func Parse(path string, data []byte, o Options) (*File, error) {
	doc, err := flow.ReadData(path, data)
	if err != nil {
		return nil, err
	}
	cat, err := node.NewCatalogue(append(builtin.Types(), o.Types...)...)
	if err != nil {
		return nil, fmt.Errorf("read tests: %w", err)
	}
	r := &fileReader{path: path, cat: cat}
	f := &File{Path: path}
	keys := []string{"flow", "description", "defaults", "tests"}
	if !r.object(doc, "a test file", keys...) {
		return nil, r.invalid()
	}
	f.FlowPath = r.flowPath(doc)
	if r.flow, err = flow.Load(f.FlowPath, cat, o.FlowFolders...); err != nil {
		r.flowInvalid(doc, f.FlowPath, err)
		r.flow = nil // expectations about its nodes cannot be checked, everything else can
	}
	f.Flow = r.flow
	f.Tests = r.tests(doc)
	if err := r.invalid(); err != nil {
		return nil, err
	}
	return f, nil
}

// flowPath returns the path of the flow: that of the key, or the test file's without ".test".
func (r *fileReader) flowPath(doc *flow.FileValue) string {
	if d := doc.Get("flow"); d != nil {
		return r.relativePath(d, "flow")
	}
	ext := filepath.Ext(r.path)
	return strings.TrimSuffix(strings.TrimSuffix(r.path, ext), ".test") + ext
}

// relativePath reads a path that is relative to the test file.
func (r *fileReader) relativePath(d *flow.FileValue, what string) string {
	p := r.text(d, what)
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(filepath.Dir(r.path), p)
}

// flowInvalid reports an invalid flow.
func (r *fileReader) flowInvalid(doc *flow.FileValue, path string, err error) {
	at := doc
	hint := "name the flow that is tested: flow: PATH, relative to this file"
	if d := doc.Get("flow"); d != nil {
		at, hint = d, "the path is relative to this file"
	}
	if problems, ok := problemsIn(err); ok {
		r.report(at.Pos(), engine.CodeFlowInvalid, fmt.Sprintf("%s is not a valid flow", path), "correct the problems of that file, which are listed")
		r.problems = append(r.problems, problems...)
		return
	}
	r.report(at.Pos(), engine.CodeUnreadable, err.Error(), hint)
}

func (r *fileReader) tests(doc *flow.FileValue) []*Test {
	defaults := doc.Get("defaults")
	if defaults != nil && !r.object(defaults, "defaults", caseKeys(false)...) {
		defaults = nil
	}
	d := doc.Get("tests")
	if d == nil || !d.IsList() || len(d.Items()) == 0 {
		at := doc
		if d != nil {
			at = d
		}
		r.report(at.Pos(), flow.CodeMissingKey, "a test file has a list of tests", "add tests: [{name: ..., expect: ...}]")
		return nil
	}
	var out []*Test
	seen := make(map[string]flow.Pos)
	for _, item := range d.Items() {
		if !r.object(item, "a test", caseKeys(true)...) {
			continue
		}
		t := r.test(testKeys{item, defaults})
		if first, dup := seen[t.Name]; dup && t.Name != "" {
			r.report(t.Pos, flow.CodeDuplicateID, fmt.Sprintf("two tests are named %q; the first at line %d", t.Name, first.Line), "")
		}
		seen[t.Name] = t.Pos
		out = append(out, t)
	}
	return out
}

// caseKeys returns the keys of a test, and of the defaults.
func caseKeys(test bool) []string {
	keys := []string{
		"inputs", "state", "user", "model", "target", "script", "replay", "mocks", "tools", "answers",
		"secrets", "network", "timeout", "expect",
	}
	if test {
		keys = append([]string{"name", "description", "skip", "turns"}, keys...)
	}
	return keys
}

// test reads one test.
func (r *fileReader) test(l testKeys) *Test {
	t := &Test{
		Name: r.text(l.test.Get("name"), "name"), Pos: l.test.Pos(),
		user: r.text(l.get("user"), "user"), model: r.text(l.get("model"), "model"),
		targets: r.texts(l.get("target"), "target"), network: r.flag(l.get("network"), "network"),
		timeout: r.duration(l.get("timeout"), "timeout"),
	}
	if strings.TrimSpace(t.Name) == "" {
		r.report(t.Pos, flow.CodeMissingKey, "a test has a name", "")
	}
	if d := l.test.Get("skip"); d != nil {
		t.Skip = r.skip(d)
	}
	if t.timeout == 0 {
		t.timeout = DefaultTimeout
	}
	t.inputsPos = t.Pos
	if d := l.get("inputs"); d != nil {
		t.inputsPos = d.Pos()
	}
	t.inputs = r.values(l.entries(&r.reader, "inputs", "values by the name of the input"))
	t.state = r.values(l.entries(&r.reader, "state", "values by key"))
	t.secrets = make(map[string]string)
	for _, e := range l.entries(&r.reader, "secrets", "texts by name") {
		t.secrets[e.Key] = r.text(e.Value, "a secret")
	}
	r.checkTargets(l.get("target"), t.targets)
	r.toolFlows = nil
	t.tools = r.toolMocks(l)
	t.mocks = r.mocks(l)
	t.answers = r.answers(l)
	t.script = r.script(l)
	if d := l.test.Get("turns"); d != nil {
		t.turns = r.conversationSteps(l, d)
		return t
	}
	t.expect = r.expectation(l, false)
	return t
}

// skip returns the reason why a test is skipped.
func (r *fileReader) skip(d *flow.FileValue) string {
	if b, ok := d.Value().(bool); ok {
		if b {
			return "skipped"
		}
		return ""
	}
	return r.text(d, "skip")
}

func (r *fileReader) checkTargets(d *flow.FileValue, targets []string) {
	for _, id := range targets {
		if r.flow != nil && r.flow.Node(id) == nil {
			r.report(d.Pos(), flow.CodeUnknownNode, fmt.Sprintf("flow %s has no node %q", r.flow.Name, id), didYouMean(id, r.paths()))
		}
	}
}

// node finds the node at a path, with or without the numbers of iterations; a missing node is reported. If the flow
// is invalid, the result is nil without a report.
func (r *fileReader) node(pos flow.Pos, path string) *flow.Node {
	if r.flow == nil {
		return nil
	}
	n := nodeAt(&r.flow.Graph, recorded.PathWithoutIterations(path), r.toolFlows)
	if n == nil {
		r.report(pos, flow.CodeUnknownNode, fmt.Sprintf("flow %s has no node %q", r.flow.Name, path), didYouMean(recorded.PathWithoutIterations(path), r.paths()))
	}
	return n
}

// nodeAt finds a node by its path: "refine/draft" is in a body, "research>notes" in the flow of a node, or in one of
// the flows that are tools.
func nodeAt(g *flow.Graph, path string, tools []*weir.Flow) *flow.Node {
	outer, inner, child := strings.Cut(path, ">")
	var n *flow.Node
	for id := range strings.SplitSeq(outer, "/") {
		if g == nil {
			return nil
		}
		if n = g.Node(id); n == nil {
			return nil
		}
		g = n.Body
	}
	if !child {
		return n
	}
	for _, f := range slices.Concat(flowsOf(n), tools) {
		if at := nodeAt(&f.Graph, inner, tools); at != nil {
			return at
		}
	}
	return nil
}

// flowsOf returns the flows that a node runs, or may run.
func flowsOf(n *flow.Node) []*flow.Flow {
	if n.Uses != nil {
		return []*flow.Flow{n.Uses}
	}
	return n.Runs
}

// paths returns the paths of all nodes of the flow, without numbers of iterations.
func (r *fileReader) paths() []string { return pathsOf(&r.flow.Graph, "", 0) }

func pathsOf(g *flow.Graph, prefix string, depth int) []string {
	const deepest = 3 // of nested flows, which may be recursive
	var out []string
	for _, n := range g.Nodes {
		out = append(out, prefix+n.ID)
		if n.Body != nil {
			out = append(out, pathsOf(n.Body, prefix+n.ID+"/", depth)...)
		}
		if depth < deepest {
			for _, f := range flowsOf(n) {
				out = append(out, pathsOf(&f.Graph, prefix+n.ID+">", depth+1)...)
			}
		}
	}
	return out
}
