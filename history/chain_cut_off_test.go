package history_test

import (
	"context"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
)

// cutOffModel answers until its call is cancelled.
type cutOffModel struct{ called chan struct{} }

func (c *cutOffModel) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	emit(llm.Chunk{Text: "The answer begins"})
	c.called <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// The usage of an attempt has what a call that was cut off is charged for, with and without a budget.
func TestChainHasTheUsageOfCallsThatWereCutOff(t *testing.T) {
	t.Parallel()
	for _, budget := range []string{"", ", budget: {maxTokens: 100000}"} {
		model := &cutOffModel{make(chan struct{}, 1)}
		w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"p": model}})
		run := weirkit.StartText(t, w, `{weir: 1, name: cut, context: {model: p/m}, nodes: {say: {type: llmRequest, in: {message: Go on.}`+budget+`}}}`)
		<-model.called
		if err := run.Cancel(t.Context(), "enough"); err != nil {
			t.Fatal(err)
		}
		result := weirkit.Wait(t, run)
		var sum engine.Usage
		for work, err := range w.Chain(t.Context(), run.ID) {
			if err != nil {
				t.Fatal(err)
			}
			sum = sum.Add(work.Usage)
		}
		if sum != result.Usage || sum.Calls != 1 || sum.Input == 0 {
			t.Errorf("%q: the chain has %+v, the run %+v", budget, sum, result.Usage)
		}
	}
}
