package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update-codec", false, "rewrite the golden journal")

// kindNames lists every kind by the Kind methods in the source, so that a new
// kind which the codec does not know fails the tests.
func kindNames() []string {
	source, err := os.ReadFile("event.go")
	if err != nil {
		panic(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`Kind\(\) string\s+{ return "(.*)" }`).FindAllSubmatch(source, -1) {
		names = append(names, string(m[1]))
	}
	if len(names) < 20 {
		panic("event.go no longer reads as these tests expect")
	}
	return names
}

// filler fills events by reflection, so that a field which the codec does not
// visit fails the tests.
type filler struct {
	*rand.Rand
	// full sets every field, with values that depend on nothing but the place.
	full bool
}

func (f filler) skip() bool { return !f.full && f.IntN(3) == 0 }

func (f filler) size() int {
	if f.full {
		return 2
	}
	return 1 + f.IntN(3)
}

func (f filler) text() string {
	texts := []string{"draft", "refine#2/draft", "naïve ☕ \U0001F600", "a\"b\\c\n\t\x01", "<b>&", "$v", "x"}
	if f.full {
		return "text"
	}
	return texts[f.IntN(len(texts))]
}

func (f filler) value(depth int) Value {
	if f.full {
		return map[string]any{"float": 1.0, "handle": Handle{"main"}, "int": int64(1), "list": []any{"a", nil, true}}
	}
	switch n := f.IntN(9); {
	case n == 0 && depth > 0:
		l := make([]any, f.IntN(4))
		for i := range l {
			l[i] = f.value(depth - 1)
		}
		return l
	case n <= 2 && depth > 0:
		m := map[string]any{}
		for range f.IntN(4) {
			m[f.text()] = f.value(depth - 1)
		}
		return m
	case n == 3:
		return f.Int64() - f.Int64()
	case n == 4:
		return float64(f.IntN(1000)) / 8
	case n == 5:
		return Handle{f.text()}
	case n == 6:
		return f.IntN(2) == 0
	case n == 7:
		return float64(f.Int64())
	}
	return f.text()
}

func (f filler) fill(v reflect.Value) {
	switch v.Interface().(type) {
	case Values:
		vs := make(Values, 0, 2)
		for i := range f.size() {
			vs = append(vs, Named{fmt.Sprint(f.text(), i), f.value(3)})
		}
		v.Set(reflect.ValueOf(vs))
		return
	case map[string]any:
		v.Set(reflect.ValueOf(map[string]any{"type": "string", "minLength": int64(1)}))
		return
	case map[string]string:
		v.Set(reflect.ValueOf(map[string]string{"b": "2", "a": f.text()}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !f.skip() {
				f.fill(v.Field(i))
			}
			if v.Type().Field(i).Name == "Body" && !v.Field(i).IsNil() {
				v.Field(i).Set(reflect.ValueOf(json.RawMessage(`{"append":[{"role":"user","text":"<hi>"}]}`)))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		n := f.size()
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Int, reflect.Int64:
		if v.SetInt(int64(7)); !f.full {
			v.SetInt(f.Int64N(1 << 50))
		}
	case reflect.Uint8:
		v.SetUint(uint64(Completed))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		if x := f.value(3); x != nil {
			v.Set(reflect.ValueOf(x))
		}
	default:
		panic("the codec's tests cannot fill a " + v.Type().String())
	}
}

func (f filler) event(kind string) Event {
	e := newEvent(kind)
	f.fill(reflect.ValueOf(e).Elem())
	return e
}

func TestEveryEventKindRoundTrips(t *testing.T) {
	for seed := range uint64(300) {
		f := filler{rand.New(rand.NewPCG(seed, 1)), seed == 0}
		var events []Event
		for _, kind := range kindNames() {
			events = append(events, f.event(kind))
		}
		data, err := EncodeEvents(nil, events)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		back, err := DecodeEvents(data)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, data)
		}
		for i := range events {
			if !reflect.DeepEqual(events[i], back[i]) {
				t.Fatalf("seed %d:\nwrote %#v\nread  %#v\n%s", seed, events[i], back[i], data)
			}
		}
	}
}

func TestEmptyEventEncodesOnlyItsType(t *testing.T) {
	for _, kind := range kindNames() {
		data, err := EncodeEvents(nil, []Event{newEvent(kind)})
		if err != nil {
			t.Fatal(err)
		}
		if want := `[{"type":"` + kind + `"}]`; string(data) != want {
			t.Errorf("got %s, want %s", data, want)
		}
	}
}

func TestJournalFormatMatchesGolden(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(1, 1)), true}
	var got bytes.Buffer
	for _, kind := range kindNames() {
		data, err := EncodeEvents(nil, []Event{f.event(kind)})
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(data, '\n'))
	}
	file := filepath.Join("testdata", "codec", "v1.jsonl")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the format changed; old journals must stay readable (-update-codec rewrites):\ngot\n%s\nwant\n%s", got.String(), want)
	}
	for line := range bytes.Lines(want) {
		if _, err := DecodeEvents(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestEarlierJournalFormatsAreReadAndWrittenUnchanged reads what earlier versions wrote: events
// without the fields that were added since. Written again they are the same bytes, because
// digests of a record cover them.
func TestEarlierJournalFormatsAreReadAndWrittenUnchanged(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "codec", "before-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			events, err := DecodeEvents(line)
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if again, err := EncodeEvents(nil, events); err != nil || !bytes.Equal(again, bytes.TrimSpace(line)) {
				t.Errorf("%s became %s: %v", line, again, err)
			}
		}
	}
}

