package llm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

const provider = "p"

// pass lets time pass, which in a bubble of synctest takes none.
func pass(d time.Duration) { <-time.After(d) }

func claimOf(run, model string, tokens int) llm.LimitRequest {
	return llm.LimitRequest{Run: run, Provider: provider, Model: model, Tokens: tokens}
}

func acquire(t *testing.T, l *llm.Limits, c llm.LimitRequest) func(int) {
	t.Helper()
	release, err := l.Acquire(t.Context(), c)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return release
}

func TestRunsShareLimitsFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := llm.NewLimits(map[string]llm.Limit{provider: {Concurrent: 1}})
		first := acquire(t, l, claimOf("many", "m", 0))
		var mu sync.Mutex
		var order []string
		call := func(run string) {
			release := acquire(t, l, claimOf(run, "m", 0))
			mu.Lock()
			order = append(order, run)
			mu.Unlock()
			release(0)
		}
		for range 1000 {
			go call("many")
		}
		synctest.Wait()
		go call("one")
		synctest.Wait()
		first(0)
		synctest.Wait()
		if i := slices.Index(order, "one"); i < 0 || i > 1 {
			t.Errorf("the run with one call was let through as number %d of %d, want at most one before it", i+1, len(order))
		}
		if len(order) != 1001 || !l.Idle() {
			t.Errorf("%d calls were let through, idle %t", len(order), l.Idle())
		}
	})
}

// A user with many runs does not hold up another user's first call, and a user who always has
// one call waiting does not hold up one with many.
func TestUsersShareLimitsFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := llm.NewLimits(map[string]llm.Limit{provider: {Concurrent: 1}})
		of := func(user, run string) llm.LimitRequest {
			c := claimOf(run, "m", 0)
			c.User = user
			return c
		}
		first := acquire(t, l, of("ada", "first"))
		var mu sync.Mutex
		var order []string
		call := func(user, run string) {
			release := acquire(t, l, of(user, run))
			mu.Lock()
			order = append(order, user)
			mu.Unlock()
			pass(time.Second)
			release(0)
		}
		for i := range 100 {
			go call("ada", fmt.Sprint("run", i))
		}
		synctest.Wait()
		go func() {
			for range 10 {
				call("bob", "loop")
			}
		}()
		go func() {
			for range 10 {
				call("eve", "loop")
			}
		}()
		synctest.Wait()
		first(0)
		pass(time.Hour)
		synctest.Wait()
		last := map[string]int{}
		for i, user := range order {
			last[user] = i
		}
		if slices.Index(order, "bob") > 2 || slices.Index(order, "eve") > 2 || last["bob"] > 45 || last["eve"] > 45 || len(order) != 120 || !slices.Contains(order[:4], "ada") {
			t.Errorf("the last calls are number %v of %d: %.200v", last, len(order), order)
		}
		if !l.Idle() {
			t.Error("calls are left")
		}
	})
}

// Whatever runs have waiting, they are let through in turn, each in the order
// in which it asked.
func TestRunsTakeTurnsAndEachKeepsItsOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		asked := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 30).Draw(rt, "asked")
		var got, want []string
		synctest.Test(t, func(t *testing.T) {
			l := llm.NewLimits(map[string]llm.Limit{"p/m": {Concurrent: 1}})
			first := acquire(t, l, claimOf("z", "m", 0))
			for i, run := range asked {
				go func() {
					release := acquire(t, l, claimOf(run, "m", 0))
					got = append(got, fmt.Sprint(run, i)) // one call at a time
					release(0)
				}()
				synctest.Wait()
			}
			first(0)
			synctest.Wait()
		})
		var runs []string
		waiting := make(map[string][]string)
		for i, run := range asked {
			if !slices.Contains(runs, run) {
				runs = append(runs, run)
			}
			waiting[run] = append(waiting[run], fmt.Sprint(run, i))
		}
		for len(want) < len(asked) {
			for _, run := range runs {
				if w := waiting[run]; len(w) > 0 {
					want, waiting[run] = append(want, w[0]), w[1:]
				}
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("let through %v, want %v", got, want)
		}
	})
}

func TestSmallCallsDoNotOvertakeALargeOneForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := llm.NewLimits(map[string]llm.Limit{provider: {Tokens: 100}})
		for range 10 { // one each six seconds fills the minute
			acquire(t, l, claimOf("small", "m", 10))(10)
			pass(6 * time.Second)
		}
		ctx, stop := context.WithCancel(t.Context())
		var small sync.WaitGroup
		small.Go(func() {
			for range 1000 {
				release, err := l.Acquire(ctx, claimOf("small", "other", 10))
				if err != nil {
					return
				}
				release(10)
			}
		})
		began := time.Now()
		acquire(t, l, claimOf("large", "m", 90))(90)
		if waited := time.Since(began); waited > time.Minute {
			t.Errorf("the large call waited for %v, want what it takes for the minute to pass", waited)
		}
		stop()
		small.Wait()
	})
}

func TestPauseAppliesToOneModelForAllRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := llm.NewLimits(map[string]llm.Limit{provider: {Requests: 100}})
		start := time.Now()
		l.Pause(provider, "m", 30*time.Second)
		l.Pause(provider, "m", 10*time.Second) // ends before
		acquire(t, l, claimOf("a", "other", 0))(0)
		if time.Since(start) != 0 {
			t.Error("another model was held as well")
		}
		var reported []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			c := claimOf("a", "m", 0)
			c.Waiting = func(h llm.LimitWait) { reported = append(reported, fmt.Sprint(h.Key, " ", h.AtLeast, " ", h.Paused)) }
			acquire(t, l, c)(0)
		}()
		pass(20 * time.Second)
		l.Pause(provider, "m", 25*time.Second)
		<-done
		if waited := time.Since(start); waited != 45*time.Second {
			t.Errorf("the call began after %v, want the end of the second pause", waited)
		}
		if want := []string{"p/m 30s true", "p/m 25s true"}; !slices.Equal(reported, want) {
			t.Errorf("reported %v, want %v", reported, want)
		}
	})
}

func TestRetryAfterOverAMinuteFailsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := llm.NewLimits(map[string]llm.Limit{"p/m": {Concurrent: 1}})
		release := acquire(t, l, claimOf("a", "m-mini", 0))
		waiting := make(chan error)
		go func() {
			_, err := l.Acquire(t.Context(), claimOf("b", "m-mini", 0))
			waiting <- err
		}()
		synctest.Wait()
		l.Pause(provider, "m-maxi", time.Hour) // the same key
		_, err := l.Acquire(t.Context(), claimOf("c", "m-mini", 0))
		for _, err := range []error{err, <-waiting} {
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Code != engine.CodeModelRateLimited || !e.Retry || e.RetryAfter != time.Hour {
				t.Errorf("the error is %#v", err)
			}
		}
		release(0)
		if !l.Idle() {
			t.Error("something is still held")
		}
	})
}

func TestCancelledCallLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := llm.NewLimits(map[string]llm.Limit{provider: {Tokens: 100}})
		acquire(t, l, claimOf("a", "m", 50))(50)
		ctx, giveUp := context.WithCancel(t.Context())
		start := time.Now()
		go func() {
			if _, err := l.Acquire(ctx, claimOf("large", "m", 100)); !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
		}()
		synctest.Wait()
		time.AfterFunc(time.Second, giveUp)
		acquire(t, l, claimOf("small", "m", 10))(10)
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("the call behind waited for %v, want until the one before gave up", waited)
		}
	})
}

// What is let through at the moment it gives up is either made or not; where
// it is not nothing of it counts.
func TestCallAdmittedWhileCancelledReleasesItsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gaveUp := 0
		for range 100 {
			l := llm.NewLimits(map[string]llm.Limit{provider: {Concurrent: 1, Requests: 2, Tokens: 20}})
			release := acquire(t, l, claimOf("a", "m", 10))
			ctx, cancel := context.WithCancel(t.Context())
			c := claimOf("b", "m", 10)
			c.Waiting = func(llm.LimitWait) {
				cancel()
				release(10)
			}
			again, err := l.Acquire(ctx, c)
			if err != nil {
				gaveUp++
				start := time.Now()
				again = acquire(t, l, claimOf("c", "m", 10))
				if time.Since(start) != 0 {
					t.Fatal("the call that gave up counts")
				}
			}
			again(10)
			if !l.Idle() {
				t.Fatal("something is still held")
			}
		}
		if gaveUp == 0 {
			t.Error("no call gave up")
		}
	})
}

func TestWaitReportsTheLimitingKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := llm.NewLimits(map[string]llm.Limit{provider: {Concurrent: 2}, "p/m": {Requests: 1}})
		acquire(t, l, claimOf("a", "m-2025-01-01", 0))(0)
		pass(15 * time.Second)
		c := claimOf("a", "m", 0)
		var reported []string
		c.Waiting = func(h llm.LimitWait) { reported = append(reported, fmt.Sprint(h.Key, " ", h.AtLeast, " ", h.Paused)) }
		acquire(t, l, c) // and kept
		hold := acquire(t, l, claimOf("a", "n", 0))
		c.Model = "n"
		time.AfterFunc(time.Second, func() { hold(0) })
		acquire(t, l, c)
		l = llm.NewLimits(map[string]llm.Limit{provider: {Tokens: 30}})
		for range 3 {
			acquire(t, l, claimOf("a", "m", 10))
			pass(10 * time.Second)
		}
		c.Tokens = 20
		acquire(t, l, c)
		if want := []string{"p/m 45s false", "p 0s false", "p 40s false"}; !slices.Equal(reported, want) {
			t.Errorf("reported %v, want %v", reported, want)
		}
	})
}

func TestActualTokensReplaceTheEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := llm.NewLimits(map[string]llm.Limit{provider: {Tokens: 100}})
		start := time.Now()
		release := acquire(t, l, claimOf("a", "m", 500)) // counts as 100
		release(20)
		release(90) // says nothing any more
		acquire(t, l, claimOf("a", "m", 80))(-1)
		if time.Since(start) != 0 {
			t.Errorf("the second call waited for %v although there was room", time.Since(start))
		}
		acquire(t, l, claimOf("a", "m", 1))
		if time.Since(start) != time.Minute {
			t.Errorf("the third waited for %v, want a minute: what is not known counts as estimated", time.Since(start))
		}
	})
}

func TestEndedContextStartsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := llm.NewLimits(nil)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := l.Acquire(ctx, claimOf("a", "m", 0)); !errors.Is(err, cause) {
			t.Errorf("the error is %v, want the cause", err)
		}
	})
}
