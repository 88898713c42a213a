package crash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// sessionRecord is what a record has of a session.
type sessionRecord struct {
	row     store.Session
	history []store.SessionMessage
	said    []string // what people have said, in rounds that have begun
	queued  []string // and what waits for its turn
}

// durable reports whether a line has reached the database.
func (t *sessionRecord) durable(line string) bool {
	return slices.Contains(t.said, line) || slices.Contains(t.queued, line)
}

// add takes in what a person has said: with the message of a round, or as an
// answer.
func (t *sessionRecord) add(e engine.Event) {
	switch e := e.(type) {
	case *engine.RunStarted:
		if v, ok := e.Inputs.Get("message"); ok && e.Round > 0 {
			t.said = append(t.said, fmt.Sprint(v))
		}
	case *engine.InterruptAnswered:
		if !strings.Contains(e.ID, ":effect.") {
			t.said = append(t.said, fmt.Sprint(e.Value))
		}
	}
}

// addSession takes in the session of a journey with its rounds.
func (r *record) addSession(ctx context.Context, s *sqlite.Store, j *trial) error {
	row, err := s.FindSession(ctx, "ada", j.scenario.flow, j.run)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r.session.row = row
	rounds, err := s.Runs(ctx, store.Filter{Session: row.ID})
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(rounds) {
		said, err := messageOf(ctx, s, &o)
		if err != nil {
			return err
		}
		if o.Commits == 0 {
			r.session.queued = append(r.session.queued, said)
		}
		if err := r.addTree(ctx, s, o.ID, said); err != nil {
			return err
		}
	}
	queue, err := s.Queue(ctx, row.ID)
	if err != nil {
		return err
	}
	for i := range queue {
		r.session.queued = append(r.session.queued, textOf(queue[i].Value))
	}
	r.session.history, err = s.SessionMessages(ctx, row.ID, 0, row.Length)
	return err
}

// messageOf returns what a round began with, by which it is known here.
func messageOf(ctx context.Context, s *sqlite.Store, o *store.Run) (string, error) {
	for c, err := range s.Commits(ctx, o.ID, 0) {
		if err != nil {
			return "", err
		}
		if start, ok := c.Events[0].(*engine.RunStarted); ok {
			v, _ := start.Inputs.Get("message")
			return fmt.Sprint(v), nil
		}
	}
	q, err := s.RoundMessage(ctx, o.ID)
	return textOf(q.Value), err
}

// textOf returns what was said with a message of the queue.
func textOf(v engine.Value) string {
	if o, ok := v.(map[string]any); ok {
		return fmt.Sprint(o["message"])
	}
	return fmt.Sprint(v)
}

// runSession says everything in the session, one process after another.
func (j *trial) runSession(tb testing.TB) error {
	tb.Helper()
	r := &record{}
	for range maxProcesses {
		args, err := j.next(r)
		if args == nil || err != nil {
			return err
		}
		if r, err = j.say(tb, r, args); err != nil {
			return err
		}
	}
	return fmt.Errorf("not at an end after %d processes", maxProcesses)
}

// say continues the session once, and reads the record afterwards.
func (j *trial) say(tb testing.TB, r *record, args []string) (*record, error) {
	tb.Helper()
	kills := len(j.killed)
	code, err := j.process(tb, args)
	if err != nil {
		return nil, err
	}
	killed := len(j.killed) > kills && code == 128+int(j.with)
	waits := args[0] == "chat" && code == 1 && strings.Contains(string(j.last.Error), string(engine.CodeSessionWaits))
	if args[0] == "answer" && code == 0 {
		j.answered[named(r.labels[args[1]], args[2])] = true
	}
	if code != 0 && !killed && !waits {
		return nil, fmt.Errorf("weir %s exited with %d: %s %s", strings.Join(args, " "), code, j.last.Error, j.stderr())
	}
	if r, err = j.readAfterKill(tb); err != nil {
		return nil, err
	}
	for _, line := range j.lines {
		if !r.session.durable(line) {
			return nil, fmt.Errorf("%q was durable and is not there", line)
		}
	}
	for _, line := range j.sent {
		if r.session.durable(line) && !slices.Contains(j.lines, line) {
			j.lines = append(j.lines, line)
		}
	}
	return r, nil
}

// next returns how to continue a session, nil if all was said and nothing is
// under way: an answer to what a message does not answer, else what is left to
// be said. Where nothing is, and where a question is open that has an answer in
// the queue, one word more is said, a number, which is an answer too.
func (j *trial) next(r *record) ([]string, error) {
	holder := r.journal(r.session.row.Holder)
	for _, i := range holder.row.Head.Waiting {
		if strings.Contains(i.ID, ":effect.") && holder.row.Head.Status == engine.Paused {
			return []string{"answer", holder.id, i.ID, "retry"}, nil
		}
	}
	var left []string
	for _, line := range j.scenario.messages {
		if !slices.Contains(j.lines, line) {
			left = append(left, line)
		}
	}
	busy := r.session.row.Holder != "" || len(r.session.queued) > 0
	if len(left) == 0 && !busy {
		return nil, nil
	}
	if len(left) == 0 || len(r.session.queued) > 0 && holder.row.Head.Status == engine.Paused {
		j.more++
		left = slices.Insert(left, 0, strconv.Itoa(100+j.more))
	}
	j.sent = left
	text := strings.Join(left, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(j.dir, "stdin"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"chat", j.harness.flow(j.scenario.flow), "--user", "ada", "--thread", j.run, "-i", "base=http://" + j.harness.ledger.HTTP + "/" + j.run,
	}, nil
}

// checkMessages checks that the history has everything that was said, once and in its
// order, that the model was given all that was said before each of its answers,
// and that every turn that was acknowledged is there.
func (j *trial) checkMessages(r *record) error {
	var said []string
	for i := range r.session.history {
		m := &r.session.history[i].Message
		if m.Role == convo.User {
			said = append(said, m.Text)
		} else if want := "heard: " + strings.Join(said, " / "); !strings.HasSuffix(m.Text, want) {
			return fmt.Errorf("message %d is %q, and should end with %q", i, m.Text, want)
		}
	}
	if !slices.Equal(said, j.lines) {
		return fmt.Errorf("the history has %q, said was %q", said, j.lines)
	}
	if r.session.row.Holder != "" || len(r.session.queued) > 0 {
		return fmt.Errorf("the session is held by %q, and %q waits", r.session.row.Holder, r.session.queued)
	}
	for _, turn := range j.turns {
		for _, m := range turn.Messages {
			if n := r.session.times(m.Message.ID, m.Message.Text); n != 1 {
				return fmt.Errorf("message %s was acknowledged and is in the history %d times", m.Message.ID, n)
			}
		}
	}
	return nil
}

// times returns how often a message is in the history.
func (t *sessionRecord) times(id, text string) int {
	n := 0
	for i := range t.history {
		if m := &t.history[i].Message; m.ID == id && m.Text == text {
			n++
		}
	}
	return n
}

// checkSession checks that the rounds of the undisturbed session did here what they
// did there, as far as the same was said.
func (j *trial) checkSession(r *record, undisturbed *trial) error {
	for what, sets := range map[string][2]map[string]int{
		"nodes":   {r.completed, undisturbed.known.completed},
		"effects": {r.done, undisturbed.known.done},
	} {
		got, want := slices.Sorted(maps.Keys(sets[0])), slices.Sorted(maps.Keys(sets[1]))
		if slices.Equal(j.lines, j.scenario.messages) && !slices.Equal(got, want) {
			return fmt.Errorf("%s: %s, undisturbed %s", what, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
	return nil
}
