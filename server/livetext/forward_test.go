package livetext_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/server/livetext"
)

// slowStream yields numbers, each after a pause, and then an error if there is one.
func slowStream(ctx context.Context, pause time.Duration, fails error, numbers ...int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for _, n := range numbers {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			if !yield(n, nil) {
				return
			}
		}
		if fails != nil {
			yield(0, fails)
		}
	}
}

func TestForwardPassesItemsOnAndBeatsBetweenThem(t *testing.T) {
	t.Parallel()
	lost, refused, gone := errors.New("lost"), errors.New("refused"), errors.New("gone")
	for name, c := range map[string]struct {
		pause              time.Duration
		fails, each, beat  error
		want               error
		wantItems, minBeat int
	}{
		"fast":                        {pause: time.Second, wantItems: 3},
		"slow":                        {pause: 2*livetext.Heartbeat + time.Second, wantItems: 3, minBeat: 6},
		"the stream fails":            {pause: time.Second, fails: lost, want: lost, wantItems: 3},
		"an item is refused":          {pause: time.Second, each: refused, want: refused, wantItems: 1},
		"the client of a beat is off": {pause: time.Hour, beat: gone, want: gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var got []int
				beats := 0
				err := livetext.Forward(ctx, slowStream(ctx, c.pause, c.fails, 1, 2, 3), func(n *int) error {
					got = append(got, *n)
					return c.each
				}, func() error {
					beats++
					return c.beat
				})
				if !errors.Is(err, c.want) || !slices.Equal(got, []int{1, 2, 3}[:c.wantItems]) || beats < c.minBeat {
					t.Errorf("%v, items %v, %d beats; want %v, %d items, at least %d beats", err, got, beats, c.want, c.wantItems, c.minBeat)
				}
			})
		})
	}
}
