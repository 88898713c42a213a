package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// UserPath names a user.
type UserPath struct {
	User string `path:"user" minLength:"1" maxLength:"200" doc:"The name of the user"`
}

type listUsersInput struct {
	Cursor string `query:"cursor" maxLength:"200" doc:"The member next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type userList struct {
	Users []User `json:"users"`
	Next  string `json:"next" doc:"The cursor of the next page; empty on the last one"`
}

type putUserInput struct {
	UserPath
	Body struct {
		Role     Role   `json:"role" enum:"owner,operator,viewer"`
		Disabled bool   `json:"disabled,omitempty" doc:"From now on no token of the user is valid, and triggers of the user start nothing"`
		Note     string `json:"note,omitempty" maxLength:"1000"`
	}
}

func (s *Server) registerUsers() {
	op := func(id, method, path, summary, description string) operation {
		return operation{id: id, method: method, path: "/v1/users" + path, scope: Admin, summary: summary, description: description, tags: []string{"users"}}
	}
	register(s, op("listUsers", http.MethodGet, "", "List the records of users", ""), listUsers)
	register(s, op("getUser", http.MethodGet, "/{user}", "Get the record of a user", ""), getUser)
	register(s, op("putUser", http.MethodPut, "/{user}", "Set the role of a user, or deactivate the user",
		"A user needs no record: without one the scopes of the user's tokens count alone. Runs of a user who is deactivated continue."), putUser)
	s.registerTokens()
}

func listUsers(c *call, in *listUsersInput) (*body[userList], error) {
	list, err := Users(c, c.app.Store, in.Cursor, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := userList{Users: list}
	if len(list) > in.Limit {
		out.Users = list[:in.Limit]
		out.Next = list[in.Limit-1].Name
	}
	return bodyOf(out), nil
}

func getUser(c *call, in *UserPath) (*body[User], error) {
	u, err := FindUser(c, c.app.Store, in.User)
	if errors.Is(err, store.ErrNotFound) {
		return nil, notFound("user", in.User)
	}
	return bodyOf(u), err
}

func putUser(c *call, in *putUserInput) (*body[User], error) {
	if in.User == c.who.user && (in.Body.Disabled || in.Body.Role != OwnerRole) {
		p := newProblem(http.StatusConflict, engine.CodeStatusConflict, "you cannot take the role owner from yourself, or deactivate yourself")
		p.Hint = "ask another owner, or use `weir users` on the machine of the server"
		return nil, p
	}
	if err := errors.Join(c.about("role", string(in.Body.Role)), c.about("disabled", strconv.FormatBool(in.Body.Disabled))); err != nil {
		return nil, err
	}
	u, err := ChangeUser(context.WithoutCancel(c), c.app.Store, in.User, func(u *User) {
		u.Role, u.Disabled, u.Note = in.Body.Role, in.Body.Disabled, in.Body.Note
	})
	return bodyOf(u), err
}

// TokenRow is a token without its secret.
type TokenRow struct {
	ID      string    `json:"token" doc:"The id; it is no secret"`
	User    string    `json:"user"`
	Name    string    `json:"name"`
	Scopes  []string  `json:"scopes"`
	State   string    `json:"state" enum:"valid,expired,revoked"`
	Created time.Time `json:"created"`
	Expires string    `json:"expires" doc:"Empty if it does not expire"`
}

func tokenRowOf(t *store.Token, now time.Time) TokenRow {
	r := TokenRow{ID: t.ID, User: t.User, Name: t.Name, Scopes: t.Scopes, State: "valid", Created: t.Created.UTC()}
	if !t.Expires.IsZero() {
		r.Expires = t.Expires.UTC().Format(time.RFC3339)
	}
	switch {
	case !t.Revoked.IsZero():
		r.State = "revoked"
	case !t.Valid(now):
		r.State = "expired"
	}
	return r
}

type listTokensInput struct {
	User string `query:"user" maxLength:"200" doc:"Only tokens of this user; of another user only with the scope admin"`
}

type tokenList struct {
	Tokens []TokenRow `json:"tokens"`
}

type createTokenInput struct {
	Body struct {
		User    string   `json:"user,omitempty" maxLength:"200" doc:"Whom the token acts for; another user than yourself needs the scope admin"`
		Name    string   `json:"name,omitempty" maxLength:"200" doc:"What it is for"`
		Scopes  []string `json:"scopes" minItems:"1" maxItems:"5" doc:"At most those of the token of the request"`
		Expires int64    `json:"expires,omitempty" minimum:"1" maximum:"315360000" doc:"Seconds until it expires; never later than the token of the request"`
	}
}

type createdToken struct {
	TokenRow
	Secret string `json:"secret" doc:"The token itself. It is not shown again."`
}

type tokenPath struct {
	Token string `path:"token" maxLength:"100" doc:"The id of the token"`
}

func (s *Server) registerTokens() {
	op := func(id, method, path string, scope Scope, summary, description string) operation {
		return operation{id: id, method: method, path: "/v1/tokens" + path, scope: scope, summary: summary, description: description, tags: []string{"users"}}
	}
	register(s, op("listTokens", http.MethodGet, "", Read, "List tokens, oldest first", ""), listTokens)
	create := op("createToken", http.MethodPost, "", Start, "Create a token",
		"It has no scope that the token of the request lacks, and expires no later. Revoking that token revokes it.")
	create.status = http.StatusCreated
	register(s, create, createToken)
	register(s, op("revokeToken", http.MethodDelete, "/{token}", Start, "Revoke a token at once, and the tokens that were made with it", ""), revokeToken)
}

func listTokens(c *call, in *listTokensInput) (*body[tokenList], error) {
	user, err := c.filterUser(in.User)
	if err != nil {
		return nil, err
	}
	out := tokenList{Tokens: []TokenRow{}}
	list, err := c.app.Store.Tokens(c, user)
	now := time.Now()
	for i := range list {
		out.Tokens = append(out.Tokens, tokenRowOf(&list[i], now))
	}
	return bodyOf(out), err
}

func createToken(c *call, in *createTokenInput) (*created[createdToken], error) {
	user := c.who.user
	if in.Body.User != "" && in.Body.User != user {
		if !c.who.all {
			return nil, newProblem(http.StatusForbidden, engine.CodeForbidden, "only a token with the scope admin can make tokens of other users")
		}
		user = in.Body.User
	}
	for _, name := range in.Body.Scopes {
		if !slices.Contains(Scopes(), Scope(name)) {
			return nil, invalidRequest("body.scopes", "there is no scope "+quoted(name)+"; there are "+scopeNames())
		}
		if scope := Scope(name); !c.who.may(scope) {
			return nil, newProblem(http.StatusForbidden, engine.CodeForbidden, "the token of the request lacks the scope "+quoted(name)+", so that it cannot give it")
		}
	}
	if err := errors.Join(c.about("user", user), c.about("scopes", strings.Join(in.Body.Scopes, ","))); err != nil {
		return nil, err
	}
	lifetime := time.Duration(in.Body.Expires) * time.Second
	if !c.who.expires.IsZero() {
		rest := time.Until(c.who.expires)
		if lifetime == 0 || lifetime > rest {
			lifetime = max(rest, time.Millisecond)
		}
	}
	secret, t, err := NewToken(context.WithoutCancel(c), c.app.Store, user, in.Body.Name, in.Body.Scopes, lifetime)
	if err == nil {
		err = c.recordOrigin(&t)
	}
	if err != nil {
		return nil, err
	}
	return &created[createdToken]{"/v1/tokens/" + t.ID, createdToken{tokenRowOf(&t, time.Now()), secret}}, nil
}

func revokeToken(c *call, in *tokenPath) (*struct{}, error) {
	list, err := c.app.Store.Tokens(c, c.reachableUser())
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(t store.Token) bool { return t.ID == in.Token }) {
		return nil, notFound("token", in.Token)
	}
	return nil, RevokeToken(context.WithoutCancel(c), c.app.Store, in.Token, time.Now())
}
