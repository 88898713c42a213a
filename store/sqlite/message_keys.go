package sqlite

import (
	"sort"
	"strconv"
	"strings"
)

// The ids of the messages that a round says begin with its number and where in the
// session's history it begins, "12.34/ask.text". Both follow from where the message
// is, so that its row has "/ask.text" alone; an id that begins with a slash by
// itself has another one before it.

// packKey returns a message's id as its row has it.
func (r roundInfo) packKey(context int64, id string) string {
	if rest, ok := strings.CutPrefix(id, r.prefix()); ok && context == r.context && canPack(rest) {
		return "/" + rest
	}
	return plainKey(id)
}

func (r roundInfo) prefix() string {
	return strconv.FormatInt(r.number, 10) + "." + strconv.FormatInt(r.first, 10) + "/"
}

func canPack(rest string) bool { return rest != "" && rest[0] != '/' }

func plainKey(id string) string {
	if strings.HasPrefix(id, "/") {
		return "/" + id
	}
	return id
}

// isPacked reports whether the id that a row has is not all of it.
func isPacked(key string) bool { return len(key) > 1 && key[0] == '/' && key[1] != '/' }

// prefixes are the beginnings of ids in a session's history, by position.
type prefixes []roundInfo

// prefixes reads those for the positions of a context from up to to; there are
// none for one that is no session's.
func (l lineage) prefixes(context, from, to int64) (prefixes, error) {
	var out prefixes
	err := l.query(func(row scanner) error {
		r := roundInfo{context: context}
		err := row.Scan(&r.number, &r.first)
		out = append(out, r)
		return err
	}, `SELECT r.round, r.first FROM session s JOIN run_row r ON r.session = s.num
		WHERE s.context = ?1 AND r.first < ?3 AND r.first >= coalesce(
			(SELECT max(n.first) FROM run_row n WHERE n.session = s.num AND n.first <= ?2), 0)
		ORDER BY r.first, r.num`, context, from, to)
	return out, err
}

// unpack returns the id of the message at a position whose row has key.
func (p prefixes) unpack(key string, position int64) string {
	if !isPacked(key) {
		return strings.TrimPrefix(key, "/")
	}
	i := sort.Search(len(p), func(i int) bool { return p[i].first > position })
	if i == 0 {
		return key // its round is gone
	}
	return p[i-1].prefix() + key[1:]
}

// splitKey returns a message's id as a round's row would have it, and the prefix of the
// round; "" where no round would have one like it.
func splitKey(id string) (packed, prefix string) {
	prefix, rest, ok := strings.Cut(id, "/")
	if !ok || !canPack(rest) {
		return "", ""
	}
	return "/" + rest, prefix
}
