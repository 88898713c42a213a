package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
)

// pagePositions is how many positions of a context make a page of message_page. An
// index of ids would take ten times the room.
const pagePositions = 512

// hashSize is how many bytes of a hash a page keeps of an id. With 3 of them a
// page that lacks an id is taken for one that has it once in 30,000 times.
const hashSize = 3

// idHash returns what a page keeps of an id. It is in files: it must never change.
func idHash(id string) [hashSize]byte {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash never fails
	s := h.Sum32()
	s ^= s >> 24
	return [hashSize]byte{byte(s), byte(s >> 8), byte(s >> 16)}
}

// writePage notes the ids of a page whose last position was just written.
func (w *writeTx) writePage(context, page int64) error {
	hashes, err := w.lineage().pageHashes(context, page)
	if err != nil {
		return err
	}
	_, err = w.prepared().ExecContext(w.ctx, "INSERT OR REPLACE INTO message_page (id, hashes) VALUES (?, ?)",
		messageID(context, page), hashes)
	return err
}

// pageHashes returns what a page keeps of the ids of its messages.
func (l lineage) pageHashes(context, page int64) ([]byte, error) {
	p, err := l.prefixes(context, page*pagePositions, (page+1)*pagePositions)
	if err != nil {
		return nil, err
	}
	hashes := make([]byte, 0, pagePositions*hashSize)
	err = l.query(func(row scanner) error {
		var position int64
		var key string
		if err := row.Scan(&position, &key); err != nil {
			return err
		}
		h := idHash(p.unpack(key, position))
		hashes = append(hashes, h[:]...)
		return nil
	}, "SELECT id & 0xffffffff, key FROM message WHERE id >= ? AND id < ? AND key IS NOT NULL",
		messageID(context, page*pagePositions), messageID(context, (page+1)*pagePositions))
	return hashes, err
}

// span is a range of positions, to not included.
type span struct{ from, to int64 }

// FindMessage returns the highest position below n at which a context has a
// message with that id of its own, -1 if there is none.
func (s *Store) FindMessage(ctx context.Context, id, contextID, messageID string, n int) (int, error) {
	at := -1
	parts, err := s.stretches(ctx, id, contextID, 0, n)
	for some := range slices.Chunk(parts, maxStretchesPerQuery) {
		if err == nil && at < 0 {
			at, err = s.findIn(ctx, some, messageID)
		}
	}
	return at, s.wrap(fmt.Sprintf("find message in run %s, context %s", id, contextID), err)
}

// maxStretchesPerQuery is in how many stretches a message is looked for with one query.
const maxStretchesPerQuery = 128

// findIn returns the highest position in some stretches of a message with that
// id.
func (s *Store) findIn(ctx context.Context, parts []stretch, messageID string) (int, error) {
	var ranges [][2]int64
	for _, p := range parts {
		spans := []span{{p.from, p.to}}
		if p.to/pagePositions > p.from/pagePositions { // a page may end in it
			var err error
			if spans, err = s.candidateSpans(ctx, p, messageID); err != nil {
				return -1, err
			}
		}
		for _, x := range spans {
			ranges = append(ranges, [2]int64{p.context*rowsPerParent + x.from, p.context*rowsPerParent + x.to})
		}
	}
	if len(ranges) == 0 {
		return -1, nil
	}
	list, err := json.Marshal(ranges)
	if err != nil {
		return -1, err
	}
	var at int
	packed, prefix := splitKey(messageID)
	err = s.reader.QueryRowContext(ctx, `SELECT coalesce(max(m.id & 0xffffffff), -1)
		FROM json_each(?1) r JOIN message m ON m.id >= r.value ->> 0 AND m.id < r.value ->> 1
		WHERE m.key = ?2 OR m.key = ?3 AND ?4 = (SELECT n.round || '.' || n.first FROM session s JOIN run_row n ON n.session = s.num
			WHERE s.context = m.id >> 32 AND n.first <= m.id & 0xffffffff ORDER BY n.first DESC, n.num DESC LIMIT 1)`,
		string(list), plainKey(messageID), packed, prefix).Scan(&at)
	return at, err
}

// candidateSpans lists the positions of a stretch that may hold a message with that id,
// the last first.
func (s *Store) candidateSpans(ctx context.Context, p stretch, key string) ([]span, error) {
	var out []span
	upper := p.to
	add := func(from, to int64) {
		from = max(from, p.from)
		if k := len(out) - 1; k >= 0 && out[k].from == to {
			out[k].from = from
		} else if from < to {
			out = append(out, span{from, to})
		}
	}
	want := idHash(key)
	err := s.query(ctx, func(row scanner) error {
		var page int64
		var hashes []byte
		if err := row.Scan(&page, &hashes); err != nil {
			return err
		}
		from, to := page*pagePositions, (page+1)*pagePositions
		if to < upper {
			add(to, upper) // no page is kept of these
			upper = to
		}
		if containsHash(hashes, want) {
			add(from, upper)
		}
		upper = from
		return nil
	}, // Most pages are distinguished without being returned. A match may be of parts
		// of two hashes.
		"SELECT id & 0xffffffff, iif(instr(hashes, ?), hashes, NULL) FROM message_page WHERE id >= ? AND id < ? ORDER BY id DESC",
		want[:], p.context*rowsPerParent+p.from/pagePositions, p.context*rowsPerParent+(p.to+pagePositions-1)/pagePositions)
	add(p.from, upper)
	return out, err
}

func containsHash(hashes []byte, want [hashSize]byte) bool {
	for i := 0; i+hashSize <= len(hashes); i += hashSize {
		if hashes[i] == want[0] && hashes[i+1] == want[1] && hashes[i+2] == want[2] {
			return true
		}
	}
	return false
}
