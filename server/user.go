package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Role bounds what the tokens of a user may do, whatever scopes they have.
type Role string

// The roles. A user without a record has none: the scopes of the user's tokens count alone.
const (
	OwnerRole    Role = "owner"    // every scope
	OperatorRole Role = "operator" // all but admin
	ViewerRole   Role = "viewer"   // read
)

// Roles lists the roles.
func Roles() []Role { return []Role{OwnerRole, OperatorRole, ViewerRole} }

// allows reports whether tokens of users with the role may have a scope.
func (r Role) allows(s Scope) bool {
	switch r {
	case OperatorRole:
		return s != Admin
	case ViewerRole:
		return s == Read
	case OwnerRole, "":
	}
	return true
}

// rank orders roles by what they allow. That of no role is -1.
func (r Role) rank() int { return slices.Index([]Role{ViewerRole, OperatorRole, OwnerRole}, r) }

// lesser returns the role that allows less. No role bounds nothing.
func lesser(a, b Role) Role {
	if a == "" || b != "" && b.rank() < a.rank() {
		return b
	}
	return a
}

// User is the record of a user of a server.
type User struct {
	Name string `json:"user"`
	Role Role   `json:"role" doc:"owner: every scope; operator: all but admin; viewer: read"`
	// Disabled users have no valid token, and their triggers start nothing.
	Disabled bool      `json:"disabled" doc:"No token of the user is valid, and triggers of the user start nothing"`
	Note     string    `json:"note"`
	Created  time.Time `json:"created"`
	Changed  time.Time `json:"changed"`
}

// userKind are documents by the name of the user, with whom they are deleted.
const userKind = store.UserKind

// maxNote bounds the note of a user in bytes.
const maxNote = 1000

// FindUser returns the record of a user, store.ErrNotFound if there is none.
func FindUser(ctx context.Context, s store.DocumentStore, name string) (User, error) {
	d, err := s.Document(ctx, userKind, name)
	if err != nil {
		return User{Name: name}, err
	}
	return userOf(&d)
}

func userOf(d *store.Document) (u User, err error) {
	if err := json.Unmarshal(d.Body, &u); err != nil {
		return u, fmt.Errorf("read user %s: %w", d.ID, err)
	}
	u.Name, u.Created, u.Changed = d.ID, d.Created.UTC(), d.Updated.UTC()
	return u, nil
}

// Users lists at most limit records by name, behind the name after.
func Users(ctx context.Context, s store.DocumentStore, after string, limit int) ([]User, error) {
	docs, err := s.Documents(ctx, store.DocumentFilter{Kind: userKind, After: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]User, 0, len(docs))
	for i := range docs {
		u, err := userOf(&docs[i])
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// ChangeUser changes the record of a user, or makes one with the role operator first. What
// change sets is checked. Two changes at the same time happen one after the other.
func ChangeUser(ctx context.Context, s store.DocumentStore, name string, change func(u *User)) (User, error) {
	if name == "" {
		return User{}, &engine.Error{Code: engine.CodeInput, Message: "a user needs a name"}
	}
	if err := runner.CheckName("user", name); err != nil {
		return User{}, err
	}
	if name == "*" { // as in quotas; a record of it would limit no user
		return User{}, &engine.Error{Code: engine.CodeInput, Message: "a record is that of one user, and * is none", Hint: "name the users; without a record the scopes of a user's tokens count alone"}
	}
	for {
		u, version, err := User{Name: name, Role: OperatorRole}, int64(0), error(nil)
		d, err := s.Document(ctx, userKind, name)
		if err == nil {
			version = d.Version
			u, err = userOf(&d)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return u, err
		}
		change(&u)
		if !slices.Contains(Roles(), u.Role) {
			return u, &engine.Error{Code: engine.CodeInput, Message: fmt.Sprintf("there is no role %q; there are owner, operator and viewer", u.Role)}
		}
		if len(u.Note) > maxNote {
			return u, &engine.Error{Code: engine.CodeInput, Message: fmt.Sprintf("the note has more than %d bytes", maxNote)}
		}
		body, err := json.Marshal(&u)
		if err != nil {
			return u, err
		}
		d, err = s.PutDocument(ctx, store.Document{Kind: userKind, ID: name, User: name, Version: version, Body: body})
		if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
			continue // another process was faster: apply the change to its version
		}
		if err != nil {
			return u, err
		}
		return userOf(&d)
	}
}

// roleOf returns the role that bounds what a user may do, "" without a record. Disabled says that
// the user may do nothing. A store without documents has no records.
func (s *Server) roleOf(ctx context.Context, user string) (role Role, disabled bool, err error) {
	if user == "" || s.app.Store.Capabilities().Documents == nil {
		return "", false, nil
	}
	u, err := FindUser(ctx, s.app.Store, user)
	if errors.Is(err, store.ErrNotFound) {
		return "", false, nil
	}
	return u.Role, u.Disabled, err
}

// bound removes the scopes that a role does not allow.
func (p *principal) bound(role Role) {
	p.role = role
	p.scopes = slices.DeleteFunc(slices.Clone(p.scopes), func(s Scope) bool { return !role.allows(s) })
	p.all = p.all && role.allows(Admin)
}

// keeps reports whether the principal has all its scopes with the present role of its user.
func (p *principal) keeps(role Role) bool {
	if p.token == "" && p.login == "" && p.user != "" && p.all && role != OwnerRole { // a proxy has named an owner
		return false
	}
	return !slices.ContainsFunc(p.scopes, func(s Scope) bool { return !role.allows(s) })
}
