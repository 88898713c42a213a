package bench

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weir-run/weir/store"
)

// BenchmarkDelete deletes a session of 10,000 messages from files that have another session
// of so many messages beside it, and compacts the file afterwards. The deletion should cost
// the same in each; the compaction is in proportion to the file.
func BenchmarkDelete(b *testing.B) {
	for _, others := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint("beside ", others), func(b *testing.B) {
			for range b.N {
				deleteBeside(b, others)
			}
		})
	}
}

func deleteBeside(b *testing.B, others int) {
	b.Helper()
	const messages = 10_000
	ctx := b.Context()
	path := storeWithHistory(b, others)
	w, _, s := openSession(b, path, "second", true)
	for n := 0; n < messages; {
		sendMessage(b, s)
		info, err := s.Info(ctx)
		if err != nil || info.Length == n {
			b.Fatalf("%+v %v", info, err)
		}
		n = info.Length
	}
	measure(b, "delete", messages, func() error {
		r, err := w.DeleteSession(ctx, s.ID, store.DeleteOptions{DeferCompaction: true})
		if err == nil && (r.Sessions != 1 || !r.Traces) {
			err = fmt.Errorf("deleted: %+v", r)
		}
		return err
	})
	measure(b, "compact", messages, func() error {
		did, err := w.Compact(ctx)
		if err == nil && !did {
			err = errors.New("nothing was compacted")
		}
		return err
	})
	b.ReportMetric(float64(sizeOf(b, path))/1e6, "MB")
	if err := w.Close(ctx); err != nil {
		b.Fatal(err)
	}
}
