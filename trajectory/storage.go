package trajectory

import (
	"context"
	"errors"
	"fmt"
)

// Storage stores rounds. It is safe for concurrent use.
type Storage interface {
	// Save replaces a stored round, completely or not at all.
	Save(ctx context.Context, r Record) error
	// Load returns a round, or ErrNotFound.
	Load(ctx context.Context, k Key) (Record, error)
	// List returns the stored keys that match the filter, ordered by user, session, sub-agent and round.
	List(ctx context.Context, f Filter) ([]Key, error)
	// Adjacent returns the stored neighbours of the key's round for its agent: the latest earlier round and the first
	// later one, 0 for none. It reads no round, and its cost does not grow with their number.
	Adjacent(ctx context.Context, k Key) (before, after int, err error)
	// Delete permanently removes the rounds that match the filter, and returns their number; the zero filter matches
	// all. If it fails, some may have been removed, and it can be called again.
	Delete(ctx context.Context, f Filter) (int, error)
}

// ErrNotFound means that nothing is stored under the key.
var ErrNotFound = errors.New("no such trajectory")

// Filter selects rounds; a nil field matches everything.
type Filter struct {
	User, Session *string
	Round, Sub    *int
}

// Match reports whether the key matches.
func (f Filter) Match(k Key) bool {
	return matches(f.User, k.User) && matches(f.Session, k.Session) && matches(f.Round, k.Round) && matches(f.Sub, k.Sub)
}

func matches[T comparable](want *T, have T) bool { return want == nil || *want == have }

// AgentFilter matches all rounds of one agent in a session.
func AgentFilter(user, session string, sub int) Filter {
	return Filter{User: &user, Session: &session, Sub: &sub}
}

// SessionFilter matches all rounds of all agents in a session.
func SessionFilter(user, session string) Filter {
	return Filter{User: &user, Session: &session}
}

// LoadGraph joins all stored rounds of an agent in a session. It returns ErrNotFound if there are none.
func LoadGraph(ctx context.Context, s Storage, user, session string, sub int) (*Graph, error) {
	keys, err := s.List(ctx, AgentFilter(user, session, sub))
	if err != nil {
		return nil, fmt.Errorf("load trajectory of session %s: %w", session, err)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("session %s: %w", session, ErrNotFound)
	}
	records := make([]Record, len(keys))
	for i, k := range keys {
		if records[i], err = s.Load(ctx, k); err != nil {
			return nil, fmt.Errorf("load trajectory: %w", err)
		}
	}
	return JoinRounds(records...)
}

// CopyRounds copies the rounds that match the filter to another storage, and returns their number.
func CopyRounds(ctx context.Context, to, from Storage, f Filter) (int, error) {
	keys, err := from.List(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("copy trajectories: %w", err)
	}
	for i, k := range keys {
		r, err := from.Load(ctx, k)
		if err != nil {
			return i, fmt.Errorf("copy trajectories: %w", err)
		}
		if err := to.Save(ctx, r); err != nil {
			return i, fmt.Errorf("copy trajectories: %w", err)
		}
	}
	return len(keys), nil
}

// Mirrored saves to two storages and reads from the second what the first does not have.
type Mirrored struct{ First, Second Storage }

// Save saves to both; if one fails, the other is tried nevertheless.
func (b Mirrored) Save(ctx context.Context, r Record) error {
	return errors.Join(b.First.Save(ctx, r), b.Second.Save(ctx, r))
}

// Load reads from the first, or from the second if the first does not have the round.
func (b Mirrored) Load(ctx context.Context, k Key) (Record, error) {
	r, err := b.First.Load(ctx, k)
	if errors.Is(err, ErrNotFound) {
		return b.Second.Load(ctx, k)
	}
	return r, err
}

// List lists the keys of both.
func (b Mirrored) List(ctx context.Context, f Filter) ([]Key, error) {
	one, err := b.First.List(ctx, f)
	if err != nil {
		return nil, err
	}
	two, err := b.Second.List(ctx, f)
	if err != nil {
		return nil, err
	}
	return SortKeys(append(one, two...)), nil
}

// Adjacent returns the nearest rounds in either.
func (b Mirrored) Adjacent(ctx context.Context, k Key) (before, after int, err error) {
	before, after, err = b.First.Adjacent(ctx, k)
	if err != nil {
		return 0, 0, err
	}
	earlier, later, err := b.Second.Adjacent(ctx, k)
	if err != nil {
		return 0, 0, err
	}
	if later > 0 && (after == 0 || later < after) {
		after = later
	}
	return max(before, earlier), after, nil
}

// Delete deletes from both; if one fails, the other is tried nevertheless. It returns the number of distinct rounds.
func (b Mirrored) Delete(ctx context.Context, f Filter) (int, error) {
	keys, _ := b.List(ctx, f) // deletion may succeed where listing fails
	one, err := b.First.Delete(ctx, f)
	two, second := b.Second.Delete(ctx, f)
	if err := errors.Join(err, second); err != nil {
		return max(one, two), err
	}
	return max(len(keys), one, two), nil
}
