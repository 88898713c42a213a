package llm_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

func TestCallsOfToolsInOrderAreMadeOneAfterAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var made []string
		timed := func(name string, inOrder bool) *tool.Tool {
			return &tool.Tool{Name: name, InOrder: inOrder, Call: func(_ context.Context, c tool.Call) (string, error) {
				var d time.Duration
				if err := json.Unmarshal([]byte(c.Arguments), &d); err != nil {
					return "", err
				}
				<-time.NewTimer(d * time.Second).C
				mu.Lock()
				defer mu.Unlock()
				made = append(made, name+c.Arguments)
				return c.Arguments, nil
			}}
		}
		p := answers{says("", calls("a", "line", "3"), calls("b", "free", "2"), calls("c", "queue", "1")), says("ok")}
		start := time.Now()
		_, err := service(p).Turn(t.Context(), newAttempt(t.Context()), llm.Turn{
			Context: conversation(t), Message: said("", "go"),
			Tools: []*tool.Tool{timed("line", true), timed("queue", true), timed("free", false)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"free2", "line3", "queue1"}; !slices.Equal(made, want) || time.Since(start) != 4*time.Second {
			t.Errorf("made %v in %v, want %v in 4 s", made, time.Since(start), want)
		}
	})
}
