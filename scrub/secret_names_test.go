package scrub_test

import (
	"reflect"
	"testing"

	"github.com/weir-run/weir/scrub"
)

func TestTextsUnderSecretNamesAreFoundInValuesAndInTextsThatAreJSON(t *testing.T) {
	got := scrub.TextsUnderSecretNames(map[string]any{
		"password": "hunter22", "name": "ada", "deep": []any{map[string]any{"api_key": []any{"key-1234", int64(5)}}},
		"arguments": `{"accessToken": "token-123456", "q": "weir"}`, "credentials": `{"user": "root", "pw": "x"}`, "token_count": "many tokens",
		"Authorization": "Bearer abc", "secret": "abc",
	}, "password")
	want := []string{"token-123456", "Bearer abc", "hunter22", "key-1234", "root"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
