package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/store"
)

// Options say what to verify.
type Options struct {
	// Run is the run, "" for all.
	Run string
	// Head is a head that was kept elsewhere, nil if there is none: for one run the head
	// of its chain after some commit, for all runs the digest of their heads.
	Head *store.Hash
	// Heads are heads of single runs that were kept elsewhere.
	Heads []KeptHead
	// Progress, where it is set, is called after each run with how many of all are
	// done.
	Progress func(done, all int)
}

// KeptHead is the head of a run's chain as it was once.
type KeptHead struct {
	Run string `json:"run"`
	// Number is the run's in its database, by which an erased one is found.
	Number int64      `json:"number,omitempty"`
	Head   store.Hash `json:"head"`
	// Row identifies what the database says of the run and its session besides the
	// journal, nil if that is not known; see store.RowHash.
	Row *store.Hash `json:"row,omitempty"`
}

// Report is the result of a verification.
type Report struct {
	// OK says that nothing was found.
	OK   bool          `json:"ok"`
	Runs []VerifiedRun `json:"runs"`
	// Erased runs are among Runs, without an id.
	Erased        int   `json:"erased"`
	ErasedCommits int64 `json:"erased_commits"`
	// Unchained is how many commits are from before there were chains.
	Unchained int64 `json:"unchained"`
	// Digest is that of the heads of all runs, where all were verified.
	Digest *store.Hash `json:"digest,omitempty"`
	// Findings are all that is not as it was written.
	Findings []store.Finding `json:"findings"`
}

// VerifiedRun is one run in it.
type VerifiedRun struct {
	KeptHead
	Erased    bool  `json:"erased,omitempty"`
	Commits   int64 `json:"commits"`
	Events    int64 `json:"events"`
	Unchained int64 `json:"unchained,omitempty"`
	// At is the commit whose head was kept, 0 if none was given.
	At int64 `json:"at,omitempty"`
	OK bool  `json:"ok"`
}

// Verify checks that runs are as they were written. Without a head that was kept
// elsewhere it proves that they are consistent: a person who can write the database could have
// replaced the history and its chain, or removed the end. A head proves that everything
// up to its commit is unchanged.
//
// A store that does not chain its commits is a *store.Unsupported error. What it has
// outside its chains is compared as far as its capabilities go.
func Verify(ctx context.Context, s store.Store, v Options) (*Report, error) {
	c := s.Capabilities()
	if c.Chains == nil {
		return nil, &store.Unsupported{Capability: "chains"}
	}
	return verify(ctx, record{store.Complete(s), c.Audit, c.Rows, s}, v)
}

// Verify checks an export as Verify checks a store.
func (e *Export) Verify(ctx context.Context, v Options) (*Report, error) {
	return verify(ctx, record{e, e, nil, e}, v)
}

// record is what is verified. What is nil is not compared.
type record struct {
	store.ChainStore
	audit store.AuditStore
	rows  store.RowStore
	flows store.Flows
}

func verify(ctx context.Context, s record, v Options) (*Report, error) {
	x := verifier{ctx: ctx, s: s, v: v, flows: map[string]string{}, users: map[int64]string{}, out: &Report{Runs: []VerifiedRun{}, Findings: []store.Finding{}}}
	if err := x.verifySchema(); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	foreign := len(x.out.Findings) > 0
	err := x.listChains()
	if err == nil {
		if err = x.verifyChains(); err == nil {
			err = x.verifyOutsideChains()
		}
		if err != nil {
			err = fmt.Errorf("verify: %w", err)
		}
	}
	if err != nil && (!foreign || ctx.Err() != nil) {
		return nil, err
	}
	if err != nil { // read through a schema that was changed
		x.addFindings(store.Finding{What: store.FoundUnreadable, Message: err.Error()})
	}
	x.summarize()
	return x.out, nil
}

// verifySchema has the store compare its schema with what it should be.
func (x *verifier) verifySchema() error {
	if x.s.rows == nil {
		return nil
	}
	found, err := x.s.rows.AuditSchema(x.ctx, x.v.Run == "")
	x.addFindings(found...)
	return err
}

// commitRef is a commit of a run, by numbers.
type commitRef struct{ run, seq int64 }

// chainState is what is known of a chain after some commit.
type chainState struct {
	head store.Hash
	tag  store.Tag
}

type verifier struct {
	ctx context.Context //nolint:containedctx // lives as long as one call
	s   record
	v   Options
	out *Report

	chains        []store.Chain         // to verify
	byNum         map[int64]store.Chain // all
	neededCommits map[commitRef]bool    // from which others continue
	chainStates   map[commitRef]chainState
	users         map[int64]string     // by the number of the run
	flows         map[string]string    // what was found of a flow, by fingerprint
	keptHeads     map[int64]store.Hash // heads that were given, by the number of the run
	rows          map[int64]store.Hash // and rows
}

