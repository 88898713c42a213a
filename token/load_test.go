package token

import (
	"encoding/base64"
	"flag"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

var update = flag.Bool("update", false, "write the vocabulary files")

// BenchmarkParseVocabulary reads a vocabulary as a new process does for its first
// count.
func BenchmarkParseVocabulary(b *testing.B) {
	for name, file := range vocabularyFiles() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := parseVocabulary(file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func vocabularyFiles() map[string]string {
	return map[string]string{O200k: o200kFile, Cl100k: cl100kFile}
}

// publishedVocabulary returns what the vendor publishes, in the form that parseVocabulary reads.
func publishedVocabulary(t *testing.T, name string) string {
	t.Helper()
	data, err := assets.Assets.ReadFile(name + ".tiktoken")
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for line := range strings.Lines(string(data)) {
		text, rank, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		token, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if rank != strconv.Itoa(len(tokens)) || len(token) == 0 || len(token) > 255 {
			t.Fatalf("%s: line %q after %d tokens", name, line, len(tokens))
		}
		tokens = append(tokens, string(token))
	}
	return packVocabulary(tokens)
}

// packVocabulary writes a vocabulary file. A bucket has four to eight tokens on average.
func packVocabulary(tokens []string) string {
	bucketBits := max(bits.Len(uint(len(tokens)))-3, 0)
	buckets := make([][]uint32, 1<<bucketBits)
	var lengths, samples, starts, slots, all []byte
	longest := 0
	for id, text := range tokens {
		if id%stride == 0 {
			samples = appendWord(samples, len(all))
		}
		lengths, all, longest = append(lengths, byte(len(text))), append(all, text...), max(longest, len(text))
		h := hash(text)
		b := h >> (64 - bucketBits)
		buckets[b] = append(buckets[b], tagOf(h)<<idBits|uint32(id))
	}
	for _, b := range buckets {
		starts = appendWord(starts, len(slots)/wordSize)
		for _, s := range b {
			slots = appendWord(slots, int(s))
		}
	}
	starts = appendWord(starts, len(tokens))
	head := appendWord(appendWord(appendWord(nil, len(tokens)), bucketBits), longest)
	return string(slices.Concat(head, lengths, samples, starts, slots, all))
}

func appendWord(to []byte, n int) []byte { return append(to, byte(n), byte(n>>8), byte(n>>16)) }

func TestVocabularyFilesMatchThePublishedOnes(t *testing.T) {
	for name, got := range vocabularyFiles() {
		want := publishedVocabulary(t, name)
		if *update {
			if err := os.WriteFile(name+".vocabulary", []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got != want {
			t.Errorf("%s.vocabulary differs from the published vocabulary; run go generate ./token", name)
		}
	}
}

func TestEachTokenIsFoundAndNothingElse(t *testing.T) {
	for name, file := range vocabularyFiles() {
		v, err := parseVocabulary(file)
		if err != nil {
			t.Fatal(err)
		}
		known := make(map[string]bool, v.len())
		for id := range v.len() {
			known[v.text(uint32(id))] = true
		}
		if len(known) != v.len() {
			t.Errorf("%s: %d different texts of %d tokens", name, len(known), v.len())
		}
		for id := range v.len() {
			text := v.text(uint32(id))
			if got := v.find(text); got != uint32(id) {
				t.Fatalf("%s: the token %q of id %d is found as %d", name, text, id, got)
			}
			for _, other := range []string{text + "\x00", text + text, text[1:], text[:len(text)-1]} {
				if got := v.find(other); len(other) > 0 && (got != none) != known[other] {
					t.Fatalf("%s: %q, which is a token: %t, is found as %d", name, other, known[other], got)
				}
			}
		}
	}
}

func TestDamagedVocabularyFileIsRefused(t *testing.T) {
	// All bytes are tokens, as they must be, and "ab" is one.
	var tokens []string
	for b := range 256 {
		tokens = append(tokens, string([]byte{byte(b)}))
	}
	tokens = append(tokens, "ab")
	good := packVocabulary(tokens)
	v, err := parseVocabulary(good)
	if err != nil {
		t.Fatal(err)
	}
	if id := v.find("ab"); id != 256 || v.text(256) != "ab" || v.most != 2 {
		t.Errorf("the token ab has id %d and text %q", id, v.text(256))
	}
	for what, file := range map[string]string{
		"empty":                 "",
		"a short head":          good[:headSize-1],
		"a head alone":          good[:headSize],
		"a token cut off":       good[:len(good)-1],
		"a byte too many":       good + "c",
		"no tokens":             packVocabulary(nil),
		"more tokens than room": "\xFF\xFF\x03" + good[wordSize:],
		"too many tokens":       "\x01\x00\x04" + strings.Repeat("\x00", 4<<20),
		"too many buckets":      good[:wordSize] + "\x13" + good[wordSize+1:],
		"one token too few":     "\x00\x01\x00" + good[wordSize:],
		"a byte that is none":   packVocabulary(append(slices.Clone(tokens[1:]), "abc")),
	} {
		if _, err := parseVocabulary(file); err == nil {
			t.Errorf("%s: the file is read", what)
		}
	}
}
