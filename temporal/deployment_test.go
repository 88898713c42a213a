//go:build linux

package temporal_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/temporal"
)

// makeCurrent makes a version the current one of a deployment, once a worker of it polls.
func (w *world) makeCurrent(deployment, build string) {
	w.t.Helper()
	handle := w.sdk().WorkerDeploymentClient().GetHandle(deployment)
	var err error
	w.until("the version "+build+" is current", func() bool {
		_, err = handle.SetCurrentVersion(w.t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
		return err == nil
	})
}

// TestRunsContinueUnderANewVersionOfTheProgram has a version of a deployment execute runs until they wait, or until a worker of it
// is in the middle of an effect, and a new version continue them. The new program has one more node type.
func TestRunsContinueUnderANewVersionOfTheProgram(t *testing.T) {
	w := newWorld(t)
	deployment := "weir-" + runner.NewID()
	x := w.client()
	stopFirst := w.worker(temporal.WorkerOptions{Deployment: deployment, BuildID: "1", Sweep: time.Hour})
	asked := w.start(x, w.flow(x, asking), weir.Start{})
	w.makeCurrent(deployment, "1")
	w.wait(asked, weir.Paused)
	timed := w.start(x, w.flow(x, timerFlow), weir.Start{Inputs: map[string]any{"text": "t"}})
	begun, released := make(chan struct{}, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	w.ledger.setCheck(func(string, string) {
		begun <- struct{}{}
		<-released
	})
	paid := w.start(x, w.flow(x, paying), weir.Start{})
	<-begun

	more := append(types(w.ledger.server.URL), weir.Func("more", func(weir.Ctx, payIn) (payOut, error) { return payOut{}, nil }))
	w.versionedWorker(weir.Options{Executes: temporal.Name, Types: more}, temporal.WorkerOptions{Deployment: deployment, BuildID: "2", Sweep: time.Hour})
	w.makeCurrent(deployment, "2")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stopFirst()
	}()
	release()
	<-stopped
	if err := asked.Answer(t.Context(), "ask:ask#1", 3); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*weir.Run{asked, timed, paid} {
		w.wait(r, weir.Completed)
		w.until("its workflow completes", func() bool { return w.workflowStatus(r.ID) == "Completed" })
	}
	if v := w.describe(asked.ID).GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion(); v.GetBuildId() != "2" || v.GetDeploymentName() != deployment {
		t.Errorf("the run that was asked ended under %v", v)
	}
	after := w.start(x, w.flow(x, paying), weir.Start{})
	w.wait(after, weir.Completed)
}

func TestAVersionHasADeploymentAndABuild(t *testing.T) {
	w := newWorld(t)
	for _, o := range []temporal.WorkerOptions{{Deployment: "d"}, {BuildID: "1"}} {
		c, err := temporal.Dial(t.Context(), w.options())
		if err != nil {
			t.Fatal(err)
		}
		if err := temporal.NewWorker(w.open(weir.Options{Executes: temporal.Name}), c, o).Start(); err == nil || !strings.Contains(err.Error(), "build id") {
			t.Errorf("%+v: %v", o, err)
		}
		_ = c.Close()
	}
}
