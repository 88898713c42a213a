package mcptool_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/tool"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// kinds returns the ways to a server.
func kinds() map[string]func(*testing.T) mcptool.Server {
	return map[string]func(*testing.T) mcptool.Server{"stdio": stdio, "http": overHTTP}
}

func TestToolsOfAServerAreCalledByTheirNameInFlows(t *testing.T) {
	t.Parallel()
	for kind, serve := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			set := accepted(t, client(t, s, lock(t)))
			for _, c := range []struct{ name, arguments, want, fail string }{
				{"echo", `{"text":"hej ","times":2}`, "hej hej ", ""},
				{"echo", `{"text":1}`, "", "text: expected string, got number"},
				{"echo", `{"txt":"a"}`, "", "it takes text, times"},
				{"sum", `{"A":2,"B":3}`, `{"sum":5}`, ""},
				{"fail", ``, "", "no such thing"},
				{
					"many", `{}`, "text␛[0m\n[image, image/png, 3 bytes]\n[audio, audio/wav, 4 bytes]\n[resource a, text/plain: file:///a]\n" +
						"[resource file:///b, text/plain]\ninside\n[resource file:///c, a/b, 2 bytes]", "",
				},
			} {
				got, err := call(t, set, c.name, c.arguments)
				if got != c.want || (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
					t.Errorf("%s %s: got %q, %v", c.name, c.arguments, got, err)
				}
			}
			echo := set.Get("mcp__test__echo")
			if echo == nil || echo != set.Get("mcp:test/echo") || echo.ReadOnly || echo.Description != "Says it again." {
				t.Errorf("got %+v", echo)
			}
		})
	}
}

func TestOnlyListedToolsAreOffered(t *testing.T) {
	t.Parallel()
	for kind, serve := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.Tools = []string{"sum", "nope", "echo"}
			s.TrustReadOnly = true
			s.Approve = map[string]tool.Approval{"*": tool.ApproveOnce, "echo": tool.ApproveNever}
			c := client(t, s, lock(t))
			_, err := c.Tools(t.Context())
			var refused *mcptool.RefusedError
			if !errors.As(err, &refused) || len(refused.Refusals) != 3 || refused.Refusals[1].Reason != mcptool.ReasonMissing {
				t.Fatalf("got %v", err)
			}
			if err := c.Accept(refused.Refusals...); err == nil || !strings.Contains(err.Error(), "mcp:test/nope") {
				t.Errorf("what is missing cannot be accepted: %v", err)
			}
			if err := c.Accept(refused.Refusals[0], refused.Refusals[2]); err != nil {
				t.Fatal(err)
			}
			tools, err := c.Tools(t.Context())
			if len(tools) != 2 || !errors.As(err, &refused) {
				t.Fatalf("what is accepted is offered beside what is missing: %d tools, %v", len(tools), err)
			}
			got := fmt.Sprintln(tools[0].Alias, tools[0].ReadOnly, tools[0].Approve, tools[1].Alias, tools[1].ReadOnly, tools[1].Approve)
			if got != "mcp:test/echo true never mcp:test/sum false once\n" {
				t.Error(got)
			}
		})
	}
}

func TestWithoutAListNothingIsOffered(t *testing.T) {
	t.Parallel()
	s := stdio(t)
	s.Tools = nil
	if tools, err := client(t, s, lock(t)).Tools(t.Context()); len(tools) != 0 || err != nil {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}

func TestAChangedDefinitionIsRefusedUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	for kind, serve := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := client(t, serve(t), lock(t))
			checkRefusal(t, refusal(t, accepted(t, c), "echo", `{"text":"a"}`))
			tools, err := c.Tools(t.Context())
			refused, ok := errors.AsType[*mcptool.RefusedError](err)
			if !ok || len(refused.Refusals) != 1 {
				t.Fatalf("got %v", err)
			}
			if set, _ := tool.NewSet(tools...); set.Get("mcp:test/echo") != nil || set.Get("mcp:test/sum") == nil {
				t.Errorf("it, and it alone, is not offered: %v", set.Names())
			}
			if err := c.Accept(refused.Refusals...); err != nil {
				t.Fatal(err)
			}
			if got, err := call(t, accepted(t, c), "echo", `{"text":"a"}`); got != "a" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// checkRefusal checks what a model and a person see of a changed tool.
func checkRefusal(t *testing.T, refused *mcptool.RefusedError) {
	t.Helper()
	const want = "mcp tools refused: mcp:test/echo changed since it was accepted; a person can accept it with `weir tools accept test/echo`"
	if refused.Error() != want { // a model reads it: nothing of the new text is in it
		t.Errorf("got %v", refused)
	}
	const shown = `its description was "Says it again." and is now "Says it again. Before that`
	if text := refused.Refusals[0].String(); !strings.Contains(text, shown) {
		t.Errorf("a person is shown %s", text)
	}
}

// refusal has the server change a tool, and calls that until it is refused: the
// server's notice may come after the answer to what changed it.
func refusal(t *testing.T, set *tool.Set, name, arguments string) *mcptool.RefusedError {
	t.Helper()
	if _, err := call(t, set, "rug.pull/it", ""); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		_, err := call(t, set, name, arguments)
		if refused, ok := errors.AsType[*mcptool.RefusedError](err); ok {
			return refused
		}
	}
	t.Fatal("a tool that changed under its caller's feet is called all the same")
	return nil
}

func TestPinsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := client(t, overHTTP(t), mcptool.NewLockFile(dir+"/pins.json"))
	accepted(t, first)
	second := client(t, overHTTP(t), mcptool.NewLockFile(dir+"/pins.json"))
	tools, err := second.Tools(t.Context())
	if len(tools) == 0 || err != nil {
		t.Errorf("%d tools, %v", len(tools), err)
	}
	b, err := os.ReadFile(dir + "/pins.json")
	if err != nil || !strings.Contains(string(b), `"description": "Says it again."`) || strings.Contains(string(b), "key-to-the-test") {
		t.Errorf("%v: %s", err, b)
	}
	if err := os.WriteFile(dir+"/pins.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if tools, err := second.Tools(t.Context()); len(tools) != 0 || err == nil {
		t.Errorf("pins that cannot be read accept nothing: %d tools, %v", len(tools), err)
	}
}

func TestAServerGetsOnlyTheEnvironmentItIsGiven(t *testing.T) {
	t.Setenv("WEIR_TEST_PASSED", "1")
	t.Setenv("WEIR_TEST_KEPT", "1")
	s := stdio(t)
	s.PassEnv = []string{"WEIR_TEST_PASSED", "WEIR_TEST_NOT_SET"}
	got, err := call(t, accepted(t, client(t, s, lock(t))), "environment", "")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(strings.TrimSuffix(got, "[secret KEY]")) {
		switch name {
		case "PATH", "HOME", "LANG", "TMPDIR", "KEY", "WEIR_TEST_PASSED", asServer:
		default:
			t.Errorf("it has %s", name)
		}
	}
	if !strings.Contains(got, "WEIR_TEST_PASSED") || !strings.HasSuffix(got, " [secret KEY]") {
		t.Errorf("it is given what is passed, and its secrets do not come back: %s", got)
	}
}

func TestAServerThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := stdio(t)
	s.TrustReadOnly = true
	c := client(t, s, lock(t))
	set := accepted(t, c)
	_, err := call(t, set, "die", "")
	if !errors.Is(err, tool.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "ready, and the key is [secret KEY]") {
		t.Errorf("a call that the server did not survive may have been acted on: %v", err)
	}
	if len(err.Error()) > 9<<10 {
		t.Errorf("%d bytes of a server's last words", len(err.Error()))
	}
	if got, err := call(t, set, "echo", `{"text":"again"}`); got != "again" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRestartedHTTPServerIsReconnected(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[http.Handler]
	restart := func() {
		s := newServer(t.Context())
		h := http.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
		now.Store(&h)
	}
	restart()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*now.Load()).ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	set := accepted(t, client(t, mcptool.Server{Name: "test", URL: web.URL, Tools: []string{"*"}}, lock(t)))
	for range 3 {
		if got, err := call(t, set, "sum", `{"A":2,"B":3}`); got != `{"sum":5}` || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		restart()
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	s := stdio(t)
	s.Env[asServer] = "broken"
	_, err := client(t, s, lock(t)).Tools(t.Context())
	if err == nil || !strings.Contains(err.Error(), "mcp server test: connect") || !strings.Contains(err.Error(), "ready, and the key is [secret KEY]") {
		t.Errorf("got %v", err)
	}
	s.Command = []string{"no-such-program-anywhere"}
	if _, err := client(t, s, lock(t)).Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-program-anywhere") {
		t.Errorf("got %v", err)
	}
	s.Command, s.ConnectTimeout = []string{"sleep", "600"}, 300*time.Millisecond
	begin := time.Now()
	if _, err := client(t, s, lock(t)).Tools(t.Context()); err == nil || time.Since(begin) > time.Minute {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
	web := overHTTP(t)
	web.Headers = nil
	if _, err := client(t, web, lock(t)).Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("got %v", err)
	}
}

