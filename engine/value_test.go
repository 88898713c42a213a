package engine_test

import (
	"reflect"
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
	if _, err := engine.ParseValue([]byte(`1 2`)); err == nil {
		t.Fatal("two values were taken for one")
	}
}