func TestUnknownAndNewerEventsAreRejected(t *testing.T) {
	cases := []struct {
		json, says string
		is         error
	}{
		{`[{"type":"node.exploded"}]`, `event 1: "node.exploded": unknown kind`, ErrUnknownEvent},
		{`[{"type":"node.started","v":2}]`, `"node.started" version 2, this build reads up to 1`, ErrNewerEvent},
		{`[{"type":"node.started","v":0}]`, "version 0", ErrNewerEvent},
		{`[{"type":"node.started","zeal":1}]`, `unknown or repeated field "zeal"`, nil},
		{`[{"type":"node.started","node":"a","node":"b"}]`, `unknown or repeated field "node"`, nil},
		{`[{"type":"node.started","node":1}]`, "node: expected text, got 1", nil},
		{`[{"type":"node.started","attempt":1.5}]`, "attempt: expected a whole number", nil},
		{`[{"type":"node.completed","cached":"yes"}]`, "cached: expected true or false", nil},
		{`[{"type":"node.completed","outputs":[1]}]`, "expected an object of values", nil},
		{`[{"type":"node.completed","state":{}}]`, "state: expected a list", nil},
		{`[{"type":"node.failed","error":[]}]`, "expected an object", nil},
		{`[1]`, "expected an object, got 1", nil},
		{`{}`, "expected an array, got {}", nil},
		{`[`, "not JSON", nil},
		{``, "not JSON", nil},
	}
	for _, c := range cases {
		_, err := DecodeEvents([]byte(c.json))
		if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %v, want %q", c.json, err, c.says)
		}
	}
}

func TestOlderEventVersionIsUpcast(t *testing.T) {
	rename := func(m []member) ([]member, error) {
		for i := range m {
			if m[i].key == "name" {
				m[i].key = "node"
			}
		}
		return m, nil
	}
	count := func(m []member) ([]member, error) { return append(m, member{"attempt", []byte("3")}), nil }
	c := Codec{versions: versions{"node.started": {rename, count}}}
	got, err := c.Decode([]byte(`[{"type":"node.started","name":"a"},{"type":"node.started","v":3,"node":"b"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{&NodeStarted{Path: "a", Attempt: 3}, &NodeStarted{Path: "b"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v %+v", got[0], got[1])
	}
	data, err := c.Encode(nil, want[1:])
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != `[{"type":"node.started","v":3,"node":"b"}]` {
		t.Errorf("got %s", data)
	}
}

func TestUnstorableValueIsAnError(t *testing.T) {
	_, err := EncodeEvents(nil, []Event{&EffectCompleted{Key: "k", Result: make(chan int)}})
	if err == nil || !strings.Contains(err.Error(), "encode event 1 (effect.completed): a value of type chan int") {
		t.Errorf("got %v", err)
	}
}

func FuzzDecodeEvents(f *testing.F) {
	fill := filler{rand.New(rand.NewPCG(1, 1)), true}
	for _, kind := range kindNames() {
		data, err := EncodeEvents(nil, []Event{fill.event(kind)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := DecodeEvents(data)
		if err != nil {
			return
		}
		once, err := EncodeEvents(nil, events)
		if err != nil {
			t.Fatalf("%s: read and not written: %v", data, err)
		}
		again, err := DecodeEvents(once)
		if err != nil {
			t.Fatalf("%s: written and not read: %v", once, err)
		}
		twice, err := EncodeEvents(nil, again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not stable (%v):\n%s\n%s", err, once, twice)
		}
	})
}

func BenchmarkEncodeNodeCompleted(b *testing.B) {
	events := []Event{
		&NodeCompleted{Path: "n17", Outputs: Values{{"out", int64(17)}}, Micros: 3},
		&NodeStarted{Path: "n18"},
	}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodeEvents(buf, events); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeNodeCompleted(b *testing.B) {
	data := []byte(`[{"type":"node.completed","node":"n17","outputs":{"out":17},"us":3},{"type":"node.started","node":"n18"}]`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeEvents(data); err != nil {
			b.Fatal(err)
		}
	}
}
