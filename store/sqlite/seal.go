package sqlite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/weir-run/weir/store"
)

// Some columns of record repeat nothing that is in the journal: when a run was made,
// the thread of a session. A row has a seal of them, the first 4 bytes of SHA-256 over
// their JSON. Like the tag of a commit it finds what was changed by hand; someone who
// recomputes it is found by a head that was kept elsewhere (store.KeptRow).

// sealVersion is the version of the schema that has seals.
const sealVersion = 10

// runFacts are the columns of a run that never change.
type runFacts struct {
	ID          string `json:"id"`
	Created     int64  `json:"created"`
	User        string `json:"user"`
	Flow        string `json:"flow"`
	Fingerprint string `json:"fingerprint"`
	Parent      string `json:"parent"`
	Origin      string `json:"origin"`
	Session     int64  `json:"session"`
	Round       int64  `json:"round"`
	First       int64  `json:"first"`
	Base        int64  `json:"base"`
	BaseSeq     int64  `json:"base_seq"`
	BaseLast    int64  `json:"base_last"`
	Unchained   int64  `json:"unchained"`
}

// sessionFacts are the columns of a session, and of its history, that never change.
type sessionFacts struct {
	ID          string `json:"id"`
	User        string `json:"user"`
	Flow        string `json:"flow"`
	Thread      string `json:"thread"`
	Parent      int64  `json:"parent"`
	ParentRound int64  `json:"parent_round"`
	Created     int64  `json:"created"`
	Context     int64  `json:"context"`
	Start       int64  `json:"start"`
	Source      int64  `json:"source"`
	Kind        string `json:"kind"`
}

// tombstoneFacts are all columns of a tombstone.
type tombstoneFacts struct {
	Num       int64  `json:"num"`
	Origin    []byte `json:"origin"`
	Base      int64  `json:"base"`
	BaseSeq   int64  `json:"base_seq"`
	BaseLast  int64  `json:"base_last"`
	Unchained int64  `json:"unchained"`
	Links     []byte `json:"links"`
}

// deletedFacts are a row of gone.
type deletedFacts struct {
	Name string `json:"name"`
	Num  int64  `json:"num"`
}

// sealOf returns the seal of facts.
func sealOf(facts any) (int64, error) {
	b, err := json.Marshal(facts)
	if err != nil {
		return 0, fmt.Errorf("seal: %w", err)
	}
	sum := sha256.Sum256(b)
	return int64(int32(binary.BigEndian.Uint32(sum[:]))), nil
}

// runFactsOf returns those of a run that is about to be made.
func runFactsOf(n *store.NewRun, base sharedBase, r roundInfo) *runFacts {
	f := &runFacts{
		ID: n.ID, Created: n.At.UnixMilli(), User: n.User, Flow: n.Flow, Fingerprint: n.Fingerprint, Parent: n.Parent, Origin: n.Origin,
		Session: r.session, Base: base.run, BaseSeq: base.seq, BaseLast: base.last,
	}
	if r.session != 0 {
		f.Round, f.First = r.number, r.first
	}
	return f
}

const selectRunFacts = `SELECT r.num, r.seal, r.id, r.created, coalesce(r.user, s.user, ''),
	iif(r.program IS NULL, r.flow, coalesce(p.flow, '')), iif(r.program IS NULL, r.fingerprint, coalesce(p.fingerprint, '')),
	coalesce(r.parent, ''), coalesce(r.origin, 'session:' || s.id, ''),
	coalesce(r.session, 0), coalesce(r.round, 0), coalesce(r.first, 0), coalesce(r.base, 0), coalesce(r.base_seq, 0),
	coalesce(r.base_last, 0), coalesce(r.unchained, 0)
	FROM run_row r LEFT JOIN session s ON s.num = r.session LEFT JOIN program p ON p.num = r.program`

const selectSessionFacts = `SELECT s.num, s.seal, s.id, s.user, s.flow, s.thread, coalesce(s.parent, 0), s.parent_round, s.created, s.context,
	coalesce(c.start, 0), coalesce(c.source, 0), coalesce(c.kind, '')
	FROM session s LEFT JOIN context c ON c.id = s.context`

const selectTombstoneFacts = `SELECT num, seal, num, origin, coalesce(base, 0), coalesce(base_seq, 0), coalesce(base_last, 0),
	coalesce(unchained, 0), links FROM tombstone`

const selectDeletedFacts = "SELECT 0, seal, name, num FROM gone WHERE name IN ('unmarked', 'run', 'session')"

