package history_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/trajectory"
)

const secretFlow = `
weir: 1
name: secrets
inputs:
  login: {type: object, required: true}
nodes:
  note: {type: template, in: {login: "{{ run.inputs.login }}"}, with: {text: "Signed in with {{ inputs.login.passcode }}."}}
  survey: {type: survey, in: {note: "{{ note.text }}"}}
outputs: {note: "{{ note.text }}"}
`

// Values under secret names, in each form in which data has them, do not reach what describes data.
func TestNothingUnderASecretNameReachesTheDescriber(t *testing.T) {
	t.Parallel()
	attributes := map[string]any{
		"member": map[string]any{"password": "leaked-a1"}, "number": map[string]any{"pin": int64(77001122)},
		"pairs": []any{map[string]any{"name": "Authorization", "value": "Bearer leaked-b1"}, []any{"X-Api-Key", "leaked-c1"}},
		"json":  `{"accessToken": "leaked-d1"}`, "cut": `{"items": [{"secret": "leaked-e1", "next": "x`,
		"text": "GITHUB_TOKEN=leaked-f1\nAuthorization: Bearer leaked-g1\n",
		// The same values where no name marks them.
		"echo": "leaked-a1 77001122 leaked-b1 leaked-c1 leaked-d1 leaked-e1 leaked-f1 leaked-g1 leaked-h1",
	}
	survey := weir.Func("survey", func(ctx weir.Ctx, in struct{ Note string }) (struct{ ID string }, error) {
		g := ctx.Trajectory()
		plan, err := g.Add(trajectory.NewNode{Type: trajectory.State, Name: "plan", Attributes: map[string]any{trajectory.AttrText: in.Note}})
		if err != nil {
			return struct{ ID string }{}, err
		}
		id, err := g.Add(trajectory.NewNode{
			Type: trajectory.File, Name: "notes.txt", After: []trajectory.ID{plan}, Relation: trajectory.RefersTo, Attributes: attributes,
		})
		return struct{ ID string }{string(id)}, err
	})
	var mu sync.Mutex
	var subjects []string
	w := weirkit.Open(t, weir.Options{Types: []weir.Type{survey}, Trajectories: &weir.TrajectoryOptions{
		Storage: memoryTables(),
		Describer: &runner.DescriptionOptions{Describe: func(_ context.Context, _, subject string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			subjects = append(subjects, subject)
			return "Notes.", nil
		}},
	}})
	run, err := w.Start(t.Context(), weirkit.Parse(t, w, secretFlow), weir.Start{
		ID: "r1", Inputs: map[string]any{"login": map[string]any{"passcode": "leaked-h1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range run.Events(t.Context()) { // ends after the descriptions
		if err != nil {
			t.Fatal(err)
		}
	}
	if r := weirkit.Wait(t, run); r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error)
	}
	mu.Lock()
	defer mu.Unlock()
	all := fmt.Sprint(subjects)
	if !strings.Contains(all, "notes.txt") || !strings.Contains(all, "[hidden]") || !strings.Contains(all, "X-Api-Key") {
		t.Fatalf("the describer was told %s", all)
	}
	for _, secret := range []string{"leaked", "77001122"} {
		if at := strings.Index(all, secret); at >= 0 {
			t.Errorf("the describer was told %q", all[max(0, at-60):min(len(all), at+60)])
		}
	}
}
