package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// A process reports its commits and messages to the others with NOTIFY, after the transaction: a notice inside of it would
// make the commits of all processes wait for each other. Notices have ids and no contents. They are hints: a process that
// dies before it sends one, and a listener that reconnects, lose some, and readers poll as well.

const (
	// notifyInterval is the least time between two notices of a process.
	notifyInterval = 20 * time.Millisecond
	// maxNotice is the length of a notice in bytes; PostgreSQL takes less than 8000.
	maxNotice = 7000
	// everything stands in a notice for more changes than one can name.
	everything = "*"
	// maxNoticeIDs is the number of changes that one process reports one by one.
	maxNoticeIDs = 500
	// closeNotice limits how long Close waits for the last notice.
	closeNotice = time.Second
)

// notifier sends and receives notices.
type notifier struct {
	s      *Store
	config *pgx.ConnConfig
	ctx    context.Context //nolint:containedctx // lives as long as the store
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu       sync.Mutex // guards the following fields
	pending  map[string]bool
	sending  bool
	last     time.Time // when a notice was sent last
	channel  string    // of this schema; "" before it is read
	watches  map[*watch]bool
	listens  bool
	active   bool // the connection listens
	isClosed bool
}

// watch is a call of Watch.
type watch struct {
	topic   store.Topic
	matches func(id string) bool
	changed chan struct{}
}

func newNotifier(s *Store, config *pgx.ConnConfig) *notifier {
	n := &notifier{s: s, config: config.Copy(), pending: map[string]bool{}, watches: map[*watch]bool{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// noticeItem is the form of a change in a notice. Ids with characters that separate items are left to polling.
func noticeItem(topic store.Topic, id string) string {
	if id = escapeText(id); strings.ContainsAny(id, "\n") {
		return everything
	}
	return string(topic[:1]) + id
}

// report has a change sent to the listeners.
func (n *notifier) report(topic store.Topic, ids ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range ids {
		if item := noticeItem(topic, id); len(n.pending) < maxNoticeIDs {
			n.pending[item] = true
		} else {
			n.pending[everything] = true
		}
	}
	if n.sending || n.isClosed || len(n.pending) == 0 {
		return
	}
	n.sending = true
	wait := notifyInterval - time.Since(n.last)
	n.loops.Go(func() {
		if wait > 0 {
			t := time.NewTimer(wait)
			defer t.Stop()
			select {
			case <-t.C:
			case <-n.ctx.Done(): // Close sends them
				return
			}
		}
		n.send()
	})
}

// send sends what is pending, also while the store closes. What cannot be sent is lost.
func (n *notifier) send() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), closeNotice)
	defer cancel()
	n.mu.Lock()
	items := slices.Sorted(maps.Keys(n.pending))
	clear(n.pending)
	n.sending, n.last = false, time.Now()
	n.mu.Unlock()
	for _, notice := range splitNotices(items) {
		channel, err := n.channelName(ctx)
		if err == nil {
			// The notice need not survive a crash, and does not wait for the disk.
			_, err = n.s.pool.Exec(ctx, "SELECT set_config('synchronous_commit', 'off', TRUE), pg_notify($1, $2)", channel, notice)
		}
		if err != nil {
			return
		}
	}
}

// splitNotices joins items to notices of at most maxNotice bytes.
func splitNotices(items []string) (out []string) {
	if slices.Contains(items, everything) {
		return []string{everything}
	}
	var b strings.Builder
	for _, x := range items {
		if len(x) > maxNotice {
			return []string{everything}
		}
		if b.Len() > 0 && b.Len()+1+len(x) > maxNotice {
			out = append(out, b.String())
			b.Reset()
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(x)
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}

// channelName returns the channel of the schema: notices are of a whole database.
func (n *notifier) channelName(ctx context.Context) (string, error) {
	n.mu.Lock()
	name := n.channel
	n.mu.Unlock()
	if name != "" {
		return name, nil
	}
	var schema int64
	if err := n.s.pool.QueryRow(ctx, "SELECT current_schema()::regnamespace::oid::bigint").Scan(&schema); err != nil {
		return "", err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.channel = fmt.Sprintf("weir_%d", schema)
	return n.channel, nil
}

// close sends what is pending and ends the goroutines.
func (n *notifier) close() {
	n.mu.Lock()
	n.isClosed = true
	pending := len(n.pending) > 0
	n.mu.Unlock()
	n.cancel()
	n.loops.Wait()
	if pending {
		n.send()
	}
}

// Watch implements store.Watcher. The first call connects.
func (s *Store) Watch(topic store.Topic, matches func(id string) bool) (changed <-chan struct{}, stop func()) {
	n := s.notices
	w := &watch{topic, matches, make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watches[w] = true
	if n.active {
		w.changed <- struct{}{} // for what changed before
	}
	if !n.listens && !n.isClosed {
		n.listens = true
		n.loops.Go(n.listen)
	}
	return w.changed, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.watches, w)
	}
}

// listen receives notices until the store closes. It connects again after it lost its connection.
func (n *notifier) listen() {
	for attempt := 1; n.ctx.Err() == nil; attempt++ {
		start := time.Now()
		n.receive()
		if time.Since(start) > time.Minute {
			attempt = 1
		}
		if pause(n.ctx, min(attempt+5, 10)) != nil {
			return
		}
	}
}

// receive receives notices on a connection of its own until that is lost.
func (n *notifier) receive() {
	conn, err := pgx.ConnectConfig(n.ctx, n.config)
	if err != nil {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), closeNotice)
		defer cancel()
		_ = conn.Close(ctx) // nothing is lost with it
	}()
	channel, err := n.channelName(n.ctx)
	if err == nil {
		_, err = conn.Exec(n.ctx, "LISTEN "+channel)
	}
	if err != nil {
		return
	}
	n.setActive(true)
	defer n.setActive(false)
	n.wake(everything) // for what changed before
	for {
		notice, err := conn.WaitForNotification(n.ctx)
		if err != nil {
			return
		}
		n.wake(notice.Payload)
	}
}

func (n *notifier) setActive(active bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.active = active
}

// wake wakes the watches that a notice concerns.
func (n *notifier) wake(notice string) {
	n.mu.Lock()
	watches := slices.Collect(maps.Keys(n.watches))
	n.mu.Unlock()
	for _, w := range watches {
		if w.concerns(notice) {
			select {
			case w.changed <- struct{}{}:
			default: // it has a value already
			}
		}
	}
}

func (w *watch) concerns(notice string) bool {
	if notice == everything {
		return true
	}
	for item := range strings.SplitSeq(notice, "\n") {
		if id, ok := strings.CutPrefix(item, string(w.topic[:1])); ok && w.matches(unescapeText(id)) {
			return true
		}
	}
	return false
}
