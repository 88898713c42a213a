package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/store"
)

func accessCases() []testCase {
	return []testCase{
		{"a token is found by its digest until it is deleted", accessTokens},
		{"a revoked token stays and says since when", accessRevocation},
		{"all callers get the same key", accessKeys},
		{"a request is kept once until it expires", accessRequests},
		{"tokens and requests are deleted with their user", accessDeletion},
	}
}

func token(id, user string) store.Token {
	return store.Token{ID: id, Hash: []byte("hash of " + id), User: user, Name: "laptop", Scopes: []string{"read", "start"}, Created: startTime()}
}

func accessTokens(t *testing.T, s Store) {
	a, b := token("a", "u"), token("b", "v")
	b.Expires = startTime().Add(time.Hour)
	must(t, s.PutToken(t.Context(), a))
	must(t, s.PutToken(t.Context(), b))
	checkError(t, s.PutToken(t.Context(), a), store.ErrExists)
	same := token("c", "w")
	same.Hash = a.Hash
	checkError(t, s.PutToken(t.Context(), same), store.ErrExists)
	s = s.reopen(t)
	for _, want := range []store.Token{a, b} {
		got, err := s.TokenByHash(t.Context(), want.Hash)
		must(t, err)
		equal(t, "token", got, want)
	}
	_, err := s.TokenByHash(t.Context(), []byte("hash of nothing"))
	checkError(t, err, store.ErrNotFound)
	all, err := s.Tokens(t.Context(), "")
	must(t, err)
	equal(t, "all", all, []store.Token{a, b})
	of, err := s.Tokens(t.Context(), "v")
	must(t, err)
	equal(t, "those of a user", of, []store.Token{b})
	equal(t, "valid", []bool{b.Valid(startTime()), b.Valid(b.Expires)}, []bool{true, false})
}

func accessRevocation(t *testing.T, s Store) {
	must(t, s.PutToken(t.Context(), token("a", "u")))
	must(t, s.RevokeToken(t.Context(), "a", startTime().Add(time.Minute)))
	must(t, s.RevokeToken(t.Context(), "a", startTime().Add(time.Hour)))
	got, err := s.TokenByHash(t.Context(), []byte("hash of a"))
	must(t, err)
	equal(t, "revoked", got.Revoked, startTime().Add(time.Minute))
	equal(t, "valid", got.Valid(startTime()), false)
	checkError(t, s.RevokeToken(t.Context(), "b", startTime()), store.ErrNotFound)
}

func accessKeys(t *testing.T, s Store) {
	var all sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		all.Go(func() {
			key, err := s.AccessKey(t.Context(), "requests", []byte{byte('a' + i)})
			if err != nil {
				t.Error(err)
			}
			got[i] = string(key)
		})
	}
	all.Wait()
	s = s.reopen(t)
	kept, err := s.AccessKey(t.Context(), "requests", []byte("late"))
	must(t, err)
	for _, key := range got {
		equal(t, "key", key, string(kept))
	}
	other, err := s.AccessKey(t.Context(), "other", []byte("another"))
	must(t, err)
	equal(t, "another key", string(other), "another")
	keys, err := s.AccessKeys(t.Context())
	must(t, err)
	equal(t, "all keys", keys, map[string][]byte{"requests": kept, "other": other})
}

func accessRequests(t *testing.T, s Store) {
	begin := func(key, digest string) store.ClientRequest {
		t.Helper()
		r, err := s.BeginRequest(t.Context(), store.ClientRequest{Key: []byte(key), User: "u", Digest: []byte(digest), Result: "ignored"}, time.Hour)
		must(t, err)
		return r
	}
	equal(t, "new", begin("k", "1"), store.ClientRequest{Key: []byte("k"), User: "u", Digest: []byte("1")})
	equal(t, "repeated with another content", begin("k", "2"), store.ClientRequest{Key: []byte("k"), User: "u", Digest: []byte("1"), Repeated: true})
	must(t, s.FinishRequest(t.Context(), []byte("k"), "run"))
	must(t, s.FinishRequest(t.Context(), []byte("never there"), "run"))
	equal(t, "repeated", begin("k", "1"), store.ClientRequest{Key: []byte("k"), User: "u", Digest: []byte("1"), Result: "run", Repeated: true})
	equal(t, "another", begin("l", "1").Result, "")
	s = s.at(startTime().Add(time.Hour))
	equal(t, "expired", begin("k", "2"), store.ClientRequest{Key: []byte("k"), User: "u", Digest: []byte("2")})
}

func accessDeletion(t *testing.T, s Store) {
	if s.Capabilities().Deletion == nil {
		t.Skip("the store does not declare the capability deletion")
	}
	for _, user := range []string{"u", "v"} {
		must(t, s.PutToken(t.Context(), token("of "+user, user)))
		_, err := s.BeginRequest(t.Context(), store.ClientRequest{Key: []byte(user), User: user, Digest: []byte("1")}, time.Hour)
		must(t, err)
		must(t, s.FinishRequest(t.Context(), []byte(user), "run"))
	}
	left := func() (n int) {
		t.Helper()
		all, err := s.Tokens(t.Context(), "")
		must(t, err)
		return len(all)
	}
	_, err := s.DeleteUser(t.Context(), "u", store.DeleteOptions{DryRun: true})
	must(t, err)
	equal(t, "after a dry run", left(), 2)
	_, err = s.DeleteUser(t.Context(), "u", store.DeleteOptions{})
	must(t, err)
	equal(t, "after the deletion", left(), 1)
	for user, want := range map[string]string{"u": "", "v": "run"} {
		r, err := s.BeginRequest(t.Context(), store.ClientRequest{Key: []byte(user), User: user, Digest: []byte("1")}, time.Hour)
		must(t, err)
		equal(t, "request of "+user, r.Result, want)
	}
}
