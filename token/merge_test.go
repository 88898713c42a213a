package token

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"
	"pgregory.net/rapid"
)

func encodings(t *testing.T) []*Encoding {
	t.Helper()
	var all []*Encoding
	for _, name := range []string{O200k, Cl100k} {
		e, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestTheVocabulariesAreTheOnesOpenAIPublished(t *testing.T) {
	// The digests stand in tiktoken_ext/openai_public.py of tiktoken.
	for name, want := range map[string]string{
		O200k:  "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
		Cl100k: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
	} {
		data, err := assets.Assets.ReadFile(name + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has digest %x, want %s", name, sum, want)
		}
	}
}

// unbroken draws one piece of few different letters, in which merges meet.
func unbroken() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		alphabet := rapid.SampledFrom([]string{"a", "ab", "aeinst", "=-", " ", "ACGT", "abcdefghijklmnopqrstuvwxyz", "中文"}).Draw(t, "alphabet")
		letters := rapid.SampledFrom(strings.Split(alphabet, ""))
		return strings.Join(rapid.SliceOfN(letters, 2, 400).Draw(t, "letters"), "")
	})
}

func TestHeapMergesLikeLinearSearch(t *testing.T) {
	all := encodings(t)
	rapid.Check(t, func(t *rapid.T) {
		piece := unbroken().Draw(t, "piece")
		for _, e := range all {
			m := e.merger()
			want := m.mergeShort(nil, piece)
			for _, m.stride = range []int{len(piece), 16, 40, 100} {
				m.mergeLong(piece)
				if !slices.Equal(m.starts, want) {
					t.Fatalf("%s: %q by %d: tokens begin at %v, want %v", e.name, piece, m.stride, m.starts, want)
				}
			}
			m.stride = stretchSize
			e.scratch.Put(m)
		}
	})
}

func TestTheWorkOnOneLongPieceIsLinear(t *testing.T) {
	const size = 200_000
	for _, e := range encodings(t) {
		for _, unit := range []string{"a", " ", "ab", "=-", "\u0301", "中", "qzxjkvbw", "aeinst"} {
			piece := strings.Repeat(unit, size/len(unit))
			m := newMerger(e.vocabulary)
			m.begin(piece)
			steps := 0
			for m.mergeNext(piece) {
				steps++
			}
			// A pair for each two bytes, and for each of at most as many merges
			// two new ones.
			if steps > 3*len(piece) {
				t.Errorf("%s: %q x %d takes %d steps", e.name, unit, len(piece)/len(unit), steps)
			}
		}
	}
}

func TestStretchesOfALongPieceFitTogether(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, e := range encodings(t) {
		for _, alphabet := range []string{"a", "=-", "ACGT", "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
			text := make([]byte, 100_000)
			for i := range text {
				text[i] = alphabet[rnd.IntN(len(alphabet))]
			}
			m := newMerger(e.vocabulary)
			m.mergeStretch(string(text), 0, len(text))
			want := append(slices.Clone(m.starts), int32(len(text)))
			m.starts = m.starts[:0]
			if !m.mergeStretches(string(text)) {
				t.Errorf("%s: stretches of %q had to be given up", e.name, alphabet)
			}
			if m.mergeLong(string(text)); !slices.Equal(m.starts, want) {
				t.Errorf("%s: %q: other tokens by stretches than at once", e.name, alphabet)
			}
		}
	}
}

func TestSplittingLooksAtNoPartOfATextAgainAndAgain(t *testing.T) {
	// Each text makes a backtracking matcher look ahead from every position.
	// Whoever does so too has pieces that are many and short and needs minutes
	// for them; here they are few, or end where what was looked at ends.
	const size = 1_000_000
	for _, e := range encodings(t) {
		for _, c := range []struct {
			text  string
			parts int
		}{
			{strings.Repeat(" ", size) + "x", 2},
			{strings.Repeat("\n", size), 1},
			{"\n" + strings.Repeat(" ", size), 2},
			{strings.Repeat("=", size), 1},
			{strings.Repeat("a", size), 1},
			{"中" + strings.Repeat("A", size), 2},
			{strings.Repeat("\u0301", size/2), 1},
		} {
			parts := 0
			for i := 0; i < len(c.text); parts++ {
				i = e.split(e.classes, c.text, i)
			}
			if parts > c.parts {
				t.Errorf("%s: %d pieces in %q..., want at most %d", e.name, parts, c.text[:8], c.parts)
			}
		}
	}
}

func TestQueueIsOrderedByRankThenPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(5000)
		type entry struct {
			rank uint32
			at   int32
		}
		byRankThenPosition := func(a, b entry) int {
			if a.rank != b.rank {
				return int(a.rank) - int(b.rank)
			}
			return int(a.at - b.at)
		}
		var want []entry
		for range rapid.IntRange(1, 100).Draw(t, "operations") {
			if rapid.Bool().Draw(t, "push") {
				n := entry{uint32(rapid.IntRange(0, 4999).Draw(t, "rank")), int32(rapid.IntRange(0, 9).Draw(t, "at"))}
				q.push(n.rank, n.at)
				want = append(want, n)
				continue
			}
			rank, at := q.pop()
			if len(want) == 0 {
				if rank != none {
					t.Fatalf("an empty queue gave %d", rank)
				}
				continue
			}
			slices.SortFunc(want, byRankThenPosition)
			if got := (entry{rank, at}); got != want[0] {
				t.Fatalf("got %v, want %v", got, want[0])
			}
			want = want[1:]
		}
	})
}
