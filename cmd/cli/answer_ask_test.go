package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
)

func newTypingCLI(text string) (*cli, *bytes.Buffer) {
	var screen bytes.Buffer
	return &cli{terminal: terminal{in: strings.NewReader(text), out: io.Discard, err: &screen}, env: os.LookupEnv}, &screen
}

func TestInvalidAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	p, screen := newTypingCLI("many\n-1\n7\n")
	v, ok, err := p.askQuestion(t.Context(), engine.Interrupt{
		Kind: engine.AwaitInput, Prompt: "How \x1b[31mmany?",
		Schema: map[string]any{"type": "integer", "minimum": int64(0)},
	})
	if err != nil || !ok || v != int64(7) {
		t.Fatalf("got %v, %v, %v", v, ok, err)
	}
	for _, want := range []string{"? How [31mmany?\n", "expected integer, got string", "got -1, want 0"} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("the screen lacks %q:\n%s", want, screen)
		}
	}
}

func TestChoiceIsTakenByNumberOrText(t *testing.T) {
	t.Parallel()
	choice := engine.Interrupt{Kind: engine.AwaitInput, Schema: map[string]any{"enum": []any{"approve", "reject"}}}
	for typed, want := range map[string]string{"2\n": "reject", "approve\n": "approve", "3\n1": "approve"} {
		p, _ := newTypingCLI(typed)
		if v, ok, err := p.askQuestion(t.Context(), choice); err != nil || !ok || v != want {
			t.Errorf("%q gives %v, %v, %v", typed, v, ok, err)
		}
	}
	numbers := engine.Interrupt{Kind: engine.AwaitInput, Schema: map[string]any{"enum": []any{int64(2), int64(1)}}}
	p, _ := newTypingCLI("1\n")
	if v, _, _ := p.askQuestion(t.Context(), numbers); v != int64(1) {
		t.Errorf("a number that is a choice itself was taken as a place: %v", v)
	}
}

func TestClosedInputLeavesQuestionOpen(t *testing.T) {
	t.Parallel()
	p, _ := newTypingCLI("")
	if v, ok, err := p.askQuestion(t.Context(), engine.Interrupt{Kind: engine.AwaitInput}); ok || err != nil {
		t.Errorf("got %v, %v, %v", v, ok, err)
	}
}

func TestSignalEndsTheQuestion(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	in, out := io.Pipe()
	t.Cleanup(func() { _ = out.Close() })
	p, _ := newTypingCLI("")
	p.in = in
	stop := errors.New("stop")
	cancel(stop)
	if _, _, err := p.askQuestion(ctx, engine.Interrupt{Kind: engine.AwaitInput}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownEffectIsAnsweredByWordOrResult(t *testing.T) {
	t.Parallel()
	i := engine.Interrupt{Kind: engine.AwaitEffect}
	if v, err := parseAnswer(i, "retry"); err != nil || v != "retry" {
		t.Errorf("got %v, %v", v, err)
	}
	v, err := parseAnswer(i, `{"result": 3}`)
	if m, ok := v.(map[string]any); err != nil || !ok || m["result"] != int64(3) {
		t.Errorf("got %v, %v", v, err)
	}
}

// JSON that two parsers read differently is refused whatever asks for it, and no text in its place.
func TestJSONThatIsNotTakenIsNoAnswer(t *testing.T) {
	t.Parallel()
	object := map[string]any{"type": "object"}
	for name, i := range map[string]engine.Interrupt{
		"an event without a schema": {Kind: engine.AwaitEvent},
		"an event with one":         {Kind: engine.AwaitEvent, Schema: object},
		"an input":                  {Kind: engine.AwaitInput, Schema: object},
		"an effect":                 {Kind: engine.AwaitEffect},
		"an approval":               {Kind: engine.AwaitApproval, Schema: object},
		"a budget":                  {Kind: engine.AwaitBudget, Schema: object},
	} {
		for _, text := range []string{`{"a": 1, "a": 2}`, ` {"x": [{"a": 1, "\u0061": 2}]}`, `{"n": 123456789012345678901}`} {
			if v, err := parseAnswer(i, text); err == nil {
				t.Errorf("%s: %s is taken as %#v", name, text, v)
			}
		}
		if i.Kind != engine.AwaitApproval && i.Kind != engine.AwaitBudget {
			if v, err := parseAnswer(i, `{"a": 1}`); err != nil || !reflect.DeepEqual(v, map[string]any{"a": int64(1)}) {
				t.Errorf("%s: an object is taken as %#v, %v", name, v, err)
			}
		}
	}
	for _, text := range []string{"{not JSON", "[a, b]", "42", ""} {
		if v, err := parseAnswer(engine.Interrupt{Kind: engine.AwaitEvent}, text); err != nil || v != text {
			t.Errorf("%q is taken as %#v, %v", text, v, err)
		}
	}
}
