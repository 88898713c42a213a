package server_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

type promptCaches struct {
	Calls []struct {
		Call, Before, Place, Was, Is string
		Equal, Of, Byte              int
	}
}

func TestAModelCallIsComparedWithTheOneBeforeAsAPromptCacheDoes(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	run, err := p.client("").StartRun(t.Context(), client.Start{Flow: "twice", Wait: 60})
	if err != nil || run.Status != "completed" {
		t.Fatalf("%+v, %v", run, err)
	}
	read := func(node string) promptCaches {
		var out promptCaches
		p.get("/v1/runs/"+run.ID+"/cache?node="+node, &out)
		if len(out.Calls) != 1 {
			t.Fatalf("%s: %+v", node, out)
		}
		return out
	}
	if x := read("one").Calls[0]; x.Before != "" || x.Place != "" {
		t.Errorf("the first call: %+v", x)
	}
	// The second call continues the conversation: the first is its beginning.
	if x := read("two").Calls[0]; x.Before != "one/model#1" || x.Place != "" || x.Equal != 1 || x.Of != 1 {
		t.Errorf("the second call: %+v", x)
	}
	// The third begins another conversation.
	if x := read("three").Calls[0]; x.Before != "two/model#1" || x.Place != "messages[0]" || !strings.Contains(x.Was, "red") || !strings.Contains(x.Is, "blue") || x.Byte == 0 {
		t.Errorf("the third call: %+v", x)
	}
}
