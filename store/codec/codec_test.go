package codec_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-run/weir/store/codec"
)

// secret returns the text of a master key.
func secret(n byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, codec.KeySize))
}

func masterKey(tb testing.TB, n byte) *codec.MasterKey {
	tb.Helper()
	k, err := codec.ParseMasterKey(secret(n))
	if err != nil {
		tb.Fatal(err)
	}
	return &k
}

// dataKey makes the data key of user u with number 7.
func dataKey(tb testing.TB, c *codec.Codec) *codec.DataKey {
	tb.Helper()
	key, err := c.Unwrap(7, "u", c.NewKey("u"))
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// contents are what a store may be given, by name.
func contents() map[string][]byte {
	random := make([]byte, 5000)
	for i, n := 0, uint32(1); i < len(random); i++ {
		n = n*1664525 + 1013904223
		random[i] = byte(n >> 24)
	}
	return map[string][]byte{
		"nil": nil, "empty": {}, "a byte": {1}, "JSON": []byte(`[{"type":"x"}]`), "text": bytes.Repeat([]byte("a word and another, "), 1000),
		"random": random, "looks encoded": []byte(codec.Magic + "\x00x"), "magic alone": []byte(codec.Magic), "looks compressed": []byte(codec.Magic + "\x01x"),
		"looks encrypted": append([]byte(codec.Magic+"\x02"), random[:200]...),
	}
}

// form is a way in which contents are stored.
type form struct {
	compress, encrypt bool
	codec             *codec.Codec
	key               *codec.DataKey
}

func forms(t *testing.T) (out []form) {
	t.Helper()
	for _, compress := range []bool{false, true} {
		plain := codec.New(codec.Options{Compress: compress})
		encrypts := codec.New(codec.Options{Compress: compress, Key: masterKey(t, 1)})
		out = append(out, form{compress, false, plain, nil}, form{compress, true, encrypts, dataKey(t, encrypts)})
	}
	return out
}

// find finds the key of the form.
func (f *form) find(number int64) (*codec.DataKey, error) {
	if f.key == nil || number != f.key.Number {
		return nil, fmt.Errorf("%w: %d", codec.ErrMissingKey, number)
	}
	return f.key, nil
}

// check stores contents and reads them.
func (f *form) check(t *testing.T, name string, plain []byte) {
	t.Helper()
	name = fmt.Sprintf("%s, compress %t, encrypt %t", name, f.compress, f.encrypt)
	stored := f.codec.Encode(f.key, plain)
	if f.encrypt && plain != nil && !codec.IsEncoded(stored) {
		t.Errorf("%s: it is stored as it is", name)
	}
	if f.encrypt && len(plain) > 1000 && bytes.Contains(stored, plain[:20]) {
		t.Errorf("%s: it can be read", name)
	}
	got, err := new(codec.Codec).Decode(f.find, stored)
	if err != nil || !bytes.Equal(got, plain) || (got == nil) != (plain == nil) {
		t.Errorf("%s: %d bytes, want %d; %v", name, len(got), len(plain), err)
	}
	text := f.codec.EncodeText(f.key, string(plain))
	if back, err := f.codec.DecodeText(f.find, text); err != nil || back != string(plain) {
		t.Errorf("%s as text: %v", name, err)
	}
}

func TestEveryContentIsDecodedInEveryForm(t *testing.T) {
	for _, f := range forms(t) {
		for name, plain := range contents() {
			f.check(t, name, plain)
		}
		text := contents()["text"]
		if n := len(f.codec.Encode(f.key, text)); f.compress != (n < len(text)/4) {
			t.Errorf("compress %t: %d bytes take %d", f.compress, len(text), n)
		}
	}
}

func TestNoChangedByteOfEncryptedContentsIsAccepted(t *testing.T) {
	c := codec.New(codec.Options{Compress: true, Key: masterKey(t, 1)})
	key := dataKey(t, c)
	find := (&form{key: key}).find
	stored := c.Encode(key, []byte(`{"text":"hello"}`))
	for i := len(codec.Magic); i < len(stored); i++ { // other bytes before it are contents of another form
		changed := bytes.Clone(stored)
		changed[i] ^= 1
		if got, err := c.Decode(find, changed); !errors.Is(err, codec.ErrDamaged) && !errors.Is(err, codec.ErrMissingKey) {
			t.Errorf("byte %d: %q %v", i, got, err)
		}
	}
	for n := len(codec.Magic) + 1; n < len(stored); n++ {
		if got, err := c.Decode(find, stored[:n]); !errors.Is(err, codec.ErrDamaged) {
			t.Errorf("%d bytes: %q %v", n, got, err)
		}
	}
}

func TestADataKeyBelongsToItsUserAndItsMasterKey(t *testing.T) {
	one, two := masterKey(t, 1), masterKey(t, 2)
	c := codec.New(codec.Options{Key: one})
	w := c.NewKey("u")
	stored := c.Encode(mustUnwrap(t, c, "u", w), []byte("x"))
	if _, err := c.Unwrap(1, "v", w); !errors.Is(err, codec.ErrDamaged) {
		t.Errorf("of another user: %v", err)
	}
	_, err := codec.New(codec.Options{Key: two}).Unwrap(1, "u", w)
	if !errors.Is(err, codec.ErrMissingKey) || !strings.Contains(err.Error(), one.ID()) || !strings.Contains(err.Error(), two.ID()) {
		t.Errorf("under another master key: %v", err)
	}
	if strings.Contains(err.Error(), secret(1)) || strings.Contains(err.Error(), secret(2)) {
		t.Errorf("the error shows a key: %v", err)
	}
	both := codec.New(codec.Options{Key: two, Previous: []codec.MasterKey{*one}})
	again, err := both.Rewrap("u", w)
	if err != nil || again.Master != two.ID() {
		t.Fatalf("wrapped again: %v %v", again.Master, err)
	}
	key := mustUnwrap(t, codec.New(codec.Options{Key: two}), "u", again)
	if got, err := c.Decode(func(int64) (*codec.DataKey, error) { return key, nil }, stored); err != nil || string(got) != "x" {
		t.Errorf("contents of before: %q %v", got, err)
	}
	if err := both.MissingMaster([]string{one.ID(), two.ID()}); err != nil {
		t.Error(err)
	}
}

func mustUnwrap(t *testing.T, c *codec.Codec, user string, w codec.WrappedKey) *codec.DataKey {
	t.Helper()
	key, err := c.Unwrap(1, user, w)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestAMasterKeyIsReadInBothFormsAndNeverShown(t *testing.T) {
	raw := bytes.Repeat([]byte{0xfb}, codec.KeySize)
	forms := []string{
		hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		" " + base64.StdEncoding.EncodeToString(raw) + "\n",
	}
	id := ""
	for _, text := range forms {
		k, err := codec.ParseMasterKey(text)
		if err != nil || id != "" && k.ID() != id {
			t.Errorf("%q: %s %v", text, k.ID(), err)
		}
		id = k.ID()
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k)
		for _, shown := range []string{fmt.Sprint(k), fmt.Sprintf("%+v %#v %x %q %d", k, k, k, &k, k), log.String()} {
			if !strings.Contains(shown, id) || strings.Contains(shown, strings.TrimSpace(text)) || strings.Contains(shown, "fbfb") || strings.Contains(shown, "251 251") {
				t.Errorf("it is shown as %s", shown)
			}
		}
	}
	for _, text := range []string{"", "short", hex.EncodeToString(raw[1:]), hex.EncodeToString(raw) + "00", base64.StdEncoding.EncodeToString(raw[1:]), strings.Repeat("?", 44)} {
		if _, err := codec.ParseMasterKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzAnyBytesAreDecodedOrRefused(f *testing.F) {
	c := codec.New(codec.Options{Compress: true, Key: masterKey(f, 1)})
	key := dataKey(f, c)
	find := (&form{key: key}).find
	for _, plain := range contents() {
		f.Add(c.Encode(key, plain))
		f.Add(codec.New(codec.Options{Compress: true}).Encode(nil, plain))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := c.Decode(find, data)
		if err != nil && !errors.Is(err, codec.ErrDamaged) && !errors.Is(err, codec.ErrMissingKey) {
			t.Fatal(err)
		}
		if err == nil && !codec.IsEncoded(data) && !bytes.Equal(got, data) {
			t.Fatalf("%q became %q", data, got)
		}
		_, _ = c.DecodeText(find, string(data))
	})
}
