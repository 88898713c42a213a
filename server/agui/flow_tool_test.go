package agui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/agui"
	"github.com/weir-run/weir/server/servertest"
)

// TestQuestionsOfFlowsThatAModelCallsAreInterrupts answers the questions of two flows that a model has called at the same time,
// the second one first, with a restart of the server before each answer.
func TestQuestionsOfFlowsThatAModelCallsAreInterrupts(t *testing.T) {
	t.Parallel()
	o := servertest.AskingTool()
	o.Faces, o.Server.RequireToken = []func(*server.Server){agui.Register}, true
	p := servertest.Open(t, o)
	ada := p.Token("ada", server.Read, server.Start, server.Answer)
	send := func(id, resume string) string {
		t.Helper()
		status, text := post(t, p, ada, "desk", `{"threadId":"t","runId":"`+id+`","messages":[{"id":"1","role":"user","content":"EC9 IC5"}]`+resume+`}`)
		if status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		return text
	}
	question := func(call int) string { return fmt.Sprintf(`work:tool%d#1\u003ewho:ask#1`, call) }
	answer := func(call int, name string) string {
		return `,"resume":[{"interruptId":"` + question(call) + `","status":"resolved","payload":"` + name + `"}]`
	}
	if text := send("a", ""); !strings.Contains(text, question(1)) || !strings.Contains(text, question(2)) {
		t.Fatal(text)
	}
	p.Restart()
	if text := send("b", answer(2, "Bert")); !strings.Contains(text, question(1)) || strings.Contains(text, question(2)) {
		t.Fatal(text)
	}
	p.Restart()
	if text := send("c", answer(1, "Ada")); !strings.Contains(text, `"result":{"answer":"Booked: Ada in EC9, Bert in IC5"}`) {
		t.Fatal(text)
	}
}
