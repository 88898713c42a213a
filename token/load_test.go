package token

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"flag"
	"os"
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
	var lengths, all bytes.Buffer
	for line := range strings.Lines(string(data)) {
		text, rank, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		token, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if rank != strconv.Itoa(lengths.Len()) || len(token) == 0 || len(token) > 255 {
			t.Fatalf("%s: line %q after %d tokens", name, line, lengths.Len())
		}
		lengths.WriteByte(byte(len(token)))
		all.Write(token)
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(lengths.Len()))
	return string(head) + lengths.String() + all.String()
}

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

func TestDamagedVocabularyFileIsRefused(t *testing.T) {
	// All bytes are tokens, as they must be, and "ab" is one.
	good := "\x01\x01\x00\x00" + strings.Repeat("\x01", 256) + "\x02"
	for b := range 256 {
		good += string([]byte{byte(b)})
	}
	good += "ab"
	v, err := parseVocabulary(good)
	if err != nil {
		t.Fatal(err)
	}
	if id := v.find("ab"); id != 256 || v.text(256) != "ab" || v.most != 2 {
		t.Errorf("the token ab has id %d and text %q", id, v.text(256))
	}
	byteC := 4 + 257 + int('c')
	for what, file := range map[string]string{
		"empty":                  "",
		"a short count":          good[:3],
		"a count alone":          good[:4],
		"a token cut off":        good[:len(good)-1],
		"a byte too many":        good + "c",
		"more tokens than bytes": "\xFF\xFF\xFF\xFF" + good[4:],
		"too many tokens":        "\x01\x00\x04\x00" + strings.Repeat("\x01", 2<<18+2),
		"one token too few":      "\x00\x01\x00\x00" + good[4:],
		"a byte that is none":    good[:byteC] + "b" + good[byteC+1:],
	} {
		if _, err := parseVocabulary(file); err == nil {
			t.Errorf("%s: the file is read", what)
		}
	}
}
