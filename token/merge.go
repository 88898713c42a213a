package token

// Pieces up to short bytes are merged by looking for the lowest rank over and
// over, which is quadratic and fastest; longer ones with a queue.
const short = 48

// merger does byte pair encoding of one piece at a time. It is scratch space:
// it belongs to whoever took it from the pool, and
// the garbage collector empties the pool.
type merger struct {
	words *vocabulary
	// starts of the tokens of the last piece, and its length behind them.
	starts []int32
	// ranks[i] is the rank of merging token i of a short piece with the next.
	ranks []uint32
	// nodes of a long piece: what is known of the token that begins there.
	nodes []node
	queue *queue
}

// node is a token in a doubly linked list over positions; rank is that of
// merging it with the next.
type node struct {
	next, prev int32
	rank       uint32
}

func newMerger(words *vocabulary) *merger {
	return &merger{
		words:  words,
		starts: make([]int32, 0, short+1), ranks: make([]uint32, 0, short+1),
	}
}

// merge splits piece, at least two bytes that are no token, into tokens and
// returns how many. They begin at m.starts.
func (m *merger) merge(piece string) int {
	if len(piece) <= short {
		m.mergeShort(piece)
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

func (m *merger) mergeShort(piece string) {
	starts, ranks := m.starts[:0], m.ranks[:0]
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
	m.starts, m.ranks = starts, ranks
}

// rank of merging the tokens i and i+1; none if there is no i+1.
func (m *merger) rank(piece string, starts []int32, i int) uint32 {
	if i+2 >= len(starts) {
		return none
	}
	return m.words.find(piece[starts[i]:starts[i+2]])
}

// mergeLong makes the same merges in the same order, lowest rank first and of
// equal ones the leftmost, with a queue of pairs. A pair is known by where its
// left token begins; what it says in the queue holds if its node says the same.
func (m *merger) mergeLong(piece string) {
	m.begin(piece)
	for m.step(piece) {
	}
	m.starts = m.starts[:0]
	for i := int32(0); int(i) < len(piece); i = m.nodes[i].next {
		m.starts = append(m.starts, i)
	}
	m.starts = append(m.starts, int32(len(piece)))
}

// step takes one pair out of the queue and merges it if it still is one;
// without a pair left it is false.
func (m *merger) step(piece string) bool {
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
	left.next = right.next
	m.nodes[right.next].prev = at
	m.rerank(piece, at)
	if at > 0 {
		m.rerank(piece, left.prev)
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
	}
	for i := range m.nodes {
		m.nodes[i] = node{int32(i + 1), int32(i - 1), none}
	}
	for i := range n - 1 {
		if r := m.words.pairs[int(piece[i])<<8|int(piece[i+1])]; r != none {
			m.nodes[i].rank = r
			m.queue.push(r, int32(i))
		}
	}
}

// rerank finds anew what merging the token at i with the next would make.
func (m *merger) rerank(piece string, i int32) {
	left := &m.nodes[i]
	left.rank = none
	if int(left.next) == len(piece) {
		return
	}
	if r := m.words.find(piece[i:m.nodes[left.next].next]); r != none {
		left.rank = r
		m.queue.push(r, i)
	}
}
