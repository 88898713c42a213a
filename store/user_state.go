package store

import (
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine"
)

// ErrStateConflict: an operation on the state of a user does not fit the value that is stored,
// which was written under another reducer. Nothing of the commit was stored.
var ErrStateConflict = errors.New("the state of the user has changed in a way that the run cannot be combined with")

// UserStateStore keeps values that live as long as a user. A commit with a RunCompleted
// applies its UserState in its transaction: each operation once, to the value that is there
// then. Restore applies none. A commit with an operation that does not fit its value is
// refused with ErrStateConflict. DeleteUser deletes the values of a user; deleting runs and
// sessions leaves them.
type UserStateStore interface {
	// UserState returns the values that a flow keeps for a user, sorted by key; none for a
	// user who has none.
	UserState(ctx context.Context, user, flow string) ([]UserValue, error)
	// UserStates returns the values of all flows for a user, or of all users if user is "",
	// sorted by user, flow and key.
	UserStates(ctx context.Context, user string) ([]UserValue, error)
	// EditUserState applies operations by hand, all or none.
	EditUserState(ctx context.Context, e UserStateEdit) error
}

// UserValue is a value that a flow keeps for a user.
type UserValue struct {
	User, Flow, Key string
	Value           engine.Value
	// Version counts the changes of the value, from 1.
	Version int64
	// Reducer is the engine.ReducerName of the declaration under which a run wrote the
	// value; "" if the value was set by hand.
	Reducer string
	// Run is the run that wrote it last, "" if that run was deleted or the value was set by
	// hand. By is who set it by hand.
	Run, By string
	At      time.Time
}

// UserStateEdit changes the state of a user by hand.
type UserStateEdit struct {
	Write engine.UserStateWrite
	By    string
	At    time.Time
}
