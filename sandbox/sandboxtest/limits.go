package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// grace is the time by which a job may exceed its limit on a busy machine.
const grace = 25 * time.Second

func (s *suite) limits(t *testing.T) {
	t.Run("code that never ends is killed", func(t *testing.T) {
		began := time.Now()
		e := s.runFailing(t, &sandbox.Job{Code: s.LoopForever, Limits: sandbox.Limits{Time: time.Second}}, engine.CodeCodeTimeout)
		if took := time.Since(began); took > time.Second+grace {
			t.Errorf("it took %s", took)
		}
		if !strings.Contains(e.Message, "1s") {
			t.Errorf("the message does not say the limit: %s", e.Message)
		}
	})
	t.Run("what was printed before the end is there", func(t *testing.T) {
		r, err := s.runChecked(t.Context(), t, &sandbox.Job{Code: printStatement("so far") + s.LoopForever, Limits: sandbox.Limits{Time: time.Second}})
		if err == nil || r == nil || !strings.HasPrefix(r.Stdout, "so far\n") {
			t.Errorf("the result is %+v, %v", r, err)
		}
	})
	t.Run("a flood of output is cut off", func(t *testing.T) {
		r, err := s.runChecked(t.Context(), t, &sandbox.Job{Code: s.WriteForever, Limits: sandbox.Limits{Output: 100_000}})
		e, _ := errors.AsType[*sandbox.Error](err)
		if e == nil || e.Code != engine.CodeCodeOutput {
			t.Fatalf("the error is %v", err)
		}
		if r != nil && len(r.Stdout) > 100_000 {
			t.Errorf("%d bytes of output are kept", len(r.Stdout))
		}
	})
	t.Run("output up to the limit is kept", func(t *testing.T) {
		r := s.run(t, &sandbox.Job{Code: "print('x' * 99999)\n", Limits: sandbox.Limits{Output: 100_000}})
		if len(r.Stdout) != 100_000 {
			t.Errorf("%d bytes of output are kept", len(r.Stdout))
		}
	})
	for name, code := range map[string]string{"bit by bit": s.AllocateSlowly, "by doubling": s.AllocateDoubling} {
		t.Run("memory taken "+name+" ends the code", func(t *testing.T) {
			_ = s.runFailing(t, &sandbox.Job{Code: code, Limits: sandbox.Limits{Memory: 128 << 20}}, engine.CodeCodeMemory)
		})
	}
	t.Run("memory within the limit is there", func(t *testing.T) {
		r := s.run(t, &sandbox.Job{Code: "l = ['x' * 1000 + str(i) for i in range(20000)]\ncontext['n'] = len(l)\n", Limits: sandbox.Limits{Memory: 256 << 20}})
		expect(t, r, map[string]any{"n": int64(20000)})
	})
}

func (s *suite) concurrentJobs(t *testing.T) {
	t.Run("sixteen jobs at once keep apart", func(t *testing.T) {
		e := s.open(t)
		var wait sync.WaitGroup
		for i := range 16 {
			wait.Go(func() {
				r, err := e.Run(t.Context(), &sandbox.Job{
					Code:    "context['n'] = context['n'] * 2\nprint(inputs['who'])\n",
					Context: map[string]any{"n": int64(i)}, Inputs: map[string]any{"who": fmt.Sprint("job ", i)},
					Limits: sandbox.Limits{Time: 2 * jobTimeout},
				})
				if err != nil {
					t.Errorf("job %d: %v", i, err)
					return
				}
				want := map[string]any{"n": int64(2 * i)}
				if i == 0 {
					want = map[string]any{}
				}
				if got := update(r); !reflect.DeepEqual(got, want) || r.Stdout != fmt.Sprintf("job %d\n", i) {
					t.Errorf("job %d brought %v and %q", i, got, r.Stdout)
				}
			})
		}
		wait.Wait()
	})
	s.repeatedJobs(t)
	s.cancelling(t)
}

// repeatedJobs tests consecutive jobs.
func (s *suite) repeatedJobs(t *testing.T) {
	t.Run("a job leaves nothing to the next", func(t *testing.T) {
		e := s.open(t)
		for i := range 2 {
			r, err := e.Run(t.Context(), &sandbox.Job{Code: "context['seen'] = 'left' in context\nleft = 1\ncontext['left'] = left\n"})
			if err != nil || r.Set["seen"] != false {
				t.Errorf("job %d brought %+v, %v", i, r, err)
			}
		}
	})
	t.Run("the same job brings the same", func(t *testing.T) {
		job := &sandbox.Job{
			Code:    "context['b'] = [k for k in inputs]\ncontext['a'] = str(inputs)\nprint(list(context.keys()))\n",
			Context: map[string]any{"z": int64(1), "y": int64(2), "x": int64(3)},
			Inputs:  map[string]any{"q": int64(1), "p": map[string]any{"s": "t", "r": nil}, "o": 1.5},
		}
		first := s.run(t, job)
		for range 3 {
			again := s.run(t, job)
			if !reflect.DeepEqual(first.Set, again.Set) || first.Stdout != again.Stdout {
				t.Errorf("brought %v %q and then %v %q", first.Set, first.Stdout, again.Set, again.Stdout)
			}
		}
	})
}

// cancelling tests jobs that are cancelled.
func (s *suite) cancelling(t *testing.T) {
	t.Run("a job ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		began := time.Now()
		_, err := s.runChecked(ctx, t, &sandbox.Job{Code: s.LoopForever})
		if err == nil {
			t.Fatal("no error")
		}
		if took := time.Since(began); took > grace {
			t.Errorf("it went on for %s", took)
		}
		if e, _ := errors.AsType[*sandbox.Error](err); e.Code == engine.CodeCodeTimeout {
			t.Errorf("a cancelled job is said to have run too long: %v", e)
		}
	})
	t.Run("a context that has ended runs nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.runChecked(ctx, t, &sandbox.Job{Code: "x = 1"}); err == nil {
			t.Error("no error")
		}
	})
}
