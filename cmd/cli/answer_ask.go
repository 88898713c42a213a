package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

func isTerminal(s any) bool {
	f := fileOf(s)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// fileOf returns the file behind a reader or writer, nil if there is none.
func fileOf(s any) *os.File {
	if g, ok := s.(*terminalFilter); ok {
		return g.File
	}
	f, _ := s.(*os.File)
	return f
}

// widthOf returns how many columns a terminal has, 0 if s is none.
func widthOf(s any) int {
	f := fileOf(s)
	if f == nil {
		return 0
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return n
}

// askQuestion puts one question to the person at the terminal until the answer
// fits; ok is false where the person has closed the input instead.
func (p *cli) askQuestion(ctx context.Context, i engine.Interrupt) (v engine.Value, ok bool, err error) {
	st := p.style()
	prompt, help := promptOf(i)
	p.discardTyped()
	fmt.Fprintf(p.err, "%s %s\n", st.ask.Render("?"), st.bold.Render(app.Printable(prompt)))
	if help != "" {
		fmt.Fprintf(p.err, "  %s\n", st.dim.Render(help))
	}
	for n, c := range choices(i.Schema) {
		fmt.Fprintf(p.err, "  %s %s\n", st.dim.Render(fmt.Sprintf("%d.", n+1)), app.Printable(c))
	}
	for {
		fmt.Fprint(p.err, st.ask.Render("> "))
		line, err := p.readLine(ctx)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(p.err)
			return nil, false, nil
		}
		if err != nil {
			fmt.Fprintln(p.err)
			return nil, false, err
		}
		v, err := parseAnswer(i, line)
		if err == nil {
			return v, true, nil
		}
		fmt.Fprintf(p.err, "  %s\n", st.bad.Render(err.Error()))
	}
}

// parseAnswer reads what was typed: a choice by its number or text, else a value
// the schema takes.
func parseAnswer(i engine.Interrupt, line string) (engine.Value, error) {
	switch i.Kind {
	case engine.AwaitBreak:
		return true, nil
	case engine.AwaitEffect:
		if !json.Valid([]byte(line)) { // a word: retry or fail
			return line, nil
		}
		return engine.ParseValue([]byte(line))
	case engine.AwaitApproval:
		return parseApproval(i, line)
	case engine.AwaitBudget:
		return parseBudgetAnswer(i, line)
	default:
	}
	if i.Kind == engine.AwaitEvent && len(i.Schema) == 0 {
		return parsePayload(line)
	}
	v, err := node.ParseAnswer(i.Schema, line)
	if err == nil {
		return v, nil
	}
	c := choices(i.Schema)
	if n, wrong := strconv.Atoi(line); wrong == nil && n >= 1 && n <= len(c) {
		return node.ParseAnswer(i.Schema, c[n-1])
	}
	if len(c) > 0 {
		err = fmt.Errorf("expected one of %s", strings.Join(c, ", "))
	}
	return nil, fmt.Errorf("the answer does not fit the question: %w", err)
}

// parsePayload returns what an event brings that has no schema: a JSON object or list as
// that, everything else as text. JSON that is not taken, because a key occurs twice or a
// number cannot be kept, is an error as it is in every other place.
func parsePayload(text string) (engine.Value, error) {
	s := strings.TrimSpace(text)
	if !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") || !json.Valid([]byte(s)) {
		return text, nil
	}
	v, err := engine.ParseValue([]byte(s))
	if err != nil {
		return nil, fmt.Errorf("what the event brings: %w", err)
	}
	return v, nil
}

// choices returns the values an answer may have, where the schema lists them.
func choices(schema map[string]any) []string {
	list, ok := schema["enum"].([]any)
	if !ok {
		return nil
	}
	var out []string
	for _, v := range list {
		out = append(out, plain(v))
	}
	return out
}