// sealedRow is a row with what it is sealed by.
type sealedRow struct {
	table  string
	num    int64 // of its key
	stored *int64
	facts  any
}

// isBroken reports whether the row is not what was sealed.
func (r *sealedRow) isBroken() bool {
	seal, err := sealOf(r.facts)
	return err != nil || r.stored == nil || *r.stored != seal
}

// sealedTables returns the queries for rows with seals, in the order of their facts.
func sealedTables() map[string]string {
	return map[string]string{
		"run_row": selectRunFacts, "session": selectSessionFacts, "tombstone": selectTombstoneFacts, "gone": selectDeletedFacts,
		"session_change": selectChangeFacts, "user_value": selectUserFacts,
	}
}

// sealedRows calls each for rows of a table with seals; where narrows them.
func (l lineage) sealedRows(table, where string, each func(r *sealedRow) error, args ...any) error {
	return l.query(func(row scanner) error {
		r := sealedRow{table: table}
		into := []any{&r.num, &r.stored}
		switch table {
		case "run_row":
			f := &runFacts{}
			r.facts = f
			into = append(into, &f.ID, &f.Created, &f.User, &f.Flow, &f.Fingerprint, &f.Parent, &f.Origin, &f.Session, &f.Round,
				&f.First, &f.Base, &f.BaseSeq, &f.BaseLast, &f.Unchained)
		case "session":
			f := &sessionFacts{}
			r.facts = f
			into = append(into, &f.ID, &f.User, &f.Flow, &f.Thread, &f.Parent, &f.ParentRound, &f.Created, &f.Context, &f.Start, &f.Source, &f.Kind)
		case "tombstone":
			f := &tombstoneFacts{}
			r.facts = f
			into = append(into, &f.Num, &f.Origin, &f.Base, &f.BaseSeq, &f.BaseLast, &f.Unchained, &f.Links)
		case "session_change":
			f := &changeFacts{}
			r.facts = f
			into = append(into, f.columns()...)
		case "user_value":
			f := &userFacts{}
			r.facts = f
			into = append(into, f.columns()...)
		default:
			f := &deletedFacts{}
			r.facts = f
			into = append(into, &f.Name, &f.Num)
		}
		if err := row.Scan(into...); err != nil {
			return err
		}
		return each(&r)
	}, sealedTables()[table]+where, args...)
}

// sealUnsealed seals the rows of an earlier version, in one transaction with the note that
// they are not.
func (s *Store) sealUnsealed(ctx context.Context) error {
	var unsealed bool
	err := s.conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM gone WHERE name = 'unsealed')").Scan(&unsealed)
	if err != nil || !unsealed {
		return err
	}
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err = s.sealAll(ctx); err == nil {
		_, err = s.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, rollback := s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return cmp.Or(err, rollback)
	}
	return nil
}

// seal keeps the seal of a row.
func (s *Store) seal(ctx context.Context, r *sealedRow) error {
	seal, err := sealOf(r.facts)
	if err != nil {
		return err
	}
	key, value := "num", any(r.num)
	switch f := r.facts.(type) {
	case *deletedFacts:
		key, value = "name", f.Name
	case *changeFacts, *userFacts:
		key = "id"
	}
	_, err = s.conn.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET seal = ? WHERE %s = ?", r.table, key), seal, value)
	return err
}

// sealDeleted seals the numbers of what is gone, in the transaction that wrote them.
func (s *Store) sealDeleted(ctx context.Context) error {
	var rows []*sealedRow
	err := lineage{ctx, s.conn}.sealedRows("gone", "", func(r *sealedRow) error {
		rows = append(rows, r)
		return nil
	})
	for i := 0; i < len(rows) && err == nil; i++ {
		err = s.seal(ctx, rows[i])
	}
	return err
}

func (s *Store) sealAll(ctx context.Context) error {
	l := lineage{ctx, s.conn}
	for table := range sealedTables() {
		var rows []*sealedRow
		err := l.sealedRows(table, "", func(r *sealedRow) error {
			rows = append(rows, r)
			return nil
		})
		for i := 0; i < len(rows) && err == nil; i++ {
			err = s.seal(ctx, rows[i])
		}
		if err != nil {
			return fmt.Errorf("seal %s: %w", table, err)
		}
	}
	_, err := s.conn.ExecContext(ctx, "DELETE FROM gone WHERE name = 'unsealed'")
	return err
}
