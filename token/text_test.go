package token_test

import (
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/token"
)

// pieces make texts in which everything that splits a text is near everything
// else.
var pieces = []string{
	"a", "B", "word", "Word", "WORD", " the", "'s", "'LL", "'ſ", "don't", "ſ", "ǅ", "中", "中文", "ー", "ʰ", "́",
	"é", "e\u0301", "0", "12", "1234", "٣", "Ⅷ", " ", "  ", "   ", "\t", "\u00a0", "\u3000", "\n", "\r\n", "\n\n", "/",
	"//", ".", "...", "{\"", "\":", " =", "👩‍👩‍👧", "🇩🇪", "\x00", "\xff", "\xe4\xb8", "<|endoftext|>", "https://", "_x",
}

func texts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "pieces"), "")
	})
}

func both(tb testing.TB) []*token.Encoding {
	tb.Helper()
	return []*token.Encoding{encoding(tb, token.O200k), encoding(tb, token.Cl100k)}
}

func checkRoundTrip(t interface{ Fatalf(string, ...any) }, e *token.Encoding, text string) {
	ids := e.Append(nil, text)
	if n := e.Count(text); n != len(ids) {
		t.Fatalf("%s: Count(%q) = %d, Append gives %d", e.Name(), text, n, len(ids))
	}
	if back, err := e.Decode(ids); err != nil || back != text {
		t.Fatalf("%s: %q came back as %q, %v", e.Name(), text, back, err)
	}
}

func TestDecodingGivesTheTextBack(t *testing.T) {
	encodings := both(t)
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		for _, e := range encodings {
			checkRoundTrip(t, e, text)
		}
	})
}

func FuzzCount(f *testing.F) {
	for _, p := range pieces {
		f.Add(p)
	}
	f.Add(strings.Repeat("ab", 100))
	encodings := both(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range encodings {
			checkRoundTrip(t, e, text)
			for _, n := range []int{0, 1, 7} {
				checkCut(t, e, text, n)
			}
		}
	})
}

func checkCut(t interface{ Fatalf(string, ...any) }, e *token.Encoding, text string, n int) {
	head, tail := e.Head(text, n), e.Tail(text, n)
	if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
		t.Fatalf("%s: Head(%q, %d) = %q, Tail = %q", e.Name(), text, n, head, tail)
	}
	if h, l := e.Count(head), e.Count(tail); h > n || l > n {
		t.Fatalf("%s: %q cut to %d: head %q has %d tokens, tail %q %d", e.Name(), text, n, head, h, tail, l)
	}
	if utf8.ValidString(text) && (!utf8.ValidString(head) || !utf8.ValidString(tail)) {
		t.Fatalf("%s: %q cut to %d: head %q, tail %q", e.Name(), text, n, head, tail)
	}
	if e.Count(text) <= n && (head != text || tail != text) {
		t.Fatalf("%s: %q fits into %d: head %q, tail %q", e.Name(), text, n, head, tail)
	}
}

func TestAHeadAndATailFitAndAreValid(t *testing.T) {
	encodings := both(t)
	rapid.Check(t, func(t *rapid.T) {
		text, n := texts().Draw(t, "text"), rapid.IntRange(-1, 80).Draw(t, "n")
		for _, e := range encodings {
			checkCut(t, e, text, max(n, 0))
		}
	})
}

func TestHeadAndTailOfPlainTextUseTheWholeLimit(t *testing.T) {
	text := strings.Repeat("The customer's flight HAT170 leaves at 10:35 on 2024-05-22. ", 200)
	for _, e := range both(t) {
		for _, n := range []int{1, 2, 3, 10, 100, 1001, 2500} {
			if h := e.Count(e.Head(text, n)); h < n-2 {
				t.Errorf("%s: the head of %d tokens has %d", e.Name(), n, h)
			}
			if l := e.Count(e.Tail(text, n)); l < n-2 {
				t.Errorf("%s: the tail of %d tokens has %d", e.Name(), n, l)
			}
		}
	}
}

func TestCutCountsRemainingMessages(t *testing.T) {
	// The first token of 亚洲AVa is 亚洲AV, which alone is two; the last two of
	// " =.don't" are three when nothing is before them.
	e := encoding(t, token.O200k)
	if e.Count("亚洲AVa") != 2 || e.Count("亚洲AV") != 2 || e.Count(".don't") != 3 {
		t.Fatal("these texts show nothing any more")
	}
	if h := e.Head("亚洲AVa", 1); e.Count(h) > 1 {
		t.Errorf("the head is %q", h)
	}
	if l := e.Tail(" =.don't", 2); e.Count(l) > 2 {
		t.Errorf("the tail is %q", l)
	}
}

func TestAnEncodingIsSafeForConcurrentUse(t *testing.T) {
	text := strings.Repeat("Einfachheit ", 40) + strings.Repeat("ab", 200)
	want := encoding(t, token.O200k).Append(nil, text)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			e, err := token.Get(token.O200k)
			if err != nil {
				t.Error(err)
				return
			}
			for range 20 {
				if n := e.Count(text); n != len(want) {
					t.Errorf("%d tokens, want %d", n, len(want))
				}
			}
		})
	}
	wait.Wait()
}

func TestCountingWordsAllocatesNothing(t *testing.T) {
	e := encoding(t, token.O200k)
	if n := testing.AllocsPerRun(10, func() { e.Count("The customer would like to change the flight.") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSpecialTokensAreOrdinaryText(t *testing.T) {
	for _, e := range both(t) {
		if n := e.Count("<|endoftext|>"); n < 2 {
			t.Errorf("%s: %d tokens", e.Name(), n)
		}
		if _, err := e.Decode([]int{1 << 20}); err == nil {
			t.Errorf("%s: an id that is none was decoded", e.Name())
		}
	}
}
