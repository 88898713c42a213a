package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
)

func TestExternalJSONNeverDecodesToAHandle(t *testing.T) {
	const text = `{"a":{"$context":"main"},"b":[{"$":{"$context":"x"}}],"c":1.0,"d":2}`
	v, err := engine.ParseValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": map[string]any{"$context": "main"},
		"b": []any{map[string]any{"$": map[string]any{"$context": "x"}}}, "c": 1.0, "d": int64(2),
	}
	if !reflect.DeepEqual(v, want) {
		t.Fatalf("got %#v", v)
	}
	m := v.(map[string]any)
	m["h"] = engine.Handle{ID: "main"}
	stored, err := engine.EncodeValue(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	back, err := engine.DecodeValue(stored)
	if err != nil || !reflect.DeepEqual(back, v) {
		t.Fatalf("%s came back as %#v, %v", stored, back, err)
	}
	if _, err := engine.ParseValue([]byte(`[{"a":1,"b":{"a":1,"\u0061":2}}]`)); err == nil || !strings.Contains(err.Error(), `"a" occurs twice`) {
		t.Errorf("a key that occurs twice: %v", err)
	}
	if _, err := engine.ParseValue([]byte(`1 2`)); err == nil {
		t.Fatal("two values were taken for one")
	}
}

func TestNormalizeConvertsGoDataToValues(t *testing.T) {
	t.Parallel()
	type point struct {
		X int `json:"x"`
	}
	var self []any
	self = append(self, &self)
	deep := any("x")
	for range engine.MaxDepth + 1 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		in   any
		want engine.Value // the text of an error in an error
	}{
		{nil, nil},
		{true, true},
		{int32(7), int64(7)},
		{7, int64(7)},
		{uint8(7), int64(7)},
		{float32(0.5), 0.5},
		{json.Number("12"), int64(12)},
		{json.Number("1.5"), 1.5},
		{json.Number("1e999"), errors.New("out of range")},
		{"a\xffb", "a\uFFFDb"},
		{point{3}, map[string]any{"x": int64(3)}},
		{[]point{{3}}, []any{map[string]any{"x": int64(3)}}},
		{engine.Handle{ID: "c\xff"}, engine.Handle{ID: "c\uFFFD"}},
		{engine.Values{{Name: "a", Value: 1}}, map[string]any{"a": int64(1)}},
		{map[string]any{"k\xff": []any{int32(1)}}, map[string]any{"k\uFFFD": []any{int64(1)}}},
		{errors.New("lost"), errors.New("store its text")},
		{map[string]any{"err": fmt.Errorf("more: %w", io.EOF)}, errors.New("store its text")},
		{struct{}{}, map[string]any{}},
		{json.RawMessage(`{"a": 1, "a": 2}`), errors.New(`the key "a" occurs twice`)},
		{[]json.RawMessage{json.RawMessage(`{"b": {"a": 1, "a": 2}}`)}, errors.New(`the key "a" occurs twice`)},
		{math.NaN(), errors.New("is not a number that can be stored")},
		{[]any{math.Inf(1)}, errors.New("is not a number that can be stored")},
		{map[string]any{"a": make(chan int)}, errors.New("cannot be stored")},
		{self, errors.New("cannot be stored")},
		{deep, errors.New("nested deeper than")},
	} {
		got, err := engine.Normalize(c.in)
		if want, fails := c.want.(error); fails {
			if err == nil || !strings.Contains(err.Error(), want.Error()) {
				t.Errorf("%v: %v, %v, want %v", c.in, got, err, want)
			}
		} else if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %#v, %v, want %#v", c.in, got, err, c.want)
		}
	}
	big := strings.Repeat("x", engine.MaxSize/2)
	for _, v := range []any{[]any{big, big, big}, map[string]any{"a": big, "b": big, "c": big}, map[string]any{big + big + "x": 1}, make([]any, engine.MaxSize/16+1)} {
		if _, err := engine.Normalize(v); err == nil || !strings.Contains(err.Error(), "larger than 128 MB") {
			t.Errorf("a value of %T over the limit: %v", v, err)
		}
	}
}

func TestCopySharesNothing(t *testing.T) {
	t.Parallel()
	v := map[string]any{"list": []any{map[string]any{"n": int64(1)}}, "text": "x"}
	c, _ := engine.Copy(v).(map[string]any)
	if !reflect.DeepEqual(v, c) {
		t.Fatalf("the copy is %v", c)
	}
	c["list"].([]any)[0].(map[string]any)["n"] = int64(2)
	if v["list"].([]any)[0].(map[string]any)["n"] != int64(1) {
		t.Error("a change of the copy changed the original")
	}
}

