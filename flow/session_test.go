package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-run/weir/flow"
)

const sessionFlow = `
weir: 1
name: talk
session: %s
nodes:
  a: {type: llmRequest}
`

func TestTheSessionKeyIsReadAndKeptByTheNormalForm(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t)
	for text, want := range map[string]flow.SessionSettings{
		"null":             {},
		"{}":               {},
		"{busy: reject}":   {Busy: flow.BusyReject},
		"{ttl: 30d}":       {TTL: 30 * 24 * time.Hour},
		"{ttl: 90m}":       {TTL: 90 * time.Minute},
		"{ttl: 60}":        {TTL: time.Minute},
		"{maxMessages: 1}": {MaxMessages: 1},
		"{busy: fork, maxMessages: 20, maxTokens: 16000, budget: {maxCost: 0.5, onLimit: pause}, ttl: 1d}": {
			Busy: flow.BusyFork, MaxMessages: 20, MaxTokens: 16000, TTL: 24 * time.Hour,
			Spend: flow.SpendLimits{MaxCost: 0.5, OnLimit: "pause"},
		},
	} {
		source := fmt.Sprintf(sessionFlow, text)
		f := parse(t, "f.yaml", source)
		if f.Session != want {
			t.Errorf("%s: %+v, want %+v", text, f.Session, want)
		}
		again := parse(t, "b.json", normal(t, f))
		if again.Session != want || again.Fingerprint() != f.Fingerprint() {
			t.Errorf("%s after a round trip: %+v", text, again.Session)
		}
		fitsSchema(t, schema, text, []byte(normal(t, f)))
	}
}

func TestInvalidSessionKeysAreReportedWithPosition(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"5", "[1]", "queue", "{busy: wait}", "{busy: null}", "{maxMessages: 0}", "{maxMessages: -1}", "{maxMessages: 1.5}",
		"{maxTokens: 16k}", "{maxTokens: 0}", "{budget: {}}", "{budget: 5}", "{ttl: 0}", "{ttl: 0d}", "{ttl: -1d}", "{ttl: 1.5d}",
		"{ttl: 4000d}", "{ttl: soon}", "{ttl: null}", "{ttl: [1d]}", "{ttl: true}", "{more: 1}",
	} {
		problems := problemsOf(t, "f.yaml", fmt.Sprintf(sessionFlow, text))
		if len(problems) != 1 || problems[0].Pos.Line != 4 {
			t.Errorf("session: %s: %+v", text, problems)
		}
	}
}
