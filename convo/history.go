package convo

import (
	"encoding/json"
	"hash/maphash"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/benbjohnson/immutable"
)

// History is an immutable sequence of messages. A copy is a snapshot; Append returns a new
// history that shares everything with the old one, so the cost of snapshots and forks does
// not depend on the length. The zero value is empty. Histories are safe for concurrent use.
//
// A history from Restore reads its older messages on demand. Read, Load and Lookup return
// errors of the source; At, All, From and Find cannot, so call Load before them, or check
// Err after them.
type History struct {
	base *lazyPages // the first messages of a restored history
	tree *branch
	// tail has the newest messages, those that do not fill a leaf.
	tail  *messageBlock
	depth int // depth of tree, 0 without a tree
	n     int
	ids   *immutable.Map[string, int] // newest position by id, without those in base
	// versions: an id may occur more than once.
	versions bool
}

// The tree has leaves of width messages and branches of width children.
const (
	treeBits  = 5
	treeWidth = 1 << treeBits
)

type branch struct {
	children []*branch       // above the lowest level
	blocks   []*messageBlock // at the lowest level
}

// messageBlock holds messages in the order of their positions. Histories that share it see as
// many of its slots as their length says. The history that claims the next slot may fill
// it; all others copy the leaf.
type messageBlock struct {
	count atomic.Int32
	slots [treeWidth]*Message
}

// Len returns the number of positions: messages of all versions and epochs.
func (h History) Len() int { return h.n }

// Versions reports whether an id may occur more than once.
func (h History) Versions() bool { return h.versions }

// At returns the message at position i, from 0. It returns the zero Message for a position
// outside the history, and for a message that could not be read (see Err).
func (h History) At(i int) Message {
	m, _ := h.Read(i)
	return m
}

// Read returns the message at position i, from 0, or the error of reading it. It returns
// the zero Message for a position outside the history.
func (h History) Read(i int) (Message, error) {
	if i < 0 || i >= h.n {
		return Message{}, nil
	}
	if i < h.base.len() {
		m, err := h.base.messageAt(i)
		if err != nil {
			return Message{}, err
		}
		return m.clone(), nil
	}
	return h.loadedMessage(i).clone(), nil
}

// All yields every position with its message.
func (h History) All() iter.Seq2[int, Message] { return h.From(0) }

// From yields the positions from i on with their messages. It stops at a message that
// cannot be read (see Err).
func (h History) From(i int) iter.Seq2[int, Message] {
	return func(yield func(int, Message) bool) {
		for i := max(i, 0); i < h.n; i++ {
			m, err := h.Read(i)
			if err != nil || !yield(i, m) {
				return
			}
		}
	}
}

// Load reads the positions from up to but not including to, in as few pieces as possible.
// Loaded messages stay in memory.
func (h History) Load(from, to int) error {
	return h.base.load(max(from, 0), min(to, h.n))
}

// Loaded returns the number of positions in memory, counting whole pages of a restored
// history.
func (h History) Loaded() int {
	n := h.n - h.base.len()
	if h.base != nil {
		n += min((len(h.base.cache)-int(h.base.missing.Load()))*pageSize, h.base.n)
	}
	return n
}

// Err returns the error of the last message that could not be read, nil if there is none.
func (h History) Err() error { return h.base.lastError() }

// Find returns the newest version of the message with that id.
func (h History) Find(id string) (Message, bool) {
	m, pos, _ := h.Lookup(id)
	return m, pos >= 0
}

// Lookup returns the newest version of the message with that id and its position, -1 if
// there is none.
func (h History) Lookup(id string) (Message, int, error) {
	if m, pos := h.findLoaded(id); pos >= 0 {
		return m.clone(), pos, nil
	}
	m, pos, err := h.base.find(id)
	return m.clone(), pos, err
}

// findLoaded is Lookup without the base. The message must not be changed.
func (h History) findLoaded(id string) (Message, int) {
	if h.ids == nil {
		return Message{}, -1
	}
	pos, ok := h.ids.Get(id)
	if !ok {
		return Message{}, -1
	}
	return *h.loadedMessage(pos), pos
}

// Append returns the history with ms appended.
func (h History) Append(ms ...Message) History {
	for _, m := range ms {
		c := m.clone()
		h = h.appendOne(&c)
	}
	return h
}

