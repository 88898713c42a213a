package proof

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

var roundsEach = flag.Int("sessions.n", 50, "rounds of each process in the test of sessions")

const echoFlow = `
weir: 1
name: talk
context: {model: parrot/m}
session: {maxMessages: 6}
inputs: {message: {type: text, required: true}}
state:
  counted: {scope: session, initial: 0, reducer: sum}
  heard: {scope: session, reducer: append}
  userCount: {scope: user, initial: 0, reducer: sum}
  userHeard: {scope: user, reducer: append}
  userLongest: {scope: user, initial: 0, reducer: max}
nodes:
  count: {type: transform, with: {state: {counted: "1", heard: run.inputs.message, userCount: "1", userHeard: run.inputs.message, userLongest: size(run.inputs.message)}}}
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {answer: "{{ answer.text }}"}
`

// echoModel answers with what was said last.
type echoModel struct{}

func (echoModel) Generate(_ context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	if err := convo.Validate(r.Messages); err != nil {
		return nil, err
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "re " + r.Messages[len(r.Messages)-1].Text}}, nil
}

func openSession(t *testing.T, path string) *weir.Session {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return openSessionOn(t, s)
}

func openSessionOn(t *testing.T, s weir.Store) *weir.Session {
	t.Helper()
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"parrot": echoModel{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	f, err := w.Parse("talk.yaml", []byte(echoFlow))
	if err != nil {
		t.Fatal(err)
	}
	talk, err := w.Session(t.Context(), f, weir.SessionOptions{User: "u", Thread: cmp.Or(os.Getenv("WEIR_SPEAKER_THREAD"), "t")})
	if err != nil {
		t.Fatal(err)
	}
	return talk
}

// TestSpeakerProcess is what the other tests start: it says messages
// in a session and prints each that was acknowledged.
func TestSpeakerProcess(t *testing.T) {
	path, who := os.Getenv("WEIR_SPEAKER_DB"), os.Getenv("WEIR_SPEAKER")
	if path == "" {
		t.Skip("started by the tests of sessions")
	}
	from, _ := strconv.Atoi(os.Getenv("WEIR_SPEAKER_FROM"))
	to, _ := strconv.Atoi(os.Getenv("WEIR_SPEAKER_TO"))
	s := openSession(t, path)
	for i := from; i < to; i++ {
		text := fmt.Sprintf("%s-%d", who, i)
		turn, err := s.Send(t.Context(), text, weir.SendOptions{ID: text})
		if err != nil {
			t.Fatal(err)
		}
		state, err := turn.Wait(t.Context())
		if err != nil || state.Text != "re "+text {
			t.Fatalf("%s: %+v %v", text, state, err)
		}
		fmt.Println("acknowledged", i)
	}
}

// sendRounds starts a speaker and returns how far it got; kill ends it after so many
// acknowledgements, 0 never.
func sendRounds(t *testing.T, path, who string, from, to, kill int) int {
	t.Helper()
	return sendRoundsIn(t, path, who, "t", from, to, kill)
}

// sendRoundsIn is sendRounds in the session of a thread.
func sendRoundsIn(t *testing.T, path, who, thread string, from, to, kill int) int {
	t.Helper()
	return runSpeaker(t, "TestSpeakerProcess", path, who, thread, from, to, kill)
}

// runSpeaker is sendRoundsIn with another test as the process.
func runSpeaker(t *testing.T, process, path, who, thread string, from, to, kill int) int {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+process+"$", "-test.v")
	c.Env = append(os.Environ(), "WEIR_SPEAKER_DB="+path, "WEIR_SPEAKER="+who, "WEIR_SPEAKER_THREAD="+thread,
		fmt.Sprint("WEIR_SPEAKER_FROM=", from), fmt.Sprint("WEIR_SPEAKER_TO=", to))
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	next := from
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), "acknowledged "); ok {
			i, _ := strconv.Atoi(n)
			next = i + 1
			if kill > 0 && next-from >= kill {
				kill = 1 << 30
				time.AfterFunc(time.Duration(rand.N(4000))*time.Microsecond, func() { _ = c.Process.Kill() }) // anywhere in a round
			}
			continue
		}
		said.WriteString(lines.Text() + "\n")
	}
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && (kill == 0 || !errors.As(err, &exit)) {
		t.Errorf("speaker %s: %v\n%s", who, err, said.String())
	}
	return next
}