// listChains finds the chains to verify.
func (x *verifier) listChains() error {
	all, err := x.s.Chains(x.ctx)
	if err != nil {
		return err
	}
	x.byNum, x.neededCommits, x.chainStates = make(map[int64]store.Chain), make(map[commitRef]bool), make(map[commitRef]chainState)
	byRun := make(map[string]store.Chain)
	for _, c := range all {
		x.byNum[c.Number] = c
		if c.Run != "" {
			byRun[c.Run] = c
		}
	}
	if x.chains = all; x.v.Run != "" {
		c, ok := byRun[x.v.Run]
		if !ok {
			return fmt.Errorf("run %s: %w", x.v.Run, store.ErrNotFound)
		}
		x.chains = x.ancestors(c)
	}
	for _, c := range x.chains {
		if p, ok := x.lastSharedCommit(c); ok {
			x.neededCommits[p] = true
		}
	}
	x.keptHeads, x.rows = make(map[int64]store.Hash), make(map[int64]store.Hash)
	for _, k := range x.v.Heads {
		c, ok := byRun[k.Run]
		if !ok {
			c, ok = x.byNum[k.Number]
			ok = ok && c.Run == ""
		}
		if !ok {
			x.addFindings(store.Finding{Run: k.Run, What: store.FoundMissing, Message: "the run is gone without a trace, and its head was kept"})
			continue
		}
		x.keptHeads[c.Number] = k.Head
		if k.Row != nil {
			x.rows[c.Number] = *k.Row
		}
	}
	if x.v.Run != "" && x.v.Head != nil {
		x.keptHeads[byRun[x.v.Run].Number] = *x.v.Head
	}
	return nil
}

// ancestors returns a chain with the chains that it continues, the oldest first.
func (x *verifier) ancestors(c store.Chain) []store.Chain {
	if base, ok := x.byNum[c.Base]; ok && c.Base < c.Number {
		return append(x.ancestors(base), c)
	}
	return []store.Chain{c}
}

// lastSharedCommit returns where the last commit lies that a chain shares with its base.
func (x *verifier) lastSharedCommit(c store.Chain) (commitRef, bool) {
	seq := c.BaseSeq
	for c.Base != 0 && seq > 0 {
		base, ok := x.byNum[c.Base]
		if !ok || c.Base >= c.Number {
			return commitRef{c.Base, seq}, true
		}
		if c = base; c.BaseSeq < seq {
			return commitRef{c.Number, seq}, true
		}
	}
	return commitRef{}, false
}

func (x *verifier) verifyChains() error {
	for i, c := range x.chains {
		if err := x.verifyChain(c); err != nil {
			return err
		}
		if x.v.Progress != nil {
			x.v.Progress(i+1, len(x.chains))
		}
	}
	return nil
}

// addFindings adds findings, but for those of a run that were found of all, and the other way.
func (x *verifier) addFindings(list ...store.Finding) {
	for _, f := range list {
		if slices.ContainsFunc(x.out.Findings, func(o store.Finding) bool { return o.Message == f.Message && (f.Run == "" || o.Run == "") }) {
			continue
		}
		x.out.Findings = append(x.out.Findings, f)
	}
}

// verifyChain verifies one chain.
func (x *verifier) verifyChain(c store.Chain) error {
	var base chainState
	if p, ok := x.lastSharedCommit(c); ok {
		if base, ok = x.chainStates[p]; !ok {
			x.addFindings(store.Finding{
				Run: c.Run, What: store.FoundMissing, Commit: p.seq,
				Message: fmt.Sprintf("commit %d of the run it was forked from is missing", p.seq),
			})
		}
	}
	w := store.NewChainVerifier(c, base.head, base.tag)
	r := VerifiedRun{KeptHead: KeptHead{Run: c.Run, Number: c.Number}, Erased: c.Run == "", Unchained: c.Unchained}
	before, kept, facts := len(x.out.Findings), x.keptHeads[c.Number], store.JournalFacts{User: x.users[c.Base]}
	if w.Head == kept {
		r.At = max(w.Seq, 1)
	}
	for l, err := range x.s.Links(x.ctx, c) {
		if err != nil && x.ctx.Err() != nil {
			return err
		}
		if err != nil {
			x.addFindings(store.Finding{Run: c.Run, What: store.FoundUnreadable, Message: err.Error()})
			break
		}
		x.addFindings(w.Verify(&l)...)
		facts.Add(l.Seq, l.At, l.Events)
		if w.Head == kept {
			r.At = w.Seq
		}
		if p := (commitRef{c.Number, w.Seq}); x.neededCommits[p] {
			head, tag := w.End()
			x.chainStates[p] = chainState{head, tag}
		}
	}
	x.users[c.Number] = facts.User
	r.Head, r.Commits, r.Events = w.Head, w.Seq, w.Events
	if kept, ok := x.keptHeads[c.Number]; ok && r.At == 0 {
		x.addFindings(store.Finding{Run: c.Run, What: store.FoundChanged, Message: fmt.Sprintf(
			"the head %s is not in its chain: commits were changed with their links, or the last ones are cut off", kept)})
	}
	if err := x.verifyRow(c, &r); err != nil {
		return err
	}
	if err := x.audit(c, &facts, before); err != nil {
		return err
	}
	r.OK = len(x.out.Findings) == before
	x.out.Runs = append(x.out.Runs, r)
	return nil
}

