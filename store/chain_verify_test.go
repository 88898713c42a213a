package store_test

import (
	"slices"
	"testing"

	"github.com/weir-run/weir/store"
)

// chainOf makes a chain of n commits with two events each.
func chainOf(n int64) (store.Chain, []store.ChainLink) {
	secret := []byte("secret")
	c := store.Chain{Run: "r", Number: 1, Origin: store.OriginHash(secret, "r")}
	tag := store.FirstTag(0, c.Origin)
	var links []store.ChainLink
	for seq := int64(1); seq <= n; seq++ {
		l := store.ChainLink{Header: store.Header{Seq: seq, First: 2*seq - 1, At: 1000 + seq}, Count: 2, HasTag: true}
		l.Digest = store.CommitDigest(secret, "r", seq, []byte{byte(seq)})
		tag = tag.Next(l.Header, l.Digest)
		l.Tag = tag
		links = append(links, l)
	}
	return c, links
}

// verifyChain returns what is found in a chain, and its head.
func verifyChain(c store.Chain, links []store.ChainLink) (found []store.Finding, head store.Hash) {
	w := store.NewChainVerifier(c, store.Hash{}, 0)
	for i := range links {
		found = append(found, w.Verify(&links[i])...)
	}
	return found, w.Head
}

func TestVerifierReportsWhereAChainIsBroken(t *testing.T) {
	t.Parallel()
	c, whole := chainOf(6)
	intact, head := verifyChain(c, whole)
	if len(intact) > 0 {
		t.Fatalf("an intact chain: %+v", intact)
	}
	for name, test := range map[string]struct {
		change func(ls []store.ChainLink) []store.ChainLink
		what   string
		commit int64
	}{
		"a commit is removed":         {func(ls []store.ChainLink) []store.ChainLink { return slices.Delete(ls, 2, 3) }, store.FoundMissing, 3},
		"the first is removed":        {func(ls []store.ChainLink) []store.ChainLink { return ls[1:] }, store.FoundMissing, 1},
		"two are removed":             {func(ls []store.ChainLink) []store.ChainLink { return slices.Delete(ls, 2, 4) }, store.FoundMissing, 3},
		"a payload is changed":        {func(ls []store.ChainLink) []store.ChainLink { ls[3].Digest[0] ^= 1; return ls }, store.FoundChanged, 4},
		"a time is changed":           {func(ls []store.ChainLink) []store.ChainLink { ls[3].At++; return ls }, store.FoundChanged, 4},
		"the number of an event is":   {func(ls []store.ChainLink) []store.ChainLink { ls[3].First--; return ls }, store.FoundChanged, 4},
		"an event is taken away":      {func(ls []store.ChainLink) []store.ChainLink { ls[3].Count--; return ls }, store.FoundChanged, 5},
		"a link is removed":           {func(ls []store.ChainLink) []store.ChainLink { ls[3].HasTag = false; return ls }, store.FoundAdded, 4},
		"the origin is of another":    {func(ls []store.ChainLink) []store.ChainLink { c := ls; c[0].Digest = store.Hash{}; return c }, store.FoundChanged, 1},
		"a commit is there again":     {func(ls []store.ChainLink) []store.ChainLink { return slices.Insert(ls, 3, ls[2]) }, store.FoundMissing, 4},
		"the last payload is changed": {func(ls []store.ChainLink) []store.ChainLink { ls[5].Digest[31] ^= 128; return ls }, store.FoundChanged, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, changed := verifyChain(c, test.change(slices.Clone(whole)))
			if len(found) == 0 || found[0].What != test.what || found[0].Commit != test.commit {
				t.Errorf("found %+v, want %s of commit %d first", found, test.what, test.commit)
			}
			if name != "a link is removed" && name != "an event is taken away" && changed == head {
				t.Error("the head of the chain is as it was")
			}
		})
	}
}

// The golden heads are those of chains that exist: they change only with a new
// version of the format.
func TestChainHeadAndTagsMatchGoldenValues(t *testing.T) {
	t.Parallel()
	c, links := chainOf(3)
	_, head := verifyChain(c, links)
	if got, want := head.String(), "c70339f9f1a37a907b439139337d75d90f489b737e4e743a3c5878df99dc64ab"; got != want {
		t.Errorf("the head is %s, want %s", got, want)
	}
	if got, want := []store.Tag{links[0].Tag, links[1].Tag, links[2].Tag}, []store.Tag{-859613061, -101015500, -1696169958}; !slices.Equal(got, want) {
		t.Errorf("the tags are %v, want %v", got, want)
	}
	fork := store.NewChainVerifier(store.Chain{Run: "f", Number: 2, Base: 1, BaseSeq: 3, BaseEvents: 6, Origin: c.Origin}, head, links[2].Tag)
	if got, want := fork.Head.String(), "b52ccc93702f491a643d36e6f7247961237a055cd1bd0fae28d77c958a8d55f5"; got != want {
		t.Errorf("the head that a fork begins with is %s, want %s", got, want)
	}
	if _, tag := fork.End(); tag != 1470240853 {
		t.Errorf("the tag that a fork begins with is %d", tag)
	}
}
