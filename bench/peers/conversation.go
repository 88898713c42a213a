package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

// talkMessage is how many bytes a message of the conversation has.
const talkMessage = 450

// mark is how a conversation stands after a turn.
type mark struct {
	Turn int `json:"turn"`
	// MS is the median of the ten turns up to it, in milliseconds.
	MS float64 `json:"ms"`
	// Bytes are those of the database once its log is folded in.
	Bytes int64 `json:"bytes"`
}

// talker has a conversation and says how it stood after some of its turns.
type talker struct {
	name string
	talk func(ctx context.Context, dir string, turns []int) ([]mark, error)
}

// conversations prints one conversation through each of those that can have it:
// a question and an answer of 450 bytes a turn, kept on disk after each turn.
func conversations(ctx context.Context, w io.Writer, turns []int) error {
	talkers := []talker{
		{"weir, a run that waits (FULL)", weirTalk},
		{"weir, rounds of a session (FULL)", weirSession},
		{"langgraph js, its SQLite saver", langgraphTalk},
	}
	fmt.Fprintf(w, "\nconversation, %d bytes a message\n", talkMessage)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tturn\tms a turn\tbytes\tbytes over the text\t")
	for _, who := range talkers {
		marks, err := who.talkIn(ctx, turns)
		if errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintf(t, "%s\tneeds node and npm: %v\t\t\t\t\n", who.name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", who.name, err)
		}
		for _, m := range marks {
			fmt.Fprintf(t, "%s\t%d\t%.2f\t%d\t%.1fx\t\n", who.name, m.Turn, m.MS, m.Bytes, float64(m.Bytes)/float64(2*talkMessage*m.Turn))
		}
	}
	return t.Flush()
}

func (k talker) talkIn(ctx context.Context, turns []int) ([]mark, error) {
	dir, err := os.MkdirTemp("", "talk")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return k.talk(ctx, dir, turns)
}

// words is text that differs from message to message.
func words(n int) string {
	s := strconv.Itoa(n) + " "
	return s + strings.Repeat("weir ", talkMessage/5)[:talkMessage-len(s)]
}

// echo is a model that says something else each time.
type echo struct{ said int }

// Generate implements weir.Provider.
func (e *echo) Generate(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	e.said++
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: words(2*e.said + 1)}, Stop: "end"}, nil
}

const talkFlow = `{weir: 1, name: talk, context: {model: echo/one, view: {strategy: all}, budget: {window: 100000000}},
  nodes: {chat: {type: loop, with: {until: "false", max: 1000000, body: {
    nodes: {ask: {type: userInput, with: {history: true}}, reply: {type: llmRequest, after: ask}},
    outputs: {said: "{{ reply.text }}"}}}}}}`

// sessionFlow answers one message.
const sessionFlow = `{weir: 1, name: talk, context: {model: echo/one, view: {strategy: all}, budget: {window: 100000000}},
  inputs: {message: {type: text, required: true}},
  nodes: {reply: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}}}`

// opened is a Weir on a file with a flow.
type opened struct {
	path string
	w    *weir.Weir
	flow *weir.Flow
}

func open(ctx context.Context, dir, text string) (*opened, error) {
	o := &opened{path: filepath.Join(dir, "weir.db")}
	file, err := sqlite.Open(ctx, o.path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	o.w, err = weir.Open(weir.Options{Store: file, Providers: map[string]weir.Provider{"echo": new(echo)}})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if o.flow, err = o.w.Parse("talk.yaml", []byte(text)); err != nil {
		return nil, errors.Join(err, o.w.Close(ctx))
	}
	return o, nil
}

// takeTurns takes turns and says how the file stood after some.
func (o *opened) takeTurns(ctx context.Context, turns []int, take func(turn int) error) (marks []mark, err error) {
	var took []float64
	for turn := 1; turn <= slices.Max(turns); turn++ {
		begin := time.Now()
		if err := take(turn); err != nil {
			return nil, fmt.Errorf("turn %d: %w", turn, err)
		}
		took = append(took, float64(time.Since(begin).Microseconds())/1000)
		if slices.Contains(turns, turn) {
			bytes, err := sizeOf(ctx, o.path)
			if err != nil {
				return nil, err
			}
			marks = append(marks, mark{turn, lastTen(took), bytes})
		}
	}
	return marks, nil
}

// weirTalk returns a loop that waits for a person in each turn: the run is paused,
// left and taken up again, and the model is given the whole history, as the
// node of the graph in conversation.mjs is.
func weirTalk(ctx context.Context, dir string, turns []int) (marks []mark, err error) {
	o, err := open(ctx, dir, talkFlow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.w.Close(ctx)) }()
	run, err := o.w.Start(ctx, o.flow, weir.Start{ID: "talk"})
	if err != nil {
		return nil, err
	}
	r, err := run.Wait(ctx)
	if err != nil {
		return nil, err
	}
	return o.takeTurns(ctx, turns, func(turn int) error {
		if r.Status != engine.Paused {
			return fmt.Errorf("the run is %s: %w", r.Status, r.Error)
		}
		run, err := o.w.Answer(ctx, "talk", r.Interrupts[0].ID, words(2*turn), "bench")
		if err != nil {
			return err
		}
		r, err = run.Wait(ctx)
		return err
	})
}

// weirSession sends messages to a session, each a round of its own.
func weirSession(ctx context.Context, dir string, turns []int) (marks []mark, err error) {
	o, err := open(ctx, dir, sessionFlow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.w.Close(ctx)) }()
	s, err := o.w.Session(ctx, o.flow, weir.SessionOptions{})
	if err != nil {
		return nil, err
	}
	return o.takeTurns(ctx, turns, func(turn int) error {
		t, err := s.Send(ctx, words(2*turn), weir.SendOptions{})
		if err != nil {
			return err
		}
		end, err := t.Wait(ctx)
		if err == nil && end.Status != engine.Completed {
			err = fmt.Errorf("the round is %s: %w", end.Status, end.Error)
		}
		return err
	})
}

// lastTen returns the median of the last ten.
func lastTen(took []float64) float64 {
	last := slices.Sorted(slices.Values(took[max(0, len(took)-10):]))
	return last[len(last)/2]
}

// sizeOf returns how many bytes a database has, once its log is folded in.
func sizeOf(ctx context.Context, path string) (int64, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// langgraphTalk has the conversation of langgraph/conversation.mjs, whose
// packages it installs the first time.
func langgraphTalk(ctx context.Context, dir string, turns []int) ([]mark, error) {
	if _, err := os.Stat("langgraph/node_modules"); err != nil {
		install := exec.CommandContext(ctx, "npm", "install", "--loglevel=error")
		install.Dir, install.Stderr = "langgraph", os.Stderr
		if err := install.Run(); err != nil {
			return nil, fmt.Errorf("npm install: %w", err)
		}
	}
	args := []string{"conversation.mjs", filepath.Join(dir, "langgraph.db"), strconv.Itoa(talkMessage)}
	for _, t := range turns {
		args = append(args, strconv.Itoa(t))
	}
	cmd := exec.CommandContext(ctx, "node", args...) //nolint:gosec // our own script
	cmd.Dir, cmd.Stderr = "langgraph", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var marks []mark
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var m mark
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, err
		}
		marks = append(marks, m)
	}
	return marks, nil
}
