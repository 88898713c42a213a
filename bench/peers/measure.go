package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// job runs a prepared graph once and checks its result.
type job func() error

// contender is one engine in one mode. Prepare returns no job where the mode
// cannot run the shape; preparing is not measured.
type contender struct {
	name    string
	prepare func(context.Context, shape) (job, error)
}

// result is what one contender needed for a node, medians over the rounds.
type result struct {
	name   string
	nanos  float64
	allocs float64
	bytes  float64
}

// sample is one round of one contender.
type sample struct{ nanos, allocs, bytes float64 }

// measure runs all contenders in turn, round after round, so that what else
// the machine does hits them alike.
func measure(ctx context.Context, s shape, all []contender, rounds int, each time.Duration) ([]result, error) {
	var names []string
	var jobs []job
	for _, c := range all {
		j, err := c.prepare(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("prepare %s of %s: %w", s.name, c.name, err)
		}
		if j == nil {
			continue
		}
		if err := j(); err != nil { // warm
			return nil, fmt.Errorf("run %s of %s: %w", s.name, c.name, err)
		}
		names, jobs = append(names, c.name), append(jobs, j)
	}
	samples := make([][]sample, len(jobs))
	for range rounds {
		for i, j := range jobs {
			one, err := round(j, s.nodes*max(s.runs, 1), each)
			if err != nil {
				return nil, fmt.Errorf("run %s of %s: %w", s.name, names[i], err)
			}
			samples[i] = append(samples[i], one)
		}
	}
	out := make([]result, len(jobs))
	for i := range jobs {
		out[i] = result{
			names[i],
			median(samples[i], func(s sample) float64 { return s.nanos }),
			median(samples[i], func(s sample) float64 { return s.allocs }),
			median(samples[i], func(s sample) float64 { return s.bytes }),
		}
	}
	return out, nil
}

// round repeats a job for at least the given time.
func round(j job, nodes int, each time.Duration) (sample, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, runs := time.Now(), 0
	for time.Since(start) < each {
		if err := j(); err != nil {
			return sample{}, err
		}
		runs++
	}
	spent := time.Since(start)
	runtime.ReadMemStats(&after)
	n := float64(runs * nodes)
	return sample{
		float64(spent.Nanoseconds()) / n,
		float64(after.Mallocs-before.Mallocs) / n,
		float64(after.TotalAlloc-before.TotalAlloc) / n,
	}, nil
}

func median(all []sample, of func(sample) float64) float64 {
	v := make([]float64, len(all))
	for i, s := range all {
		v[i] = of(s)
	}
	slices.Sort(v)
	return v[len(v)/2]
}
