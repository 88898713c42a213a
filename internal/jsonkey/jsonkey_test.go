package jsonkey_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/internal/jsonkey"
)

func TestKeysThatOccurTwiceAreFound(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d": {"k": %d}`, i, i)
	}
	for text, want := range map[string]string{
		`{"a":1,"a":2}`:                                   "a",
		`{"a":1,"\u0061":2}`:                              "a",
		`{"a":"x\"","b":{"c":[{"d":1, "d" : 2}]}}`:        "d",
		`[{"a":1},{"a":1,"":0,"":0}]`:                     "",
		`{"é":1,"\u00e9":2}`:                              "é",
		"{\"\xff\":1,\"\xfe\":2}":                         "\ufffd",
		"{" + strings.Join(many, ",") + `, "k7": 1}`:      "k7",
		"{" + strings.Join(many, ",") + `, "k39": 1}`:     "k39",
		`{"a":1,"A":2,"b":"a","c":["a","a"],"d":{"a":1}}`: "none",
		"{" + strings.Join(many, ",") + "}":               "none",
		`"a"`:                                             "none",
		`["a","a"]`:                                       "none",
		`{}`:                                              "none",
		`{"a":"a,\"a"`:                                    "none", // not JSON
		`}}]]"`:                                           "none",
		`{"a\`:                                            "none",
	} {
		err := jsonkey.Check([]byte(text))
		switch d, ok := err.(*jsonkey.DuplicateError); { //nolint:errorlint // Check returns this type itself
		case !ok && want != "none", ok && d.Key != want:
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Of encoded values nothing is found, whatever their keys are; with one member written twice it is.
func TestDuplicateOfAnyKeyIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOfN(rapid.String(), rapid.OneOf(rapid.String().AsAny(), rapid.MapOf(rapid.String(), rapid.String()).AsAny()), 1, 30).Draw(t, "object")
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := json.Unmarshal(text, &back); err != nil || len(back) != len(m) {
			t.Skip("keys that are no valid text are equal once they are encoded")
		}
		if err := jsonkey.Check(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		key := rapid.SampledFrom(slices.Sorted(maps.Keys(m))).Draw(t, "key")
		quoted, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		if jsonkey.Check(fmt.Appendf(nil, "%s,%s:1}", text[:len(text)-1], quoted)) == nil {
			t.Fatalf("the second %s is not found in %s", quoted, text)
		}
	})
}
