package server_test

import (
	"errors"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// TestClientListsReadsAndCancels uses the operations of the client on a run that waits for
// a person, as its user and as another one.
func TestClientListsReadsAndCancels(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	defer p.close()
	ada, eve := p.anyone("ada"), p.anyone("eve")
	flows, err := ada.Flows(t.Context())
	if err != nil || len(flows) != 4 || flows[0].Name != "ask" || flows[0].Inputs["required"] == nil {
		t.Fatal(flows, err)
	}
	started, err := ada.StartRun(t.Context(), client.Start{Flow: "ask", Inputs: map[string]any{"name": "Ada"}, Wait: 60})
	if err != nil || started.Status != "paused" {
		t.Fatal(started, err)
	}
	run, err := ada.Run(t.Context(), started.ID)
	if err != nil || run.Status != "paused" || len(run.Interrupts) != 1 || run.Interrupts[0].Prompt != "Approve?" {
		t.Fatal(run, err)
	}
	var refused *client.Error
	if _, err := eve.Cancel(t.Context(), run.ID, "mine", 0); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("another user's cancellation: %v", err)
	}
	if run, err = ada.Cancel(t.Context(), run.ID, "not needed", 60); err != nil || run.Status != "cancelled" {
		t.Error(run, err)
	}
	if run, err = ada.Run(t.Context(), run.ID); err != nil || run.Status != "cancelled" || len(run.Interrupts) != 0 {
		t.Error(run, err)
	}
}