// appendOne appends a message that is not shared.
func (h History) appendOne(m *Message) History {
	own := h.n - h.base.len()
	switch k := own % treeWidth; {
	case k == 0:
		if own > 0 {
			h.tree, h.depth = insertBlock(h.tree, h.depth, own/treeWidth-1, h.tail)
		}
		h.tail = &messageBlock{}
		h.tail.count.Store(1)
		h.tail.slots[0] = m
	case h.tail.count.CompareAndSwap(int32(k), int32(k+1)):
		h.tail.slots[k] = m
	default:
		l := &messageBlock{}
		copy(l.slots[:k], h.tail.slots[:k])
		l.slots[k] = m
		l.count.Store(int32(k + 1))
		h.tail = l
	}
	if m.ID != "" {
		if h.ids == nil {
			h.ids = immutable.NewMap[string, int](idHasher{maphash.MakeSeed()})
		}
		if _, known := h.ids.Get(m.ID); known {
			h.versions = true
		}
		h.ids = h.ids.Set(m.ID, h.n)
	}
	h.n++
	return h
}

// loadedMessage returns the message at position i, which is not in the base.
func (h History) loadedMessage(i int) *Message {
	i -= h.base.len()
	l := i >> treeBits
	if l == (h.n-h.base.len()-1)>>treeBits {
		return h.tail.slots[i%treeWidth]
	}
	b := h.tree
	for d := h.depth - 1; d > 0; d-- {
		b = b.children[l>>(treeBits*d)%treeWidth]
	}
	return b.blocks[l%treeWidth].slots[i%treeWidth]
}

// messageAt returns the address of the message at position i, nil if it is in the base.
// Histories with the same address are the same up to that position.
func (h History) messageAt(i int) *Message {
	if i < h.base.len() {
		pg := h.base.cache[i/pageSize].Load()
		if pg == nil {
			return nil
		}
		return &(*pg)[i%pageSize]
	}
	return h.loadedMessage(i)
}

// insertBlock returns the tree of that depth with l as leaf number i, which follows the last
// leaf, and the tree's new depth.
func insertBlock(t *branch, depth, i int, l *messageBlock) (*branch, int) {
	if depth == 0 {
		return &branch{blocks: []*messageBlock{l}}, 1
	}
	if i == 1<<(treeBits*depth) {
		t, depth = &branch{children: []*branch{t}}, depth+1
	}
	return t.withBlock(depth, i, l), depth
}

// withBlock copies the path to leaf i and puts l there; b is nil for a new branch.
func (b *branch) withBlock(depth, i int, l *messageBlock) *branch {
	n := &branch{}
	if depth == 1 {
		if b != nil {
			n.blocks = b.blocks
		}
		n.blocks = append(slices.Clip(n.blocks), l)
		return n
	}
	k := i >> (treeBits * (depth - 1)) % treeWidth
	var child *branch
	if b != nil {
		n.children = b.children
		if k < len(b.children) {
			child = b.children[k]
		}
	}
	n.children = append(n.children[:k:k], child.withBlock(depth-1, i, l))
	return n
}

// newestVersions returns the messages from position from on, the newest version of each id
// in the place of its first version. The list belongs to the caller.
func (h History) newestVersions(from int) ([]Message, error) {
	from = max(from, 0)
	if from >= h.n {
		return []Message{}, nil
	}
	if err := h.Load(from, h.n); err != nil {
		return nil, err
	}
	out := make([]Message, 0, h.n-from)
	if !h.versions {
		for i := from; i < h.n; i++ {
			out = append(out, h.At(i))
		}
		return out, nil
	}
	place := make(map[string]int, h.n-from)
	for i := from; i < h.n; i++ {
		m := h.At(i)
		if p, seen := place[m.ID]; seen && m.ID != "" {
			out[p] = m
			continue
		}
		place[m.ID] = len(out)
		out = append(out, m)
	}
	return out, nil
}

// MarshalJSON writes all messages as a list, [] if there are none.
func (h History) MarshalJSON() ([]byte, error) {
	if err := h.Load(0, h.n); err != nil {
		return nil, err
	}
	all := make([]Message, 0, h.n)
	for _, m := range h.All() {
		all = append(all, m)
	}
	return json.Marshal(all)
}

// idHasher hashes message ids with a random seed, because ids may come from outside.
type idHasher struct{ seed maphash.Seed }

// Hash returns the hash of an id.
func (h idHasher) Hash(id string) uint32 {
	s := maphash.String(h.seed, id)
	return uint32(s ^ s>>32)
}

// Equal reports whether two ids are equal.
func (h idHasher) Equal(a, b string) bool { return a == b }
