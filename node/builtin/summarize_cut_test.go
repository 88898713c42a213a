package builtin_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/weirtest"
)

// cutOffModel answers "é short", which the limit of output cuts off in the calls whose text contains cut.
type cutOffModel struct{ cut string }

func (m cutOffModel) Generate(_ context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	stop := llm.StopEnd
	if strings.Contains(r.Messages[0].Text, m.cut) {
		stop = llm.StopLength
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "é short"}, Stop: stop}, nil
}

func TestSummaryReportsWhatItWasMadeOf(t *testing.T) {
	long := strings.Repeat("weir ", 300) + strings.Repeat("dam ", 300)
	for name, c := range map[string]struct {
		text, cut string
		want      map[string]any
	}{
		"one call":            {"Grüße an alle.", "nothing", map[string]any{"from": int64(14), "to": int64(7), "parts": int64(1), "cut": int64(0)}},
		"one call, cut off":   {"Grüße an alle.", "Grüße", map[string]any{"from": int64(14), "to": int64(7), "parts": int64(1), "cut": int64(1)}},
		"parts":               {long, "nothing", map[string]any{"from": int64(2700), "to": int64(7), "parts": int64(4), "cut": int64(0)}},
		"a part is cut off":   {long, "weir", map[string]any{"from": int64(2700), "to": int64(7), "parts": int64(4), "cut": int64(3)}},
		"the last is cut off": {long, "é short", map[string]any{"from": int64(2700), "to": int64(7), "parts": int64(4), "cut": int64(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := weirtest.Node(t, builtin.Catalogue().Type("summarize"), weirtest.Case{
				With:  map[string]any{"maxTokens": 50, "budget": map[string]any{"window": 1000, "reserve": 500}},
				In:    map[string]any{"text": c.text},
				Model: cutOffModel{c.cut},
			})
			if !reflect.DeepEqual(r.Outputs["reduction"], c.want) {
				t.Errorf("the reduction is %v, want %v: %v", r.Outputs["reduction"], c.want, r.Error)
			}
		})
	}
}
