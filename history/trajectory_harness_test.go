package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

// commandModel is a model that does what the newest message of a user says: each word
// with a ! is an answer, which calls the tools that stand there with a + between
// them; !refuse fails, !flaky fails the first time, and the last answer calls
// nothing.
type commandModel struct {
	mu   sync.Mutex
	seen map[string]bool
	// began is called for each call of the model, if it is not nil.
	began chan<- string
}

func (p *commandModel) Generate(_ context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	var words []string
	said, done := "", 0
	for _, m := range r.Messages {
		switch {
		case m.Role == convo.User:
			said, done, words = m.Text, 0, nil
			for w := range strings.FieldsSeq(m.Text) {
				if strings.HasPrefix(w, "!") {
					words = append(words, w[1:])
				}
			}
		case m.Role == convo.Assistant && len(m.Calls) > 0:
			done++
		}
	}
	if p.began != nil {
		p.began <- said
	}
	m := convo.Message{Role: convo.Assistant, Text: fmt.Sprintf("ok after %d", done)}
	for _, t := range words[min(done, len(words)):] {
		switch {
		case t == "refuse" || t == "flaky" && p.first(said):
			return nil, &llm.Error{Code: "model_filtered", Message: "I cannot."}
		case t == "flaky":
			continue
		}
		for i, name := range strings.Split(t, "+") {
			m.Calls = append(m.Calls, convo.Call{ID: fmt.Sprint("c", done, ".", i), Name: name, Arguments: fmt.Sprintf(`{"at":"%d%d"}`, done, i)})
		}
		m.Text = "let me see"
		break
	}
	return &llm.Response{Message: m, Usage: llm.Usage{Input: 10, Output: 2}}, nil
}

func (p *commandModel) first(said string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[said] {
		return false
	}
	p.seen[said] = true
	return true
}

// commandTools returns what the puppet calls.
func commandTools() []*weir.Tool {
	object := map[string]any{"type": "object"}
	return []*weir.Tool{
		{Name: "look", Description: "Looks at a table.", Parameters: object, Call: func(_ context.Context, c tool.Call) (string, error) {
			name := "table" + c.Arguments[len(c.Arguments)-4:len(c.Arguments)-2]
			return "12 rows", c.Declare(trajectory.Artifact{Type: trajectory.Table, Name: name, Columns: []string{"id", "price"}})
		}},
		{Name: "write", Description: "Writes a file.", Parameters: object, Approve: tool.ApproveAlways, Call: func(_ context.Context, c tool.Call) (string, error) {
			return "written", c.Declare(trajectory.Artifact{Type: trajectory.File, Name: "out.txt", Description: "What was written."})
		}},
		{Name: "wrong", Parameters: object, Call: func(context.Context, tool.Call) (string, error) { return "", errors.New("it is broken") }},
	}
}

// work types: job does effects, declares and fails as its settings say, hand records its
// work by hand, pure may be cached.
func workTypes() []weir.Type {
	type out struct{ Text string }
	type in struct {
		X     any `weir:"x,optional"`
		Y     any `weir:"y,optional"`
		Later any `weir:"later,lazy,optional"`
	}
	type settings struct {
		Fails   int    `weir:"fails,optional"`
		Effects int    `weir:"effects,optional"`
		Declare string `weir:"declare,optional"`
		Pull    bool   `weir:"pull,optional"`
		Ask     bool   `weir:"ask,optional"`
	}
	job := weir.FuncWith("job", func(ctx weir.Ctx, _ in, s settings) (out, error) {
		if s.Pull {
			if _, ok, err := ctx.Pull("later"); err != nil || !ok {
				return out{Text: "nothing"}, err
			}
		}
		if err := doWork(ctx, s.Effects, s.Declare); err != nil {
			return out{}, err
		}
		if s.Ask {
			if _, given, err := ctx.Wait("ok", engine.Interrupt{Kind: engine.AwaitInput, Prompt: "Go on?"}); err != nil || !given {
				return out{}, err
			}
		}
		if ctx.Info().Attempt <= s.Fails {
			return out{}, fmt.Errorf("attempt %d fails", ctx.Info().Attempt)
		}
		return out{Text: "done"}, nil
	})
	pure := weir.Func("pure", func(_ weir.Ctx, _ in) (out, error) { return out{Text: "pure"}, nil }).Pure()
	return []weir.Type{job, pure, recordingType()}
}

