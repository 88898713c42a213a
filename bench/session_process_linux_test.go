package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/store/sqlite"
)

// roundVar makes the process that childVar makes have a round of a session; the
// path is its only argument.
const roundVar = "WEIR_BENCH_ROUND"

// roundReport is what such a process says, in nanoseconds.
type roundReport struct {
	// Open is the time to open the file and the library, Model from there to the
	// call of the model, Done to the end of the round. CPU is the processor time of
	// all that.
	Open, Model, Done, CPU int64
}

// roundMain opens a session, says something in it, and writes a roundReport to the
// standard output.
func roundMain(path string) error {
	began, before := time.Now(), cpuTimeUsed()
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	var r roundReport
	model := &answerModel{called: func() { r.Model = int64(time.Since(began)) }}
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"answering": model}})
	if err != nil {
		return err
	}
	f, err := w.Parse("talk.yaml", fmt.Appendf(nil, sessionFlow, ""))
	if err != nil {
		return err
	}
	r.Open = int64(time.Since(began))
	talk, err := w.Session(ctx, f, weir.SessionOptions{User: "u", Thread: "t"})
	if err != nil {
		return err
	}
	turn, err := talk.Send(ctx, "Is there a berth for a ship of 12 metres?", weir.SendOptions{})
	if err != nil {
		return err
	}
	if _, err := turn.Wait(ctx); err != nil {
		return err
	}
	r.Done, r.CPU = int64(time.Since(began)), cpuTimeUsed()-before
	r.Model, r.Done = r.Model-r.Open, r.Done-r.Open
	if err := w.Close(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// BenchmarkRoundInANewProcess measures the first round of a session that a process
// of the operating system has: to open the file, from then to the call of the model
// and to the end of the round. The system's cache of the file is warm, everything in
// the process is cold.
func BenchmarkRoundInANewProcess(b *testing.B) {
	for _, n := range []int{20, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := storeWithHistory(b, n)
			var open, model, done, cpu []time.Duration
			b.ResetTimer()
			for range b.N {
				r := roundInChild(b, path)
				open, model = append(open, time.Duration(r.Open)), append(model, time.Duration(r.Model))
				done, cpu = append(done, time.Duration(r.Done)), append(cpu, time.Duration(r.CPU))
			}
			b.ReportMetric(median(open), "ms/open")
			b.ReportMetric(median(model), "ms/model-call")
			b.ReportMetric(median(done), "ms/round")
			b.ReportMetric(median(cpu), "cpu-ms")
		})
	}
}

func roundInChild(b *testing.B, path string) (r roundReport) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+path, roundVar+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		b.Fatal(err)
	}
	return r
}
