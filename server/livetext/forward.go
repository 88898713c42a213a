package livetext

import (
	"context"
	"iter"
	"time"
)

// Heartbeat is how often a stream without text shows its client that it is still there.
const Heartbeat = 15 * time.Second

// Forward calls each with the items of a stream, one at a time, until the stream ends, and beat whenever a Heartbeat
// has passed since it began. It returns the first error of the stream, of each or of beat. The stream must end when ctx
// does; Forward may return before.
func Forward[T any](ctx context.Context, stream iter.Seq2[T, error], each func(*T) error, beat func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	items, failed := channelOf(ctx, stream)
	t := time.NewTicker(Heartbeat)
	defer t.Stop()
	for {
		var err error
		select {
		case it, ok := <-items:
			if !ok {
				return <-failed
			}
			err = each(&it)
		case <-t.C:
			err = beat()
		}
		if err != nil {
			return err
		}
	}
}

// ForwardPaced is Forward for streams whose items are taken one at a time and passed on together: it calls flush after items were
// taken, at most once in every, and once more when the stream has ended without an error.
func ForwardPaced[T any](ctx context.Context, stream iter.Seq2[T, error], every time.Duration, each func(*T), flush, beat func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	items, failed := channelOf(ctx, stream)
	beats, pace := time.NewTicker(Heartbeat), time.NewTicker(every)
	defer beats.Stop()
	defer pace.Stop()
	for taken := false; ; {
		var err error
		select {
		case it, ok := <-items:
			if !ok {
				if err = <-failed; err == nil && taken {
					err = flush()
				}
				return err
			}
			each(&it)
			taken = true
		case <-pace.C:
			if taken {
				taken, err = false, flush()
			}
		case <-beats.C:
			err = beat()
		}
		if err != nil {
			return err
		}
	}
}

// channelOf reads a stream until it or ctx ends. The error, nil for none, is there before the items are closed.
func channelOf[T any](ctx context.Context, stream iter.Seq2[T, error]) (<-chan T, <-chan error) {
	items, failed := make(chan T), make(chan error, 1)
	go func() {
		defer close(items)
		defer close(failed)
		for it, err := range stream {
			if err != nil {
				failed <- err
				return
			}
			select {
			case items <- it:
			case <-ctx.Done():
				return
			}
		}
	}()
	return items, failed
}
