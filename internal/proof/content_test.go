package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// content checks what a request shows of its context: nothing but what is in
// it, in order, paired; pinned messages and the person's newest among it; where
// something is left out under a strategy of summaries, a summary or the reason
// why there is none.
func (p *prover) content(req *llm.Request, c convo.Context, set settings) error {
	history, err := c.Messages()
	if err != nil {
		return err
	}
	if err := convo.Validate(req.Messages); err != nil {
		return err
	}
	shown, err := places(req.Messages, history)
	if err != nil {
		return err
	}
	// A request was made before what came after the last that it shows.
	last := slices.Max(append(shown, -1))
	asked := -1
	for i, m := range history[:last+1] {
		if m.Role == convo.User {
			asked = i
		}
		if m.Pinned && !slices.Contains(shown, i) && !repaired(history, i) {
			return fmt.Errorf("message %d is pinned and not shown: %+v", i, m)
		}
	}
	if asked >= 0 && !slices.Contains(shown, asked) {
		return fmt.Errorf("the person's newest message, %d, is not shown", asked)
	}
	left := 0
	for i := range history[:last+1] {
		if !slices.Contains(shown, i) && !repaired(history, i) {
			left++
		}
	}
	summary := len(req.Messages) != len(shown)
	switch {
	case left > 0 && set.strategy == convo.All && c.Marks.Cut == 0:
		return fmt.Errorf("%d messages are not shown under the strategy of all", left)
	case summary && req.Manifest.Summary == nil:
		return fmt.Errorf("a message that is not in the history is shown, without a summary: %s", encoded(req.Messages))
	case left > 0 && set.strategy == convo.Summarise && !summary && p.isNewEpoch(c) && !strings.Contains(req.Manifest.Reason, "no summary"):
		return fmt.Errorf("%d messages are not shown, and nothing stands for them", left)
	}
	return nil
}

// isNewEpoch: no cut was made before the turn by other means.
func (p *prover) isNewEpoch(c convo.Context) bool { return c.Marks.Cut == 0 || c.Marks.Summary != nil }

// places finds the messages of a request in the history, in order; a summary
// has none.
func places(ms, history []convo.Message) ([]int, error) {
	var out []int
	from := 0
	for n, m := range ms {
		if m.Role == convo.User && strings.HasPrefix(m.Text, "[A model's summary of messages ") {
			continue
		}
		at := -1
		for i := from; i < len(history); i++ {
			if isShown(m, history[i]) {
				at = i
				break
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("message %d of the request is not in the history from %d on: %s", n, from, encoded(m))
		}
		out = append(out, at)
		from = at + 1
	}
	return out, nil
}

// isShown: m is what a request shows of the history's message.
func isShown(m, of convo.Message) bool {
	if m.Role != of.Role || m.CallID != of.CallID || m.Name != of.Name || m.Failed != of.Failed || len(m.Calls) > len(of.Calls) {
		return false
	}
	for _, c := range m.Calls {
		if !slices.Contains(of.Calls, c) {
			return false
		}
	}
	if m.Text == of.Text || of.Name == llm.ReaderTool && of.Text == "" {
		return true
	}
	if m.Role != convo.Tool {
		return false
	}
	if strings.HasPrefix(m.Text, "[This result was cleared to save room: ") {
		return true
	}
	head, rest, cut := strings.Cut(m.Text, "\n[… ")
	_, tail, _ := strings.Cut(rest, " …]\n")
	return cut && strings.HasPrefix(of.Text, head) && strings.HasSuffix(of.Text, tail)
}

// repaired: no vendor takes that message where it is: a call without a result,
// a result without a call, an answer without a word.
func repaired(history []convo.Message, at int) bool {
	from := at
	for from > 0 && history[from].Role == convo.Tool {
		from--
	}
	end := from + 1
	for end < len(history) && history[end].Role == convo.Tool {
		end++
	}
	kept := convo.Repair(history[from:end])
	return !slices.ContainsFunc(kept, func(m convo.Message) bool { return isShown(m, history[at]) })
}