// verifyRow compares the run's row with the one that was kept.
func (x *verifier) verifyRow(c store.Chain, r *VerifiedRun) error {
	if x.s.rows == nil || r.Erased {
		return nil
	}
	row, err := x.s.rows.RowHash(x.ctx, c)
	if err != nil {
		return err
	}
	r.Row = &row
	if kept, ok := x.rows[c.Number]; ok && kept != row {
		x.addFindings(store.Finding{Run: c.Run, What: store.FoundChanged, Message: "the run's row, or its session's, is not what it was when the head was kept"})
	}
	return nil
}

// audit has the store compare the data outside a chain, unless the chain is broken.
func (x *verifier) audit(c store.Chain, f *store.JournalFacts, before int) error {
	if x.s.audit == nil || len(x.out.Findings) > before {
		return nil
	}
	found, err := x.s.audit.Audit(x.ctx, c, f)
	if err != nil {
		return err
	}
	x.addFindings(found...)
	if f.Started == nil && f.Forked == nil {
		return nil
	}
	var fingerprint, specs string
	if f.Started != nil {
		fingerprint, specs = f.Started.Fingerprint, f.Started.Specs
	}
	if f.Forked != nil {
		fingerprint, specs = f.Forked.Fingerprint, f.Forked.Specs
	}
	if err := x.verifyDocument(c, "the flow that it ran", fingerprint); err != nil || specs == "" {
		return err
	}
	return x.verifyDocument(c, "the description of the node types that it ran with", specs)
}

// verifyDocument finds what is wrong with a document that a run needs.
func (x *verifier) verifyDocument(c store.Chain, what, digest string) error {
	wrong, err := x.verifyFlow(digest)
	if err == nil && wrong != "" {
		x.addFindings(store.Finding{Run: c.Run, What: wrong, Message: what + ", " + digest + ", is " + wrong})
	}
	return err
}

// verifyFlow says what is wrong with a flow that is kept, "" for nothing.
func (x *verifier) verifyFlow(fingerprint string) (string, error) {
	wrong, known := x.flows[fingerprint]
	if known {
		return wrong, nil
	}
	normal, err := x.s.flows.Flow(x.ctx, fingerprint)
	sum := sha256.Sum256(normal)
	switch {
	case errors.Is(err, store.ErrNotFound):
		wrong = store.FoundMissing
	case err != nil:
		return "", err
	case fingerprint != "sha256:"+hex.EncodeToString(sum[:]):
		wrong = store.FoundChanged
	}
	x.flows[fingerprint] = wrong
	return wrong, nil
}

// verifyOutsideChains has the store look at everything outside the chains, and looks at the flows
// that no run ran.
func (x *verifier) verifyOutsideChains() error {
	if x.s.audit == nil || x.v.Run != "" {
		return nil
	}
	found, err := x.s.audit.AuditAll(x.ctx)
	if err != nil {
		return err
	}
	x.addFindings(found...)
	all, err := x.s.audit.Fingerprints(x.ctx)
	for _, fingerprint := range all {
		if _, seen := x.flows[fingerprint]; seen {
			continue
		}
		var wrong string
		if wrong, err = x.verifyFlow(fingerprint); err != nil {
			break
		}
		if wrong != "" {
			x.addFindings(store.Finding{What: wrong, Message: "the flow " + fingerprint + " is " + wrong})
		}
	}
	return err
}

// summarize adds up.
func (x *verifier) summarize() {
	h := sha256.New()
	for _, r := range x.out.Runs {
		if r.Erased {
			x.out.Erased++
			x.out.ErasedCommits += r.Commits - x.byNum[r.Number].BaseSeq
		}
		x.out.Unchained += r.Unchained
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(r.Number))
		_, _ = h.Write(n[:]) // a hash never fails
		_, _ = h.Write(r.Head[:])
	}
	if x.v.Run == "" {
		digest := store.Hash(h.Sum(nil))
		if x.out.Digest = &digest; x.v.Head != nil && *x.v.Head != digest {
			x.addFindings(store.Finding{What: store.FoundChanged, Message: fmt.Sprintf(
				"the digest of all heads is %s, and not %s: runs were continued or started since the digest was stored, or the record was changed", digest, x.v.Head)})
		}
	}
	x.out.OK = len(x.out.Findings) == 0
}