func TestACallIsBoundedInTime(t *testing.T) {
	t.Parallel()
	for kind, serve := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.Timeout = 300 * time.Millisecond
			set := accepted(t, client(t, s, lock(t)))
			if _, err := call(t, set, "hang", ""); !errors.Is(err, tool.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "within 300ms") {
				t.Errorf("got %v", err)
			}
			if got, err := call(t, set, "echo", `{"text":"still here"}`); got != "still here" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			if _, err := set.Get("mcp:test/hang").Run(ctx, tool.Call{}); !errors.Is(err, context.Canceled) {
				t.Errorf("a call that was cut off says so: %v", err)
			}
		})
	}
}

func TestCallsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	for kind, serve := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.Parallel = 2
			set := accepted(t, client(t, s, lock(t)))
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if most, err := call(t, set, "busy", ""); err != nil || most != "1" && most != "2" {
						t.Errorf("%s at once, %v", most, err)
					}
				})
			}
			wg.Wait()
			if most, _ := call(t, set, "busy", ""); most != "2" {
				t.Errorf("there were never two at once, but %s", most)
			}
		})
	}
}

func TestHeadersGoToTheServerAndNotWhereItPoints(t *testing.T) {
	t.Parallel()
	var asked, leaked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Store(true)
		leaked.Store(leaked.Load() || r.Header.Get("X-Key") != "")
	}))
	t.Cleanup(elsewhere.Close)
	pointing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "key-to-the-test" {
			t.Error("the server itself is not given its header")
		}
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(pointing.Close)
	c, err := mcptool.NewClient(
		mcptool.Server{Name: "test", URL: pointing.URL, Headers: map[string]string{"X-Key": "{{ secrets.KEY }}"}},
		mcptool.Options{Pins: lock(t), HTTP: new(http.Client), Secrets: func(string) (string, bool) { return "key-to-the-test", true }},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tools(t.Context()); err == nil || !asked.Load() || leaked.Load() {
		t.Errorf("asked: %v, leaked: %v, %v", asked.Load(), leaked.Load(), err)
	}
}

func TestNamesForModelsAreValidAndDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, c := range []struct{ server, name, want string }{
		{"git", "log", "mcp__git__log"},
		{"git", "rug.pull", ""},
		{"git", "rug_pull", "mcp__git__rug_pull"},
		{"git", strings.Repeat("x", 60), ""},
		{"git", strings.Repeat("x", 61), ""},
		{"git", "日本", ""},
		{"git", "日木", ""},
		{"a", "b__c", "mcp__a__b__c"},
	} {
		got := mcptool.ModelName(c.server, c.name)
		if !tool.ValidName(got) || c.want != "" && got != c.want || got != mcptool.ModelName(c.server, c.name) {
			t.Errorf("%s/%s is %s", c.server, c.name, got)
		}
		if seen[got] != "" {
			t.Errorf("%s and %s are both %s", c.name, seen[got], got)
		}
		seen[got] = c.name
	}
}

func TestServersThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]mcptool.Server{
		"a name is":                 {Name: "a_b", URL: "https://example.com"},
		"either a command or a URL": {Name: "a"},
		"not begin with http":       {Name: "a", URL: "ftp://example.com"},
		"holds a user name":         {Name: "a", URL: "https://a:b@example.com"},
		"a command or a URL":        {Name: "a", URL: "https://example.com", Command: []string{"x"}},
	} {
		if _, err := mcptool.NewClient(s, mcptool.Options{Pins: lock(t)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error with %q, got %v", want, err)
		}
	}
	if _, err := mcptool.NewClient(mcptool.Server{Name: "a", Command: []string{"x"}}, mcptool.Options{}); err == nil {
		t.Error("without pins anything is accepted")
	}
	s := stdio(t)
	s.Env["KEY"] = "{{ secrets.OTHER }}"
	if _, err := client(t, s, lock(t)).Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "KEY: there is no secret OTHER") {
		t.Errorf("got %v", err)
	}
}
