package trajectory

import (
	"context"
	"errors"
	"fmt"
)

// Storage keeps rounds. It is safe for concurrent use.
type Storage interface {
	// Save stores a round in place of what was stored of it; as a whole or not
	// at all.
	Save(ctx context.Context, r Record) error
	// Load returns a round, or ErrNotFound.
	Load(ctx context.Context, k Key) (Record, error)
	// List returns what is stored that fits the filter, ordered by user,
	// session, sub-agent and round.
	List(ctx context.Context, f Filter) ([]Key, error)
	// Adjacent returns the rounds on either side of the key's round that are stored
	// of its agent: the latest before it and the first after it, 0 where there
	// is none. It reads no round, and takes little however many there are.
	Adjacent(ctx context.Context, k Key) (before, after int, err error)
	// Delete removes the rounds that fit the filter for good, and returns how
	// many they were; the zero filter is for all. Where it fails some may be
	// gone, and it can be called again.
	Delete(ctx context.Context, f Filter) (int, error)
}

// ErrNotFound: nothing is stored under the key.
var ErrNotFound = errors.New("no such trajectory")

// Filter says which rounds are meant; what is nil may be anything.
type Filter struct {
	User, Session *string
	Round, Sub    *int
}

// Match reports whether the filter lets the key through.
func (f Filter) Match(k Key) bool {
	return matches(f.User, k.User) && matches(f.Session, k.Session) && matches(f.Round, k.Round) && matches(f.Sub, k.Sub)
}

func matches[T comparable](want *T, have T) bool { return want == nil || *want == have }

// AgentFilter is the filter for all rounds of one agent in a session.
func AgentFilter(user, session string, sub int) Filter {
	return Filter{User: &user, Session: &session, Sub: &sub}
}

// SessionFilter is the filter for all rounds of all agents in a session.
func SessionFilter(user, session string) Filter {
	return Filter{User: &user, Session: &session}
}

// LoadGraph joins all that is stored of an agent in a session. It is ErrNotFound
// where there is nothing.
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

// CopyRounds stores in one storage what another has that fits the filter, and returns
// how many rounds that were.
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

// Mirrored is a storage that saves to two and reads what the first does not have
// from the second.
type Mirrored struct{ First, Second Storage }

// Save saves to both; where one fails the other has been tried all the same.
func (b Mirrored) Save(ctx context.Context, r Record) error {
	return errors.Join(b.First.Save(ctx, r), b.Second.Save(ctx, r))
}

// Load reads from the first, or where it has nothing from the second.
func (b Mirrored) Load(ctx context.Context, k Key) (Record, error) {
	r, err := b.First.Load(ctx, k)
	if errors.Is(err, ErrNotFound) {
		return b.Second.Load(ctx, k)
	}
	return r, err
}

// List lists what either has.
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

// Adjacent returns the nearest rounds that either has.
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

// Delete deletes from both; where one fails the other has been tried all the
// same. It returns how many rounds either had.
func (b Mirrored) Delete(ctx context.Context, f Filter) (int, error) {
	keys, _ := b.List(ctx, f) // what cannot be listed may well be deleted
	one, err := b.First.Delete(ctx, f)
	two, second := b.Second.Delete(ctx, f)
	if err := errors.Join(err, second); err != nil {
		return max(one, two), err
	}
	return max(len(keys), one, two), nil
}
