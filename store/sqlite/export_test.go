package sqlite

import (
	"context"

	"github.com/weir-run/weir/store"
)

// WithDriver returns options under which a store uses another driver of database/sql.
func WithDriver(o Options, name string) Options {
	o.driver = name
	return o
}

// StartRound starts the next round of a session without a commit, as earlier versions did,
// and returns the session as it is then. If a round has taken the message, the message says
// so.
func (s *Store) StartRound(ctx context.Context, queued string, n store.NewRun) (x store.Session, q store.QueuedMessage, err error) {
	err = s.write(ctx, "start round "+n.ID, func(ctx context.Context) error {
		w := writeTx{s: s, ctx: ctx}
		if q, err = findQueued(ctx, s.prepared(), queued); err != nil {
			return wrap("message "+queued, err)
		}
		state, err := w.session("id", q.Session)
		if err != nil {
			return err
		}
		if err := w.startRound(&q, n, state.fence); err != nil {
			return err
		}
		x, err = scanSession(s.prepared().QueryRowContext(ctx, selectSession+" WHERE s.id = ?", q.Session))
		return err
	})
	return x, q, err
}
