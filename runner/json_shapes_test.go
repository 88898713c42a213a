package runner_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// TestLoggedTypesHaveStableJSON is the list of the shapes; a change of one is a
// change of the API.
func TestLoggedTypesHaveStableJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	result := weir.Result{
		Run: "r", Status: engine.Paused, Outputs: engine.Values{{Name: "b", Value: int64(1)}, {Name: "a", Value: "x"}},
		Interrupts: []engine.Interrupt{{ID: "ask:ask#1", Kind: engine.AwaitInput, Prompt: "Well?"}},
		Usage:      engine.Usage{Calls: 1, Input: 2}, Error: &engine.Error{Code: "c", Message: "m"},
	}
	const resultJSON = `"run":"r","status":"paused","outputs":{"b":1,"a":"x"},` +
		`"interrupts":[{"id":"ask:ask#1","kind":"input","prompt":"Well?"}],"usage":{"calls":1,"input":2},"error":{"code":"c","message":"m"}`
	piece := func(c llm.Chunk) weir.Item {
		return weir.Item{Run: "r", PathPrefix: "sub>", At: 7, Path: "a", Attempt: 2, Effect: "a/model#1", Chunk: &c}
	}
	const live = `{"run":"r","above":"sub>","at":7,"type":`
	const of = `"node":"a","attempt":2,"effect":"a/model#1"`
	with := func(it weir.Item, change func(*weir.Item)) weir.Item {
		change(&it)
		return it
	}
	for name, tt := range map[string]struct {
		v    any
		want string
	}{
		"a status":          {engine.NotNeeded, `"not_needed"`},
		"an unended result": {weir.Result{}, `{"run":"","status":"pending","outputs":{},"usage":{}}`},
		"a result":          {result, `{` + resultJSON + `}`},
		"an event":          {weir.Item{Run: "r", Number: 3, At: 7, Event: &engine.NodeStarted{Path: "a", Attempt: 1}}, `{"run":"r","number":3,"at":7,"type":"node.started","node":"a","attempt":1}`},
		"an event below":    {weir.Item{Run: "r", PathPrefix: "sub>", Number: 3, At: 7, Event: &engine.RunCancelled{}}, `{"run":"r","number":3,"at":7,"above":"sub>","type":"run.cancelled"}`},
		"a report of a child": {
			weir.Item{Run: "r", Number: 3, At: 7, Event: &engine.ChildReported{ID: "a:child#1", Run: "r.1", Status: engine.Running}},
			`{"run":"r","number":3,"at":7,"type":"child.reported","interrupt":"a:child#1","status":"running","child":"r.1"}`,
		},
		"a step": {
			weir.Item{Run: "r", Number: 3, At: 7, Event: &engine.StepRecorded{Path: "a", Step: engine.Step{Number: 2, Name: "plan", Status: "ok"}}},
			`{"run":"r","number":3,"at":7,"type":"step.recorded","node":"a","step":2,"name":"plan","status":"ok"}`,
		},
		"text":                {piece(llm.Chunk{Text: "hi"}), live + `"model.text",` + of + `,"text":"hi"}`},
		"interim text":        {with(piece(llm.Chunk{Text: "hi"}), func(it *weir.Item) { it.Interim = true }), live + `"model.text",` + of + `,"interim":true,"text":"hi"}`},
		"reasoning":           {piece(llm.Chunk{Reasoning: "hm"}), live + `"model.reasoning",` + of + `,"text":"hm"}`},
		"a call":              {piece(llm.Chunk{Call: &convo.Call{ID: "1", Name: "look", Arguments: "{}"}}), live + `"model.call",` + of + `,"call":{"id":"1","name":"look","arguments":"{}"}}`},
		"usage":               {piece(llm.Chunk{Usage: &llm.Usage{Input: 3}}), live + `"model.usage",` + of + `,"usage":{"input":3}}`},
		"a wait":              {piece(llm.Chunk{Wait: time.Second, WaitReason: "limit", WaitDetail: "p/m"}), live + `"model.waiting",` + of + `,"ms":1000,"why":"limit","about":"p/m"}`},
		"stdout":              {piece(llm.Chunk{Stdout: "out\n"}), live + `"code.output",` + of + `,"text":"out\n","stream":"stdout"}`},
		"stderr":              {piece(llm.Chunk{Stderr: "err\n"}), live + `"code.output",` + of + `,"text":"err\n","stream":"stderr"}`},
		"a snapshot":          {with(piece(llm.Chunk{Text: "hi", Stdout: "o"}), func(it *weir.Item) { it.Snapshot = true }), live + `"live.snapshot",` + of + `,"text":"hi","stdout":"o"}`},
		"a retraction":        {with(piece(llm.Chunk{}), func(it *weir.Item) { it.Chunk, it.Retracted = nil, true }), live + `"live.retracted",` + of + `}`},
		"words are no answer": {with(piece(llm.Chunk{}), func(it *weir.Item) { it.Chunk, it.Interim = nil, true }), live + `"live.interim",` + of + `,"interim":true}`},
		"a gap":               {weir.Item{Run: "r", At: 7, Gap: true}, `{"run":"r","at":7,"type":"live.gap"}`},
		"a turn": {
			session.ReplyState{Result: result, Session: "s", Round: 2, Message: "m", Text: "t", Started: at, Took: time.Second},
			`{` + resultJSON + `,"session":"s","round":2,"message":"m","text":"t","messages":null,"spent":{},"began":"2026-01-02T03:04:05Z","took":1000000000}`,
		},
		"a run of a listing": {
			store.Run{ID: "r", Flow: "f", Fingerprint: "p", Head: store.Head{Status: engine.Failed}, Created: at, Updated: at, Commits: 2, Events: 3},
			`{"id":"r","flow":"f","fingerprint":"p","head":{"status":"failed","usage":{}},"created":"2026-01-02T03:04:05Z","updated":"2026-01-02T03:04:05Z","commits":2,"events":3}`,
		},
		"a session": {
			store.Session{ID: "s", Flow: "f", Thread: "t", Created: at, Updated: at, Rounds: 1, Length: 2, Carryover: []byte("private")},
			`{"id":"s","flow":"f","thread":"t","created":"2026-01-02T03:04:05Z","updated":"2026-01-02T03:04:05Z","rounds":1,"length":2,"usage":{}}`,
		},
		"a message of a session": {
			store.SessionMessage{Position: 1, Run: "r", Round: 1, Status: engine.Completed, At: at, Message: convo.Message{ID: "i", Role: convo.User, Text: "hi"}},
			`{"position":1,"run":"r","round":1,"status":"completed","at":"2026-01-02T03:04:05Z","message":{"id":"i","role":"user","text":"hi"}}`,
		},
	} {
		var got strings.Builder
		e := json.NewEncoder(&got)
		e.SetEscapeHTML(false) // json.Marshal writes ">" as "\u003e"
		if err := e.Encode(tt.v); err != nil || got.String() != tt.want+"\n" {
			t.Errorf("%s:\n got %s %v\nwant %s", name, got.String(), err, tt.want)
		}
	}
}

func TestStatusAndResultDecodeFromNumbersToo(t *testing.T) {
	t.Parallel()
	for s := engine.Pending; s <= engine.NotNeeded; s++ {
		b, err := json.Marshal(map[engine.Status]engine.Status{s: s})
		var back map[engine.Status]engine.Status
		if err != nil || json.Unmarshal(b, &back) != nil || back[s] != s || len(back) != 1 {
			t.Errorf("%s is read back from %s as %v, %v", s, b, back, err)
		}
	}
	var r weir.Result
	if err := json.Unmarshal([]byte(`{"run":"r","status":5,"outputs":{"b":1,"a":"x"}}`), &r); err != nil || r.Status != engine.Failed || len(r.Outputs) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{`"done"`, `9`, `300`, `-1`, `null`, `{}`, `true`} {
		var s engine.Status
		if err := json.Unmarshal([]byte(bad), &s); err == nil && bad != "null" {
			t.Errorf("%s is read as %s", bad, s)
		}
	}
	if b, err := json.Marshal(engine.Status(200)); err == nil {
		t.Errorf("a status that is none is written as %s", b)
	}
}
