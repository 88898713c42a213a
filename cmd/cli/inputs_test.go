package cli

import (
	"reflect"
	"testing"

	"github.com/weir-run/weir/flow"
)

// A message is a text as it stands, or a message in JSON; what begins as one and is none is refused.
func TestAnInputOfTypeMessageIsTextOrJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		"hi": "hi", "": "", "12": "12", `"quoted"`: `"quoted"`, "{curly}": "{curly}", "[x]": "[x]", "null": "null",
		` {"role": "user", "text": "hi"}`: map[string]any{"role": "user", "text": "hi"}, `{ "role": "user"`: nil, `{"role": "user", "role": "user"}`: nil,
	} {
		got, err := (&cli{}).inputValue(flow.TypeMessage, text)
		if (err != nil) != (want == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v; want %#v", text, got, err, want)
		}
	}
}

// An input of any type is JSON or a text; JSON that has no single meaning is refused, and is not a text.
func TestAnInputOfAnyTypeIsJSONOrText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`{"a": 1}`: map[string]any{"a": int64(1)}, `{"a": 1`: `{"a": 1`, "plain": "plain", "123456789012345678901": "123456789012345678901",
		`{"a": 1, "a": 2}`: nil, `[{"b": 1, "b": 2}]`: nil,
	} {
		got, err := (&cli{}).inputValue(flow.TypeAny, text)
		if (err != nil) != (want == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v; want %#v", text, got, err, want)
		}
	}
}
