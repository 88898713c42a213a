package llm_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
)

// declaring is a provider that says whether it stores conversations.
type declaring struct {
	llm.Provider
	keeps bool
}

func (d declaring) KeepsHistory() bool { return d.keeps }

// TestHistoryServerIsRefusedWhereNoModelKeepsIt combines who asks for it, who chooses the
// models, and what their providers keep.
func TestHistoryServerIsRefusedWhereNoModelKeepsIt(t *testing.T) {
	t.Parallel()
	said := recorded.NewScripted("fine")
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{
		"none": declaring{said, false}, "keeps": declaring{said, true}, "silent": said,
	}})
	for _, c := range []struct {
		context, node string // who asks
		own           string // the context's model
		turn          llm.Turn
		refused       bool
	}{
		{"server", "", "none/m", llm.Turn{}, true},
		{"server", "", "keeps/m", llm.Turn{}, false},
		{"server", "", "silent/m", llm.Turn{}, false},
		{"server", "client", "none/m", llm.Turn{}, false},
		{"server", "", "none/m", llm.Turn{SkipHistory: true}, false},
		{"server", "", "keeps/m", llm.Turn{Model: "none/m"}, false},
		{"", "server", "none/m", llm.Turn{}, true},
		{"", "server", "keeps/m", llm.Turn{Model: "none/m"}, true},
		{"", "server", "keeps/m", llm.Turn{Fallback: &llm.Fallback{Models: []string{"none/m", "none/n"}}}, true},
		{"", "server", "keeps/m", llm.Turn{Fallback: &llm.Fallback{Models: []string{"none/m", "keeps/n"}}}, false},
		{"", "", "none/m", llm.Turn{}, false},
		{"client", "", "none/m", llm.Turn{}, false},
	} {
		settings := convo.Settings{Model: c.own, History: c.context}
		turn := c.turn
		turn.Context, turn.History, turn.Message = convo.NewManager(convo.Context{Settings: settings}, true), c.node, &convo.Message{Text: "Well?"}
		_, err := s.Turn(t.Context(), newAttempt(t.Context()), turn)
		if refused := err != nil; refused != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
		if c.refused {
			wantCode(t, err, engine.CodeModelRequest)
			if !strings.Contains(err.Error(), "the provider none stores no conversations") {
				t.Errorf("%+v: %v", c, err)
			}
		}
	}
}
