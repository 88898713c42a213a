package token

// Pieces up to short bytes are merged by looking for the lowest rank over and
// over, which is quadratic and fastest; longer ones with a queue.
const maxShortPiece = 48

// stretchSize keeps what is known of a stretch of a long piece in the processor's
// nearer caches. It must be several times the longest token.
const stretchSize = 8192

// memoBits make a table that stays in those caches too.
const memoBits = 12

// merger does byte pair encoding of one piece at a time. It is scratch space:
// it belongs to the caller that took it from the pool, and
// the garbage collector empties the pool.
type merger struct {
	words *vocabulary
	// starts of the tokens of the last piece, and its length behind them; seam
	// is the same for two tokens that meet.
	starts, seam []int32
	// ranks[i] is the rank of merging token i of a short piece with the next.
	ranks []uint32
	// nodes of a long piece: what is known of the token that begins there.
	nodes []node
	queue *rankQueue
	memo  []pair // of the last pairs of long pieces, by a hash
	// stride is how many bytes of a long piece are merged at a time.
	stride int
}

// node is the token id in a doubly linked list over positions; rank is that of
// merging it with the next.
type node struct {
	next, prev int32
	id, rank   uint32
}

// pair remembers the rank of merging two tokens.
type pair struct{ left, right, rank uint32 }

func newMerger(words *vocabulary) *merger {
	return &merger{
		words:  words,
		starts: make([]int32, 0, maxShortPiece+1), ranks: make([]uint32, 0, maxShortPiece+1),
		stride: stretchSize,
	}
}

// merge splits piece, at least two bytes that are no token, into tokens and
// returns how many. They begin at m.starts.
func (m *merger) merge(piece string) int {
	if len(piece) <= maxShortPiece {
		m.starts = m.mergeShort(m.starts[:0], piece)
	} else {
		m.mergeLong(piece)
	}
	return len(m.starts) - 1
}

// appendIDs adds the ids of the tokens of the piece merged last.
func (m *merger) appendIDs(dst []int, piece string) []int {
	for i := range len(m.starts) - 1 {
		dst = append(dst, int(m.words.find(piece[m.starts[i]:m.starts[i+1]])))
	}
	return dst
}

// mergeShort appends to starts where the tokens of piece begin, and its length.
func (m *merger) mergeShort(starts []int32, piece string) []int32 {
	ranks := m.ranks[:0]
	for i := range len(piece) - 1 {
		starts = append(starts, int32(i))
		ranks = append(ranks, m.words.pairs[int(piece[i])<<8|int(piece[i+1])])
	}
	starts = append(starts, int32(len(piece)-1), int32(len(piece)))
	ranks = append(ranks, none)
	for {
		least, at := uint32(none), 0
		for i, r := range ranks {
			if r < least {
				least, at = r, i
			}
		}
		if least == none {
			break
		}
		starts = append(starts[:at+1], starts[at+2:]...)
		ranks = append(ranks[:at], ranks[at+1:]...)
		ranks[at] = m.rank(piece, starts, at)
		if at > 0 {
			ranks[at-1] = m.rank(piece, starts, at-1)
		}
	}
	m.ranks = ranks[:0]
	return starts
}

// rank of merging the tokens i and i+1; none if there is no i+1.
func (m *merger) rank(piece string, starts []int32, i int) uint32 {
	if i+2 >= len(starts) {
		return none
	}
	return m.words.find(piece[starts[i]:starts[i+2]])
}

// mergeLong splits a long piece into tokens stretch by stretch, or at once
// where the stretches do not fit together.
func (m *merger) mergeLong(piece string) {
	m.starts = m.starts[:0]
	if !m.mergeStretches(piece) {
		m.starts = m.starts[:0]
		m.mergeStretch(piece, 0, len(piece))
	}
	m.starts = append(m.starts, int32(len(piece)))
}

