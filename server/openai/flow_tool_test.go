package openai_test

import (
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// TestMessagesAnswerTheQuestionsOfFlowsThatAModelCalls answers the questions of two flows that a model has called at the same
// time, with a restart of the server before each answer.
func TestMessagesAnswerTheQuestionsOfFlowsThatAModelCalls(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.AskingTool())
	c := &chat{token: p.Token("ada", server.Read, server.Start, server.Answer), model: "desk"}
	for _, turn := range [][2]string{
		{"EC9 IC5", "Who takes EC9?"},
		{"Ada", "Who takes IC5?"},
		{"Bert", "Booked: Ada in EC9, Bert in IC5"},
		{"RE7", "Who takes RE7?"},
		{"Cleo", "Booked: Cleo in RE7"},
	} {
		if r := c.say(t, p, turn[0]); r.status != 200 || r.text != turn[1] {
			t.Fatalf("%q was answered %d with %q, expected %q", turn[0], r.status, r.text, turn[1])
		}
		p.Restart()
	}
}