// doWork does effects, and declares what is named.
func doWork(ctx weir.Ctx, effects int, name string) error {
	for i := range effects {
		if _, err := ctx.Do(node.Effect{Name: "work", Do: func(context.Context, string) (node.Outcome, error) {
			return node.Outcome{Value: int64(i)}, nil
		}}); err != nil {
			return err
		}
	}
	if name == "" {
		return nil
	}
	return ctx.Declare(trajectory.Artifact{Type: trajectory.Knowledge, Name: name})
}

// recordingType records its work by hand.
func recordingType() weir.Type {
	type out struct{ Text string }
	type in struct {
		X any `weir:"x,optional"`
	}
	type settings struct {
		Ask   bool `weir:"ask,optional"`
		Point bool `weir:"point,optional"`
	}
	return weir.FuncWith("hand", func(ctx weir.Ctx, _ in, s settings) (out, error) {
		g := ctx.Trajectory()
		plan, err := g.Add(trajectory.NewNode{Type: trajectory.State, Name: "plan", Attributes: map[string]any{trajectory.AttrText: "Look at it."}})
		if err != nil {
			return out{}, err
		}
		file, err := g.Add(trajectory.NewNode{Type: trajectory.File, Name: ctx.Info().Path, After: []trajectory.ID{plan}, Relation: trajectory.RefersTo})
		if err != nil {
			return out{}, err
		}
		if s.Ask {
			if _, given, err := ctx.Wait("ok", engine.Interrupt{Kind: engine.AwaitInput, Prompt: "Go on?"}); err != nil || !given {
				return out{}, err
			}
		}
		act, err := g.Add(trajectory.NewNode{Type: trajectory.Action, Name: "act"})
		if err != nil {
			return out{}, err
		}
		if _, err := g.Add(trajectory.NewNode{Type: trajectory.Query, Name: "another"}); !errors.Is(err, trajectory.ErrSecondQuery) {
			return out{}, fmt.Errorf("a second query was made: %w", err)
		}
		text := "A file."
		if err := errors.Join(g.Edit(file, trajectory.Edit{Description: &text}), g.Link(act, file, "uses")); err != nil {
			return out{}, err
		}
		if s.Point {
			err = g.Point(plan, act)
		}
		return out{Text: "by hand"}, err
	})
}

// helper is a flow that models call as a tool.
const helperFlow = `
weir: 1
name: helper
description: Helps.
context: {model: puppet/m}
inputs: {at: {type: text}}
nodes:
  ask: {type: agent, in: {message: "help !look", tools: [look]}}
  so: {type: llmRequest, in: {message: "so {{ ask.text }}"}}
outputs: {text: "{{ so.text }}"}
`

// trajectoryHarness is where runs are had whose trajectories are kept: one store and one storage,
// on which processes come and go.
type trajectoryHarness struct {
	store      weir.Store // not closed with a Weir
	kept       trajectory.Storage
	puppet     *commandModel
	types      []weir.Type // besides the usual ones
	tools      []*weir.Tool
	w          *weir.Weir
	hasUnsaved bool // a process has died with what it had to store
}