// mergeStretches merges each stretch alone. That is exact where the two tokens
// at every seam stay two when they are merged alone: the first merge of the
// whole piece to cross a seam would cross it there as well, since up to then
// both make the same merges in the same order. Where they do not stay two, the
// stretch begins some tokens earlier; it is false if that does not help soon.
func (m *merger) mergeStretches(piece string) bool {
	from, far, back := 0, 0, 1
	for {
		to := min(from+m.stride, len(piece))
		kept := len(m.starts)
		m.mergeStretch(piece, from, to)
		if kept > 0 && !m.seamHolds(piece[:to], kept) {
			if back > kept || from-int(m.starts[kept-back]) > m.stride/4 {
				return false
			}
			from = int(m.starts[kept-back])
			m.starts = m.starts[:kept-back]
			back *= 2
			continue
		}
		if to == len(piece) {
			return true
		}
		// The end of the stretch was cut, so its last token is recomputed.
		last := len(m.starts) - 1
		from, back = int(m.starts[last]), 1
		m.starts = m.starts[:last]
		if from <= far {
			return false
		}
		far = from
	}
}

// seamHolds says that the tokens kept-1 and kept, merged alone, stay two.
func (m *merger) seamHolds(piece string, kept int) bool {
	left, middle, right := m.starts[kept-1], m.starts[kept], len(piece)
	if kept+1 < len(m.starts) {
		right = int(m.starts[kept+1])
	}
	m.seam = m.mergeShort(m.seam[:0], piece[left:right])
	return len(m.seam) == 3 && m.seam[1] == middle-left
}

// mergeStretch adds the starts of the tokens of piece[from:to], merged alone.
// It makes the same merges as mergeShort in the same order, lowest rank first
// and of equal ones the leftmost, with a queue of pairs. A pair is known by
// where its left token begins; what it says in the queue holds if its node says
// the same.
func (m *merger) mergeStretch(piece string, from, to int) {
	part := piece[from:to]
	m.begin(part)
	for m.mergeNext(part) {
	}
	for i := int32(0); int(i) < len(part); i = m.nodes[i].next {
		m.starts = append(m.starts, int32(from)+i)
	}
}

// mergeNext takes one pair out of the queue and merges it if it still is one;
// without a pair left it is false.
func (m *merger) mergeNext(piece string) bool {
	rank, at := m.queue.pop()
	if rank == none {
		return false
	}
	left := &m.nodes[at]
	if left.rank != rank {
		return true
	}
	right := &m.nodes[left.next]
	right.rank = none
	left.next, left.id = right.next, rank
	m.nodes[right.next].prev = at
	m.updateRank(piece, at)
	if at > 0 {
		m.updateRank(piece, left.prev)
	}
	return true
}

// begin makes every byte of piece a token and queues all pairs.
func (m *merger) begin(piece string) {
	n := len(piece)
	if cap(m.nodes) <= n {
		m.nodes = make([]node, n+1)
	}
	m.nodes = m.nodes[:n+1]
	if m.queue == nil {
		m.queue = newQueue(m.words.len())
		m.memo = make([]pair, 1<<memoBits)
		for i := range m.memo {
			m.memo[i].left = none
		}
	}
	for i := range m.nodes {
		m.nodes[i] = node{int32(i + 1), int32(i - 1), none, none}
	}
	for i := range n {
		m.nodes[i].id = m.words.single[piece[i]]
	}
	for i := range n - 1 {
		if r := m.words.pairs[int(piece[i])<<8|int(piece[i+1])]; r != none {
			m.nodes[i].rank = r
			m.queue.push(r, int32(i))
		}
	}
}

// updateRank recomputes what merging the token at i with the next would make.
func (m *merger) updateRank(piece string, i int32) {
	left := &m.nodes[i]
	left.rank = none
	if int(left.next) == len(piece) {
		return
	}
	right := &m.nodes[left.next]
	known := &m.memo[(left.id*0x9E3779B1+right.id*0x85EBCA77)>>(32-memoBits)]
	if known.left != left.id || known.right != right.id {
		*known = pair{left.id, right.id, m.words.find(piece[i:right.next])}
	}
	if left.rank = known.rank; left.rank != none {
		m.queue.push(left.rank, i)
	}
}
