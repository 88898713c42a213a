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

func TestSecretsAreFoundInEveryForm(t *testing.T) {
	t.Parallel()
	want := map[string]int{"name and value": 2} // also without the scheme
	for name, v := range map[string]any{
		"member":                   map[string]any{"password": "hunter22"},
		"number":                   map[string]any{"pin": int64(48392011)},
		"number in JSON":           `{"otp": 48392011}`,
		"named type":               attributes{"secret": "hunter22"},
		"texts by name":            map[string]map[string]string{"headers": {"X-Api-Key": "abc12345"}},
		"list":                     map[string]any{"apiKeys": []any{"key-1234"}},
		"nested":                   map[string]any{"credentials": map[string]any{"user": []any{map[string]any{"x": "deep-1234"}}}},
		"name and value":           []any{map[string]any{"name": "Authorization", "value": "Bearer abc123"}},
		"key and value":            map[string]any{"key": "client_secret", "value": "abc12345"},
		"pair":                     []any{[]any{"X-Api-Key", "abc12345"}},
		"JSON text":                `{"accessToken": "token-123456"}`,
		"JSON in JSON":             `{"body": "{\"refresh_token\": \"token-123456\"}"}`,
		"JSON that is cut":         `{"items": [{"password": "hunter22", "next": "abc`,
		"JSON in prose":            `The answer was {"apiKey": "key-1234"}.`,
		"escaped JSON that is cut": `{"body": "{\"password\": \"hunter22\", `,
		"environment":              "HOME=/root\nGITHUB_TOKEN=ghp_123456\n",
		"YAML":                     "user: ada\npassword: hunter22\n",
		"header":                   "GET / HTTP/1.1\nAuthorization: Bearer abc123\n",
		"query":                    "https://example.com/?access_token=abc12345&q=1",
		"camel case":               map[string]any{"githubToken": "ghp_123456"},
		"single quotes":            "{'password': 'hunter22'}",
		"cookie":                   map[string]any{"Set-Cookie": "sid=abc12345"},
	} {
		if got := scrub.TextsUnderSecretNames(v); len(got) != want[name] && (want[name] > 0 || len(got) != 1) {
			t.Errorf("%s: found %q in %v", name, got, v)
		}
	}
	for _, v := range []any{
		map[string]any{"token_count": "many tokens", "max_tokens": int64(4096), "name": "password", "monkey": "bananas", "pinned": "first"},
		"Your password: please choose one. The token: a word.", `{"name": "secret", "tag": "a value"}`,
		[]any{"password", "username", "email"},
	} {
		if got := scrub.TextsUnderSecretNames(v); len(got) != 0 {
			t.Errorf("found %q in %v", got, v)
		}
	}
}

type attributes map[string]any
