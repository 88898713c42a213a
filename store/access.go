package store

import "time"

// Token is the right to use a server as a user. The token itself is not stored, only its
// digest.
type Token struct {
	// ID names the token in listings. It is no secret.
	ID string
	// Hash is the SHA-256 digest of the token.
	Hash []byte
	// User is whose runs and sessions the token reaches.
	User string
	// Name says what the token is for.
	Name string
	// Scopes are what the token may do.
	Scopes  []string
	Created time.Time
	// Expires is when the token stops to be valid; zero is never.
	Expires time.Time
	// Revoked is when the token was revoked; zero is not.
	Revoked time.Time
}

// Valid reports whether a token can be used at a time.
func (t *Token) Valid(now time.Time) bool {
	return t.Revoked.IsZero() && (t.Expires.IsZero() || now.Before(t.Expires))
}

// ClientRequest is a request that a client of a server may send again.
type ClientRequest struct {
	// Key identifies the request: a keyed digest, so that clients cannot meet each other's.
	Key []byte
	// User is who sent it; it is deleted with the user.
	User string
	// Digest is that of the content of the request.
	Digest []byte
	// Result names what the request made; "" while the outcome is not known.
	Result string
	// Repeated is set by BeginRequest: the request had begun before.
	Repeated bool
}
