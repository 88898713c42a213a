package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// childVar names the environment variable that holds a childTask, and makes
// the test binary the process that resumes the run.
const childVar = "WEIR_BENCH_RESUME"

// childTask is the task of a process that resumes.
type childTask struct {
	Path, Ask string
	// Began is when the process was asked for, Unix nanoseconds.
	Began int64
}

// childReport is what it says, in nanoseconds.
type childReport struct {
	// Boot is from the request for the process to its first instruction of
	// ours, Open the time to open file and library, Next from the answer to the
	// start of the next node, Model to the model call behind it. CPU is the
	// processor time of Next, which other processes do not lengthen as much.
	Boot, Open, Next, Model, CPU int64
	Ask                          string // the question that is open now
}

// TestMain is here because the benchmark of a resume in a new process starts
// this binary again.
func TestMain(m *testing.M) {
	task := os.Getenv(childVar)
	if task == "" {
		os.Exit(m.Run())
	}
	do := resumeMain
	switch {
	case os.Getenv(roundVar) != "":
		do = roundMain
	case os.Getenv(holdVar) != "":
		do = holdMain
	}
	if err := do(task); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// resumeMain answers the open question of a run and writes a childReport to
// the standard output.
func resumeMain(task string) error {
	boot := time.Now()
	var t childTask
	if err := json.Unmarshal([]byte(task), &t); err != nil {
		return err
	}
	r := childReport{Boot: boot.UnixNano() - t.Began}
	k := &pausedRun{path: t.Path, ask: t.Ask}
	if err := k.connect(context.Background()); err != nil {
		return err
	}
	r.Open = int64(time.Since(boot))
	k.clock, k.used = cpuTimeUsed, cpuTimeUsed()
	next, model, err := k.answer(context.Background())
	if err != nil {
		return err
	}
	r.Next, r.Model, r.CPU, r.Ask = int64(next), int64(model), k.used, k.ask
	if err := k.w.Close(context.Background()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// cpuTimeUsed returns the processor time of this process, in nanoseconds.
func cpuTimeUsed() int64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return r.Utime.Nano() + r.Stime.Nano()
}

// BenchmarkResumeInANewProcess measures what BenchmarkResume does with an
// operating system process of its own for each answer: from the answer to the
// start of the next node, and to the model call behind it; before that, the
// time to open the file. The system's cache of the file is warm, everything in
// the process is cold.
func BenchmarkResumeInANewProcess(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := &pausedRun{}
			k.start(b, n)
			k.close(b)
			var boot, open, next, model, cpu []time.Duration
			b.ResetTimer()
			for range b.N {
				r := k.resumeInChild(b)
				boot, open = append(boot, time.Duration(r.Boot)), append(open, time.Duration(r.Open))
				next, model = append(next, time.Duration(r.Next)), append(model, time.Duration(r.Model))
				cpu = append(cpu, time.Duration(r.CPU))
			}
			b.ReportMetric(median(boot), "ms/boot")
			b.ReportMetric(median(open), "ms/open")
			b.ReportMetric(median(next), "ms/next-node")
			b.ReportMetric(median(model), "ms/model-call")
			b.ReportMetric(median(cpu), "cpu-ms/next-node")
			b.ReportMetric(float64(slices.Min(next).Microseconds())/1000, "least-ms/next-node")
		})
	}
}

// resumeInChild has a new process answer the open question.
func (k *pausedRun) resumeInChild(b *testing.B) childReport {
	b.Helper()
	task, err := json.Marshal(childTask{Path: k.path, Ask: k.ask, Began: time.Now().UnixNano()})
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+string(task))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	var r childReport
	if err := json.Unmarshal(out, &r); err != nil {
		b.Fatal(err)
	}
	k.ask = r.Ask
	return r
}
