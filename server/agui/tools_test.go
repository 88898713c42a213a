package agui_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
)

// TestCallsOfTheClientSurviveARestart gives outputs to another process than the one that asked for them, refuses what does not fit,
// and keeps the calls of other users apart.
func TestCallsOfTheClientSurviveARestart(t *testing.T) {
	t.Parallel()
	p := open(t)
	ada, bob := p.Token("ada", server.Start), p.Token("bob", server.Start)
	const tools = `"tools":[{"name":"show","description":"Shows."}]`
	run := func(id, messages string) string {
		return fmt.Sprintf(`{"threadId":"t","runId":%q,"messages":[%s],%s}`, id, messages, tools)
	}
	user := func(text string) string { return fmt.Sprintf(`{"id":"u","role":"user","content":%q}`, text) }
	output := func(call, text string) string {
		return fmt.Sprintf(`{"id":"o","role":"tool","toolCallId":%q,"content":%q}`, call, text)
	}
	for _, flow := range []string{"talk", "work"} {
		_, text := post(t, p, ada, flow, run("1", user("Show map crane")))
		found := regexp.MustCompile(`"pendingToolCallIds":\["(call_\w+)","(call_\w+)"\]`).FindStringSubmatch(text)
		if found == nil || strings.Count(text, `"TOOL_CALL_START"`) != 2 {
			t.Fatalf("%s: %s", flow, text)
		}
		first, second := output(found[1], "a"), output(found[2], "b")
		p.Restart()
		for what, c := range map[string]struct {
			token, messages string
			status          int
		}{
			"a message in place of the outputs": {ada, user("x"), http.StatusUnprocessableEntity},
			"one output of two":                 {ada, first, http.StatusUnprocessableEntity},
			"the output of another call":        {ada, output("call_x", "a"), http.StatusUnprocessableEntity},
			"an output that is an image": {
				ada, strings.Replace(first, `"a"`, `[{"type":"image","source":{"type":"data","value":"eA==","mimeType":"image/png"}}]`, 1), http.StatusUnprocessableEntity,
			},
			"another user": {bob, first + "," + second, http.StatusConflict},
		} {
			if status, text := post(t, p, c.token, flow, run("2 "+what, c.messages)); status != c.status {
				t.Errorf("%s, %s: %d %s", flow, what, status, text)
			}
		}
		_, text = post(t, p, ada, flow, run("3", user("Show map crane")+","+second+","+first))
		var said strings.Builder
		for _, m := range regexp.MustCompile(`"delta":"([^"]*)"`).FindAllStringSubmatch(text, -1) {
			said.WriteString(m[1])
		}
		if said.String() != "Shown: b" || !strings.Contains(text, `"success"`) || strings.Contains(text, "TOOL_CALL_START") {
			t.Errorf("%s: %s", flow, text)
		}
		if status, text := post(t, p, ada, flow, run("4", first+","+second)); status != http.StatusConflict {
			t.Errorf("%s, the same outputs again: %d %s", flow, status, text)
		}
	}
}