func newTrajectoryHarness(t *testing.T, path string) *trajectoryHarness {
	t.Helper()
	s := &trajectoryHarness{store: memory.New(), kept: memoryTables(), puppet: &commandModel{seen: map[string]bool{}}}
	if path != "" {
		s.store = openFile(t, path)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.close(), s.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// open lets a process begin, after the one before it has ended.
func (s *trajectoryHarness) open() error {
	if err := s.close(); err != nil {
		return err
	}
	return s.openWith(s.store, s.kept)
}

func (s *trajectoryHarness) close() error {
	if s.w == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	err := s.w.Close(ctx)
	s.w = nil
	return err
}

func (s *trajectoryHarness) openWith(st weir.Store, storage trajectory.Storage) error {
	parsing, err := weir.Open(weir.Options{Tools: commandTools()})
	if err != nil {
		return err
	}
	defer parsing.Close(context.Background()) //nolint:errcheck // it has parsed a flow and no more
	help, err := parsing.Parse("helper.yaml", []byte(helperFlow))
	if err != nil {
		return err
	}
	s.w, err = weir.Open(weir.Options{
		Store: unclosedStore{st}, Types: append(workTypes(), s.types...), Tools: append(commandTools(), s.tools...),
		Flows: []weir.FlowTool{{Flow: help}}, Providers: map[string]weir.Provider{"puppet": s.puppet},
		Trajectories: &weir.TrajectoryOptions{Storage: storage},
	})
	return err
}

// reply returns what a person answers to an interrupt.
func reply(i engine.Interrupt) any {
	switch i.Kind {
	case engine.AwaitApproval:
		return "approve"
	case engine.AwaitBreak:
		return nil
	case engine.AwaitBudget:
		return map[string]any{"maxCalls": 10}
	case engine.AwaitEffect:
		return "retry"
	case engine.AwaitInput, engine.AwaitTimer, engine.AwaitEvent, engine.AwaitChild:
	}
	return "yes"
}

// runThrough sees a run to its end and answers what it asks; again says before each
// answer whether the process ends and another continues.
func (s *trajectoryHarness) runThrough(ctx context.Context, run *weir.Run, again func() bool) (weir.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for range 200 {
		res, err := run.Wait(ctx)
		if err != nil || res.Status != engine.Paused {
			return res, err
		}
		if again != nil && again() {
			if err := s.open(); err != nil {
				return res, err
			}
			if err := compareStored(ctx, s.w, s.kept, "", run.ID); err != nil && !s.hasUnsaved {
				return res, fmt.Errorf("while it waits: %w", err)
			}
		}
		if run, err = s.w.Answer(ctx, run.ID, res.Interrupts[0].ID, reply(res.Interrupts[0]), "ann"); err != nil {
			return res, fmt.Errorf("answer %+v: %w", res.Interrupts[0], err)
		}
	}
	return weir.Result{}, errors.New("it never ends")
}

// commitLimit ends a process after so many commits: of what comes then nothing is kept, of
// runs or trajectories.
type commitLimit struct{ left atomic.Int64 }

func (d *commitLimit) spend() error {
	if d.left.Add(-1) < 0 {
		return weirkit.ErrDied
	}
	return nil
}

type limitedStore struct {
	weir.Store
	doom *commitLimit
}

func (s limitedStore) Append(ctx context.Context, appends []store.Append) []error {
	if err := s.doom.spend(); err != nil {
		return slices.Repeat([]error{err}, len(appends))
	}
	return s.Store.Append(ctx, appends)
}

type limitedStorage struct {
	trajectory.Storage
	doom *commitLimit
}

func (s limitedStorage) Save(ctx context.Context, r trajectory.Record) error {
	if s.doom.left.Load() <= 0 {
		return weirkit.ErrDied
	}
	return s.Storage.Save(ctx, r)
}

// runKilled has a process that dies after so many commits begin a run, and another go
// on with it.
func (s *trajectoryHarness) runKilled(f *weir.Flow, id string, commits int, again func() bool) (weir.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	d := &commitLimit{}
	d.left.Store(int64(commits))
	if err := s.close(); err != nil {
		return weir.Result{}, err
	}
	if err := s.openWith(limitedStore{s.store, d}, limitedStorage{s.kept, d}); err != nil {
		return weir.Result{}, err
	}
	run, err := s.w.Start(ctx, f, weir.Start{ID: id})
	if err == nil {
		_, _ = run.Wait(ctx)
	}
	_ = s.w.Close(ctx) // it is dead
	s.w = nil
	if err := s.open(); err != nil {
		return weir.Result{}, err
	}
	if run, err = s.w.Start(ctx, f, weir.Start{ID: id}); err != nil {
		return weir.Result{}, err
	}
	s.hasUnsaved = true
	res, err := s.runThrough(ctx, run, again)
	if s.hasUnsaved = false; err == nil {
		err = s.w.KeepTrajectory(ctx, id) // of what had ended before it could be stored
	}
	return res, err
}
