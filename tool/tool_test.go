package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/tool"
)

func answering(text string) *tool.Tool {
	return &tool.Tool{Name: "look", Call: func(context.Context, tool.Call) (string, error) { return text, nil }}
}

func TestASetFindsAToolByItsNameAndByItsAlias(t *testing.T) {
	t.Parallel()
	a, b := answering(""), answering("")
	a.Name, a.Alias = "mcp__git__log", "mcp:git/log"
	set, err := tool.NewSet(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if set.Get("mcp:git/log") != a || set.Get("mcp__git__log") != a || set.Get("look") != b || set.Get("log") != nil {
		t.Error("a tool is found by its name and alias, and by nothing else")
	}
	if got := strings.Join(set.Names(), " "); got != "look mcp:git/log" {
		t.Errorf("names: %s", got)
	}
}

func TestASetRefusesToolsThatCannotBeOffered(t *testing.T) {
	t.Parallel()
	with := func(f func(*tool.Tool)) *tool.Tool {
		t := answering("")
		f(t)
		return t
	}
	for want, tools := range map[string][]*tool.Tool{
		"use 1 to 64 letters":         {with(func(t *tool.Tool) { t.Name = "a b" })},
		"two tools have the name":     {answering(""), answering("")},
		`have the name "x:y"`:         {with(func(t *tool.Tool) { t.Alias = "x:y" }), with(func(t *tool.Tool) { t.Name, t.Alias = "b", "x:y" })},
		`have the name "look"`:        {answering(""), with(func(t *tool.Tool) { t.Name, t.Alias = "b", "look" })},
		"has no Call":                 {with(func(t *tool.Tool) { t.Call = nil })},
		"holds spaces":                {with(func(t *tool.Tool) { t.Alias = "mcp:a\nb" })},
		`approve is "sometimes"`:      {with(func(t *tool.Tool) { t.Approve = "sometimes" })},
		"its parameters are not JSON": {with(func(t *tool.Tool) { t.Parameters = map[string]any{"f": func() {}} })},
	} {
		if _, err := tool.NewSet(tools...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error with %q, got %v", want, err)
		}
	}
}

func TestTheHashSeesEveryPartOfTheDefinition(t *testing.T) {
	t.Parallel()
	base := func() *tool.Tool {
		return &tool.Tool{Name: "look", Description: "Looks.", Parameters: map[string]any{"type": "object"}, Origin: "mcp:a"}
	}
	first := base().Hash()
	if first != base().Hash() || len(first) != 64 {
		t.Fatal("one definition has one hash")
	}
	for name, change := range map[string]func(*tool.Tool){
		"name":        func(t *tool.Tool) { t.Name = "l" },
		"description": func(t *tool.Tool) { t.Description += " " },
		"parameters":  func(t *tool.Tool) { t.Parameters["required"] = []any{"x"} },
		"origin":      func(t *tool.Tool) { t.Origin = "mcp:b" },
		"read-only":   func(t *tool.Tool) { t.ReadOnly = true },
	} {
		c := base()
		change(c)
		if c.Hash() == first {
			t.Errorf("a changed %s has the hash of the old one", name)
		}
	}
	limits := base()
	limits.Timeout, limits.MaxOutput, limits.Approve = 1, 1, tool.ApproveAlways
	if limits.Hash() != first {
		t.Error("limits and policy are no part of the definition")
	}
}

func TestAResultIsMadeSafeAndCut(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\r\nwith ümläut": "plain\ttext\r\nwith ümläut",
		"\x1b[2Jgone\x00\x7f":        "␛[2Jgone␀␡",
		"bad \xff\xfe bytes":         "bad \uFFFD bytes",
		"c1 \u009b31m":               "c1 \uFFFD31m",
	} {
		got, err := answering(in).Run(t.Context(), tool.Call{})
		if err != nil || got != want {
			t.Errorf("%q became %q, %v; expected %q", in, got, err, want)
		}
	}
	long := answering(strings.Repeat("a", 500) + strings.Repeat("z", 500))
	long.MaxOutput = 30
	got, err := long.Run(t.Context(), tool.Call{})
	want := strings.Repeat("a", 20) + "\n[970 of 1000 bytes are left out here]\n" + strings.Repeat("z", 10)
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	long.MaxOutput = -1
	if got, _ := long.Run(t.Context(), tool.Call{}); len(got) != 1000 {
		t.Errorf("without a limit %d bytes are left", len(got))
	}
	big := answering(strings.Repeat("x", tool.DefaultMaxOutput+1))
	if got, _ := big.Run(t.Context(), tool.Call{}); !strings.Contains(got, "left out here") {
		t.Error("the default limit does not hold")
	}
	failing := &tool.Tool{Name: "fails", MaxOutput: 9, Call: func(context.Context, tool.Call) (string, error) {
		return "", errors.Join(errKnown, errors.New(strings.Repeat("é", 50)+"\x1b"))
	}}
	_, err = failing.Run(t.Context(), tool.Call{})
	if !errors.Is(err, errKnown) || strings.Contains(err.Error(), "\x1b") || !strings.Contains(err.Error(), "left out") {
		t.Errorf("an error's text is cut and safe, and the error stays what it is: %q", err)
	}
}

