package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/sqlite"
)

// planFlow changes a list of its user from what the round has read.
const planFlow = `
weir: 1
name: plan
context: {model: parrot/m}
session: {maxMessages: 6}
inputs: {message: {type: text, required: true}}
state:
  plan: {scope: user, initial: [], onConflict: retryRound}
  rounds: {scope: user, initial: 0, reducer: sum}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
  note: {type: transform, after: answer, with: {state: {plan: "state.plan + [run.inputs.message]", rounds: "1"}}}
outputs: {answer: "{{ answer.text }}"}
`

// openPlanner opens a session of the user in its own Weir.
func openPlanner(t *testing.T, path, thread string) (*weir.Weir, *weir.Session) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"parrot": echoModel{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	f, err := w.Parse("plan.yaml", []byte(planFlow))
	if err != nil {
		t.Fatal(err)
	}
	talk, err := w.Session(t.Context(), f, weir.SessionOptions{User: "u", Thread: thread})
	if err != nil {
		t.Fatal(err)
	}
	return w, talk
}

// TestPlannerProcess is what the other test starts. It sends each message until a round with it has
// completed, and prints its number then.
func TestPlannerProcess(t *testing.T) {
	path, who := os.Getenv("WEIR_SPEAKER_DB"), os.Getenv("WEIR_SPEAKER")
	if path == "" {
		t.Skip("started by the test of values that several processes change")
	}
	from, _ := strconv.Atoi(os.Getenv("WEIR_SPEAKER_FROM"))
	to, _ := strconv.Atoi(os.Getenv("WEIR_SPEAKER_TO"))
	_, s := openPlanner(t, path, os.Getenv("WEIR_SPEAKER_THREAD"))
	for i := from; i < to; i++ {
		text := fmt.Sprintf("%s-%d", who, i)
		for again := 0; ; again++ {
			reply, err := s.Send(t.Context(), text, weir.SendOptions{ID: fmt.Sprint(text, "#", again)})
			if err != nil {
				t.Fatal(err)
			}
			state, err := reply.Wait(t.Context())
			if err != nil || state.Status == engine.Failed && state.Error.Code != engine.CodeStateChanged {
				t.Fatalf("%s: %+v %v", text, state, err)
			}
			if state.Status == engine.Completed {
				break // it was repeated too often otherwise
			}
		}
		fmt.Println("acknowledged", i)
	}
}

// TestKilledProcessesChangeAValueOfTheirUserInTurn has three processes change one value of a user from
// what they have read, each in a session of its own, and kills them anywhere. Each message then
// is in the value once, in the order of its sender, and each round that completed has one.
func TestKilledProcessesChangeAValueOfTheirUserInTurn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	w, _ := openPlanner(t, path, "reader")
	rounds := max(*roundsEach/4, 4)
	speakers := []string{"anna", "bert", "cyd"}
	var wg sync.WaitGroup
	for n, who := range speakers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 9))
			for from := 0; from < rounds; {
				from = runSpeaker(t, "TestPlannerProcess", path, who, "of-"+who, from, rounds, 1+rng.IntN(6))
			}
		})
	}
	wg.Wait()
	values, err := w.UserState(t.Context(), "u")
	if err != nil || len(values) != 2 {
		t.Fatal(values, err)
	}
	next := map[string]int{}
	plan := values[0].Value.([]any)
	for _, text := range plan {
		who, n, _ := strings.Cut(text.(string), "-")
		if n != strconv.Itoa(next[who]) {
			t.Fatalf("%v: after %d messages of %s comes %s", plan, next[who], who, text)
		}
		next[who]++
	}
	total := rounds * len(speakers)
	if len(plan) != total || values[1].Value != int64(total) || values[0].Version != int64(total) {
		t.Errorf("%d messages of %d, %+v", len(plan), total, values)
	}
	completed, repeated := 0, 0
	for _, who := range speakers {
		a, b := countRounds(t, path, "of-"+who)
		completed, repeated = completed+a, repeated+b
	}
	if completed != total {
		t.Errorf("%d rounds completed, and %d messages were sent", completed, total)
	}
	t.Logf("%d rounds lost the race", repeated)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if v, err := audit.Verify(t.Context(), s, audit.Options{}); err != nil || len(v.Findings) != 0 {
		t.Errorf("the record: %+v %v", v.Findings, err)
	}
}

// countRounds counts the rounds of a session that completed, and those that lost the race. No
// message waits.
func countRounds(t *testing.T, path, thread string) (completed, lost int) {
	t.Helper()
	_, s := openPlanner(t, path, thread)
	rounds, err := s.Rounds(t.Context(), "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rounds {
		switch h := &rounds[i].Head; {
		case h.Status == engine.Completed:
			completed++
		case h.Status == engine.Failed && h.Error.Code == engine.CodeStateChanged:
			lost++
		default:
			t.Errorf("round %s is %s", rounds[i].ID, h.Status)
		}
	}
	if info, err := s.Info(t.Context()); err != nil || info.Queued != 0 || info.Holder != "" {
		t.Errorf("%+v %v", info, err)
	}
	return completed, lost
}