// checkSession wants each message of each speaker once, in its order, and after each
// its answer.
func checkSession(t *testing.T, path string, rounds int, speakers ...string) {
	t.Helper()
	s := openSession(t, path)
	ms, err := s.Messages(t.Context(), 0, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	next := make(map[string]int)
	for i, m := range ms {
		want := convo.User
		if i%2 == 1 {
			want = convo.Assistant
		}
		if m.Position != i || m.Message.Role != want || m.Status.String() != "completed" {
			t.Fatalf("message %d: %+v", i, m)
		}
		if i%2 == 1 {
			if m.Message.Text != "re "+ms[i-1].Message.Text || m.Run != ms[i-1].Run {
				t.Fatalf("message %d, %q, answers %q", i, m.Message.Text, ms[i-1].Message.Text)
			}
			continue
		}
		who, n, _ := strings.Cut(m.Message.Text, "-")
		if n != strconv.Itoa(next[who]) {
			t.Fatalf("message %d is %s, and %s-%d was to come", i, m.Message.Text, who, next[who])
		}
		next[who]++
	}
	for _, who := range speakers {
		if next[who] != rounds {
			t.Errorf("%s was heard %d times of %d", who, next[who], rounds)
		}
	}
	checkState(t, s, ms)
	info, err := s.Info(t.Context())
	if err != nil || info.Rounds != rounds*len(speakers) || info.Queued != 0 || info.Holder != "" {
		t.Errorf("%+v %v", info, err)
	}
}

// checkState wants the session and its forks to have counted each round once, and to have
// heard its message.
func checkState(t *testing.T, s *weir.Session, ms []store.SessionMessage) {
	t.Helper()
	for at := len(ms); at >= 0; at -= max(len(ms)/7, 1) {
		fork, err := s.Fork(t.Context(), at)
		if at == len(ms) {
			fork = s
		}
		if err != nil {
			t.Fatal(err)
		}
		values, err := fork.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var want []any
		for i := 0; i+1 < at; i += 2 {
			want = append(want, ms[i].Message.Text)
		}
		switch {
		case len(want) == 0:
			if len(values) != 0 {
				t.Errorf("a fork before the first round keeps %+v", values)
			}
		case len(values) != 2 || values[0].Value != int64(len(want)) || !reflect.DeepEqual(values[1].Value, want):
			t.Errorf("after %d rounds the session keeps %+v", len(want), values)
		}
	}
}

func TestTwoProcessesOnOneSessionLoseNoMessages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	openSession(t, path)
	var wg sync.WaitGroup
	for _, who := range []string{"anna", "bert"} {
		wg.Go(func() { sendRounds(t, path, who, 0, *roundsEach, 0) })
	}
	wg.Wait()
	checkSession(t, path, *roundsEach, "anna", "bert")
}

func TestKilledProcessesLoseAndRepeatNoMessages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	openSession(t, path)
	var wg sync.WaitGroup
	for n, who := range []string{"anna", "bert"} {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for from := 0; from < *roundsEach; {
				from = sendRounds(t, path, who, from, *roundsEach, 1+rng.IntN(10))
			}
		})
	}
	wg.Wait()
	checkSession(t, path, *roundsEach, "anna", "bert")
}

func Test64WritersToOneSessionLoseNoMessages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	s := openSession(t, path)
	var wg sync.WaitGroup
	speakers := make([]string, 64)
	for i := range speakers {
		speakers[i] = fmt.Sprintf("w%d", i)
		wg.Go(func() {
			for n := range 3 {
				turn, err := s.Send(t.Context(), fmt.Sprintf("%s-%d", speakers[i], n), weir.SendOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				if state, err := turn.Wait(t.Context()); err != nil || state.Status.String() != "completed" {
					t.Errorf("%+v %v", state, err)
				}
			}
		})
	}
	wg.Wait()
	checkSession(t, path, 3, speakers...)
}
