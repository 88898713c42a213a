package token

import (
	"math/bits"
	"slices"
)

// rankQueue gives out positions by ascending rank, those of one rank by ascending
// position. Ranks are small numbers and positions of one rank mostly come in
// order, so that a list for each rank and a tree of bits over them does in
// constant time what a heap does in a logarithm of scattered reads.
type rankQueue struct {
	// bits[0] has a bit for each rank that has positions, bits[n+1] one for
	// each word of bits[n] that is not 0; the last is one word.
	bits  [][]uint64
	lists []int32 // for each rank the index of its list plus 1, or 0
	all   []positionList
	free  []int32 // of all, the unused
	top   uint32  // the lowest rank, or none where it has to be looked for
}

// positionList of the positions of one rank; those before first are gone.
type positionList struct {
	at       []int32
	first    int
	unsorted bool
}

func newQueue(ranks int) *rankQueue {
	q := &rankQueue{lists: make([]int32, ranks), top: none}
	for n := ranks; ; {
		n = (n + 63) / 64
		q.bits = append(q.bits, make([]uint64, n))
		if n == 1 {
			return q
		}
	}
}

// push adds a position.
func (q *rankQueue) push(rank uint32, at int32) {
	if q.lists[rank] == 0 {
		q.open(rank)
	}
	l := &q.all[q.lists[rank]-1]
	if n := len(l.at); n > 0 && l.at[n-1] > at {
		l.unsorted = true
	}
	l.at = append(l.at, at)
	if q.top != none && rank < q.top {
		q.top = rank
	}
}

// pop takes the next position out; its rank is none if there is none.
func (q *rankQueue) pop() (rank uint32, at int32) {
	if q.top == none && !q.find() {
		return none, 0
	}
	rank = q.top
	l := &q.all[q.lists[rank]-1]
	if l.unsorted {
		slices.Sort(l.at[l.first:])
		l.unsorted = false
	}
	at = l.at[l.first]
	l.first++
	if l.first == len(l.at) {
		q.close(rank)
		q.top = none
	}
	return rank, at
}

// find the lowest rank; without any it is false.
func (q *rankQueue) find() bool {
	top := q.bits[len(q.bits)-1][0]
	if top == 0 {
		return false
	}
	n := bits.TrailingZeros64(top)
	for i := len(q.bits) - 2; i >= 0; i-- {
		n = n<<6 | bits.TrailingZeros64(q.bits[i][n])
	}
	q.top = uint32(n)
	return true
}

// open gives rank a list.
func (q *rankQueue) open(rank uint32) {
	if len(q.free) == 0 {
		q.all = append(q.all, positionList{})
		q.free = append(q.free, int32(len(q.all)-1))
	}
	last := len(q.free) - 1
	q.lists[rank] = q.free[last] + 1
	q.free = q.free[:last]
	for _, level := range q.bits {
		level[rank>>6] |= 1 << (rank & 63)
		rank >>= 6
	}
}

// close takes the empty list of rank away.
func (q *rankQueue) close(rank uint32) {
	i := q.lists[rank] - 1
	q.all[i] = positionList{at: q.all[i].at[:0]}
	q.lists[rank] = 0
	q.free = append(q.free, i)
	for _, level := range q.bits {
		level[rank>>6] &^= 1 << (rank & 63)
		if level[rank>>6] != 0 {
			return
		}
		rank >>= 6
	}
}
