package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server/servertest"
)

// see answers as the model of the tests does, with the images and files of the last message.
func see(r *llmtest.Request) llmtest.Turn {
	t := servertest.Repeat(r)
	for _, p := range r.Messages[len(r.Messages)-1].Parts {
		t.Text += fmt.Sprintf(" [%s %s %s %d]", p.Kind, p.MIME, p.Name, len(p.Data))
	}
	return t
}

func TestTheOfficialClientUploadsFilesAndUsesThem(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{Answer: see, Flows: map[string]string{"see.yaml": `weir: 1
name: see
context: {model: fake/m}
inputs: {message: {type: message, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
`}})
	out := servertest.Node(t, "testdata/files.mjs", user(p, "ada"), client)
	if !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}