var errKnown = errors.New("known")

func TestCutKeepsWholeCharacters(t *testing.T) {
	t.Parallel()
	for limit := range 40 {
		s := strings.Repeat("añ日🙂", 5)
		got := tool.Cut(s, limit)
		head, rest, found := strings.Cut(got, "\n[")
		_, tail, _ := strings.Cut(rest, "]\n")
		if !found || !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || len(head)+len(tail) > limit ||
			strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
}

func TestACallEndsWhenItsTimeIsUpEvenIfTheToolIgnoresIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := &tool.Tool{Name: "deaf", Timeout: time.Minute, Call: func(context.Context, tool.Call) (string, error) {
			<-release
			return "too late", nil
		}}
		begin := time.Now()
		_, err := deaf.Run(t.Context(), tool.Call{})
		if !errors.Is(err, tool.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "within 1m0s") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took < time.Minute || took > time.Minute+3*time.Second {
			t.Errorf("it took %v", took)
		}
		deaf.ReadOnly = true
		if _, err := deaf.Run(t.Context(), tool.Call{}); err == nil || errors.Is(err, tool.ErrOutcomeUnknown) {
			t.Errorf("nothing is unknown about a tool that only reads: %v", err)
		}
		close(release)
	})
}

func TestTheDefaultTimeoutHoldsAndANegativeOneIsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &tool.Tool{Name: "slow", Call: func(ctx context.Context, _ tool.Call) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(time.Hour):
				return "done", nil
			}
		}}
		begin := time.Now()
		if _, err := slow.Run(t.Context(), tool.Call{}); err == nil || time.Since(begin) != tool.DefaultTimeout {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		slow.Timeout = -1
		if text, err := slow.Run(t.Context(), tool.Call{}); text != "done" {
			t.Errorf("got %q, %v", text, err)
		}
	})
}

func TestCancelledCallIsNotReportedAsTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, fail := range map[string]func(context.Context) error{
			"context error": context.Context.Err,
			"cause":         context.Cause,
			"own error":     func(context.Context) error { return errors.New("signal: killed") },
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			waits := &tool.Tool{Name: "waits", Call: func(ctx context.Context, _ tool.Call) (string, error) {
				cancel(errors.New("the process is shutting down"))
				<-ctx.Done()
				return "", fail(ctx)
			}}
			if _, err := waits.Run(ctx, tool.Call{}); !errors.Is(err, context.Canceled) || errors.Is(err, tool.ErrOutcomeUnknown) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

func TestAToolThatPanicsFailsItsCall(t *testing.T) {
	t.Parallel()
	bad := &tool.Tool{Name: "bad", Call: func(context.Context, tool.Call) (string, error) { panic("no such row") }}
	_, err := bad.Run(t.Context(), tool.Call{})
	var p *tool.PanicError
	if !errors.As(err, &p) || err.Error() != "the tool panicked: no such row" || len(p.Stack) == 0 {
		t.Errorf("got %v", err)
	}
}