func TestValuesKeepTheirOrderInJSON(t *testing.T) {
	t.Parallel()
	vs := engine.Values{{Name: "z", Value: int64(1)}, {Name: "a", Value: 1.0}, {Name: "h", Value: engine.Handle{ID: "c"}}}
	data, err := json.Marshal(vs)
	if err != nil || string(data) != `{"z":1,"a":1.0,"h":{"$context":"c"}}` {
		t.Fatalf("%s, %v", data, err)
	}
	var back engine.Values
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, vs) {
		t.Errorf("%v, %v", back, err)
	}
	if err := json.Unmarshal([]byte("[1]"), &back); err == nil || !strings.Contains(err.Error(), "expected an object") {
		t.Errorf("a list as values: %v", err)
	}
	nested, err := engine.EncodeValue(nil, map[string]any{"vs": vs, "own": map[string]any{"$context": "text"}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := engine.DecodeValue(nested)
	own := v.(map[string]any)["own"]
	if err != nil || !reflect.DeepEqual(own, map[string]any{"$context": "text"}) {
		t.Errorf("a user's $context key became %#v, %v", own, err)
	}
	if h := v.(map[string]any)["vs"].(map[string]any)["h"]; h != (engine.Handle{ID: "c"}) {
		t.Errorf("a handle became %#v", h)
	}
}

func TestStatusIsReadByNameAndNumber(t *testing.T) {
	t.Parallel()
	for s := engine.Pending; s <= engine.NotNeeded; s++ {
		data, err := json.Marshal(s)
		var byName, byNumber engine.Status
		if err != nil || json.Unmarshal(data, &byName) != nil || byName != s {
			t.Errorf("%s: %s, %v, read as %s", s, data, err, byName)
		}
		if err := json.Unmarshal(fmt.Append(nil, uint8(s)), &byNumber); err != nil || byNumber != s {
			t.Errorf("%d: %s, %v", uint8(s), byNumber, err)
		}
		if s.Ended() != (s >= engine.Completed) {
			t.Errorf("%s: ended is %v", s, s.Ended())
		}
	}
	for _, bad := range []string{`"done"`, `99`, `{}`} {
		var s engine.Status
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%s is read as %s", bad, s)
		}
	}
	if _, err := json.Marshal(engine.Status(99)); err == nil {
		t.Error("an unknown status was written")
	}
}

func TestErrorNamesThePlaceThroughChildRuns(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]engine.Error{
		"m (c)":                 {Code: "c", Message: "m"},
		"a: m (c)":              {Code: "c", Message: "m", Node: "a"},
		"a>b: m (c)":            {Code: "c", Message: "m", Node: "a", Below: "b", Run: "r"},
		"a: child run r: m (c)": {Code: "c", Message: "m", Node: "a", Run: "r"},
		"b: m (c)":              {Code: "c", Message: "m", Below: "b", Run: "r"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWholeNumbersKeepTheirDigitsOrAreRefused reads numbers around the bounds of int64 and
// float64, as JSON and as Go values.
func TestWholeNumbersKeepTheirDigitsOrAreRefused(t *testing.T) {
	for text, want := range map[string]engine.Value{
		"9223372036854775807": int64(math.MaxInt64), "-9223372036854775808": int64(math.MinInt64), "-0": int64(0),
		"10000000000000000000": 1e19, "-18446744073709552000": -18446744073709552000.0, "1e19": 1e19, "18446744073709551615.0": 18446744073709551615.0,
		"9223372036854775808": nil, "-9223372036854775809": nil, "18446744073709551615": nil, "123456789012345678901234567890": nil,
	} {
		got, err := engine.ParseValue([]byte(`{"a":[` + text + `]}`))
		if want == nil {
			if err == nil || !strings.Contains(err.Error(), "the whole number "+text+" does not fit 64 bits") {
				t.Errorf("%s: %v, %v", text, got, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, map[string]any{"a": []any{want}}) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		// What a journal holds is read as it was.
		stored, err := engine.EncodeValue(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := engine.DecodeValue(stored); err != nil || again != want {
			t.Errorf("%s: stored as %s and read as %v, %v", text, stored, again, err)
		}
	}
	for _, v := range []any{uint64(math.MaxUint64), struct{ ID uint64 }{1 << 63}} {
		if got, err := engine.Normalize(v); err == nil {
			t.Errorf("%v became %v", v, got)
		}
	}
}
