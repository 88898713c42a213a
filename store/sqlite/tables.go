package sqlite

import (
	"strings"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// Verification says who notices when a column is changed by another hand.
type Verification int

const (
	// Chained columns are of record: verifying finds any change to them.
	Chained Verification = iota + 1
	// Operational columns change as runs proceed and are not verified.
	Operational
)

// Column is one column of a table.
type Column struct {
	Name         string
	Verification Verification
	// Types are the storage classes that Weir writes: "integer", "text", "blob", "null".
	Types []string
	// NeverEmpty columns never hold 0 or an empty text: Weir writes NULL for those.
	NeverEmpty bool
	// Bytes is how long a blob is, 0 for any length. A key that is followed by zeros is
	// the same key to HMAC.
	Bytes int
}

// Table is one table of the database.
type Table struct {
	Name string
	// Key identifies a row.
	Key     string
	Columns []Column
	// Reason says, of a table without Chained columns, why it is not of record.
	Reason string
}

// IsRecord reports whether the table has columns of record.
func (t *Table) IsRecord() bool {
	for _, c := range t.Columns {
		if c.Verification == Chained {
			return true
		}
	}
	return false
}

// columns makes columns of specifications: a name, and a letter for each storage
// class (integer, text, blob, null). A column that is Full has a plus sign, a salt a dollar sign.
func columns(c Verification, specs ...string) []Column {
	classes := map[byte]string{'i': "integer", 't': "text", 'b': "blob", 'n': "null"}
	out := make([]Column, 0, len(specs)/2)
	for i := 0; i+1 < len(specs); i += 2 {
		col := Column{Name: specs[i], Verification: c}
		letters, full := strings.CutSuffix(specs[i+1], "+")
		letters, salt := strings.CutSuffix(letters, "$")
		if salt {
			col.Bytes = saltSize
		}
		for _, letter := range []byte(letters) {
			col.Types = append(col.Types, classes[letter])
		}
		col.NeverEmpty = full
		out = append(out, col)
	}
	return out
}

// operational returns a table that is not of record.
func operational(name, why string) Table { return Table{Name: name, Reason: why} }

// Tables lists all tables of a database: those of record with their columns, and the
// operational ones with the reason. A table that is in no list fails a test.
func Tables() []Table {
	out := append(recordTables(),
		operational("checkpoint", "can be made again from the journal"),
		operational("run_crash", "counts how often processes ended while they executed a run"),
		operational("inbox", "holds what other processes want of a run until it is an event"),
		operational("live_text", "holds the text of model calls in flight while another process reads it"),
		operational("live_reader", "lists the runs whose live text another process reads"),
		operational("queue", "holds messages to sessions until a round has taken them"),
		operational("cache", "holds results that can be computed again"),
		operational("access_token", "says who may use a server now; tokens are made and revoked on purpose"),
		operational("access_request", "lets a client send a request again for a day"),
		operational("document", "holds what a server keeps beside runs, which is edited on purpose"),
		operational("notice", "lists the commits that the server has to announce"),
		operational("access_key", "holds secrets of a server, which name nothing in the record"),
		operational("user_value", "changes with the runs of a user and is erased with the user; the operations are in the journals, and each row is sealed"),
		operational("recall_scope", "memory, which is edited on purpose and is in no run"),
		operational("recall_item", "memory, which is edited on purpose and is in no run"),
		operational("recall_past", "memory, which is edited on purpose and is in no run"),
		operational("recall_call", "memory, which is edited on purpose and is in no run"),
		operational("recall_index", "follows from recall_item"),
		operational("recall_index_data", "is part of recall_index"),
		operational("recall_index_idx", "is part of recall_index"),
		operational("recall_index_content", "is part of recall_index"),
		operational("recall_index_docsize", "is part of recall_index"),
		operational("recall_index_config", "is part of recall_index"),
		operational("goose_db_version", "says which migrations were applied; opening compares the schema itself"),
		operational("sqlite_sequence", "SQLite's counters of inbox, queue and live_text"),
		operational(tables.RoundTable, "follows from the journal"),
		operational(tables.EdgeTable, "follows from the journal"),
	)
	for _, t := range trajectory.Types() {
		out = append(out, operational(tables.NodeTable(t), "follows from the journal"))
	}
	return out
}

// recordTables returns the tables of record.
func recordTables() []Table {
	return []Table{
		{Name: "run_row", Key: "num", Columns: append(
			columns(Chained, "num", "i", "id", "t", "root", "i", "salt", "bn$", "flow", "t", "fingerprint", "t",
				"user", "tn", "parent", "tn+", "origin", "tn", "created", "i", "error", "tn+", "session", "in+",
				"round", "in+", "first", "in", "base", "in+", "base_seq", "in+", "base_last", "in+", "program", "in+",
				"folded", "in+", "unchained", "in+", "seal", "i"),
			columns(Operational, "owner", "tn", "until", "i", "fence", "i", "activity", "in", "status", "t", "waiting", "tn",
				"due", "i", "usage", "tn")...)},
		{Name: "run_commit", Key: "id", Columns: columns(Chained, "id", "i", "at", "i", "last", "i", "base", "in+",
			"messages", "tn+", "events", "t", "tag", "in")},
		{Name: "context", Key: "id", Columns: columns(Chained, "id", "i", "run", "in+", "name", "t", "start", "i",
			"source", "in+", "kind", "tn+")},
		{Name: "message", Key: "id", Columns: append(
			columns(Chained, "id", "i", "role", "it", "content", "tn", "value", "in+", "key", "tn+", "rest", "tn+", "seq", "in+"),
			columns(Operational, "tokens", "in")...)},
		{Name: "message_page", Key: "id", Columns: columns(Chained, "id", "i", "hashes", "b")},
		{Name: "value", Key: "id", Columns: columns(Chained, "id", "i", "root", "i", "digest", "bn", "body", "tn")},
		{Name: "value_part", Key: "id", Columns: columns(Chained, "id", "i", "body", "t")},
		{Name: "flow", Key: "fingerprint", Columns: columns(Chained, "fingerprint", "t", "normal", "b")},
		{Name: "program", Key: "num", Columns: columns(Chained, "num", "i", "flow", "t", "fingerprint", "t")},
		{Name: "session", Key: "num", Columns: append(
			columns(Chained, "num", "i", "id", "t", "user", "t", "flow", "t", "thread", "t", "parent", "in+",
				"parent_round", "i", "salt", "b$", "context", "i", "created", "i", "rounds", "i", "changes", "in+", "seal", "i"),
			columns(Operational, "updated", "i", "active", "i", "fence", "i", "holder", "in", "usage", "tn",
				"main", "bn", "expires", "in")...)},
		{Name: "session_change", Key: "id", Columns: columns(Chained, "id", "i", "key", "t", "value", "tn+", "reducer", "tn+",
			"round", "i", "run", "in+", "sender", "tn+", "at", "i", "seal", "i")},
		{Name: "tombstone", Key: "num", Columns: columns(Chained, "num", "i", "origin", "b", "base", "in+",
			"base_seq", "in+", "base_last", "in+", "unchained", "in+", "links", "b", "seal", "i")},
		{Name: "gone", Key: "name", Columns: columns(Chained, "name", "t", "num", "i", "seal", "in")},
	}
}
