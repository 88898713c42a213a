package session_test

import (
	"errors"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

func TestOnlyQueuedMessagesCanBeUnqueued(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		g := newBlockedModel()
		w, f := weirkit.OpenTalk(t, path, g, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		first := send(t, s, "one", weir.SendOptions{ID: "m1"})
		<-g.called
		second := send(t, s, "two", weir.SendOptions{ID: "m2", Origin: "webhook:orders"})
		third := send(t, s, "three", weir.SendOptions{ID: "m3", By: "bert"})
		list, err := s.QueuedMessages(t.Context())
		if err != nil || len(list) != 2 || list[0].ID != "m2" || list[0].Origin != "webhook:orders" || list[1].By != "bert" || list[1].Message != "three" {
			t.Fatalf("%+v %v", list, err)
		}
		if in, err := w.Unqueue(t.Context(), "m2"); err != nil || in != s.ID {
			t.Fatal(in, err)
		}
		if _, err := w.Unqueue(t.Context(), "m1"); !errors.Is(err, runner.ErrStatus) {
			t.Error("a round has taken it:", err)
		}
		for _, none := range []string{"m2", "m9"} {
			if _, err := w.Unqueue(t.Context(), none); !errors.Is(err, store.ErrNotFound) {
				t.Error(none, err)
			}
		}
		g.open <- struct{}{}
		g.open <- struct{}{}
		if a, c := await(t, first), await(t, third); a.Round != 1 || c.Round != 2 || c.Text != "3: three" {
			t.Errorf("%+v\n%+v", a, c)
		}
		if state := await(t, second); state.Status != engine.Cancelled || state.Run != "" {
			t.Errorf("%+v", state)
		}
	})
}
