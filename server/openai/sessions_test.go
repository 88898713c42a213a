package openai_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// message is one message of a chat.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// chat is a client that keeps a history of its own.
type chat struct {
	token, model, user string
	header             map[string]string
	messages           []message
}

// reply is an answer to a chat.
type reply struct {
	status        int
	session, text string
}

// say adds a message of the user, sends the history and adds the answer.
func (c *chat) say(t *testing.T, p *servertest.Process, text string) reply {
	t.Helper()
	c.messages = append(c.messages, message{"user", text})
	r := c.send(t, p)
	c.messages = append(c.messages, message{"assistant", r.text})
	return r
}

// send sends the history as it is.
func (c *chat) send(t *testing.T, p *servertest.Process) reply {
	t.Helper()
	model := c.model
	if model == "" {
		model = "talk"
	}
	content := map[string]any{"model": model, "messages": c.messages}
	if c.user != "" {
		content["user"] = c.user
	}
	header := map[string]string{}
	maps.Copy(header, c.header)
	status, h, text := post(t, p.URL+"/v1/chat/completions", c.token, content, header)
	var body struct {
		Choices []struct{ Message message }
	}
	_ = json.Unmarshal([]byte(text), &body) // an error has no choices
	r := reply{status: status, session: h.Get("X-Weir-Session"), text: text}
	if len(body.Choices) > 0 {
		r.text = body.Choices[0].Message.Content
	}
	return r
}

func post(t *testing.T, url, token string, content any, header map[string]string) (int, http.Header, string) {
	t.Helper()
	a := request(t, url, token, content, header)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, a.Header, string(text)
}

// request sends JSON; the caller closes the body of the answer.
func request(t *testing.T, url, token string, content any, header map[string]string) *http.Response {
	t.Helper()
	body, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	for k, v := range header {
		q.Header.Set(k, v)
	}
	a, err := new(http.Client).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestASessionIsJoinedOnlyWithItsWholeHistory has two clients say the same, and compares the
// sessions of their second messages.
func TestASessionIsJoinedOnlyWithItsWholeHistory(t *testing.T) {
	t.Parallel()
	p := servertest.Open(t, servertest.Options{Flows: twoTalks(), Faces: faces()})
	all := []server.Scope{server.Read, server.Start, server.Answer}
	ada, bob := p.Token("ada", all...), p.Token("bob", all...)
	ui := p.Token("ui", append(all, server.ActAs)...)
	for name, c := range map[string]struct {
		a, b chat
		same bool
	}{
		"the same user":          {chat{token: ada}, chat{token: ada}, true},
		"two users":              {chat{token: ada}, chat{token: bob}, false},
		"two tokens of one user": {chat{token: ada}, chat{token: p.Token("ada", all...)}, false},
		"two flows":              {chat{token: ada}, chat{token: ada, model: "talk2"}, false},
		"one end user of a token that acts for many":  {chat{token: ui, user: "eve"}, chat{token: ui, user: "eve"}, true},
		"two end users of a token that acts for many": {chat{token: ui, user: "eve"}, chat{token: ui, user: "fay"}, false},
		"nobody named by a token that acts for many":  {chat{token: ui}, chat{token: ui}, false},
		"no token":                                       {chat{}, chat{}, false},
		"no token and one user":                          {chat{user: "eve"}, chat{user: "eve"}, true},
		"no token and two users":                         {chat{user: "eve"}, chat{user: "fay"}, false},
		"two names that the token is not believed":       {chat{token: ada, user: "x"}, chat{token: ada, user: "y"}, false},
		"two conversations of a user interface":          {chat{token: ada, header: chatID("1")}, chat{token: ada, header: chatID("2")}, false},
		"a user of a header, and one of the body":        {chat{token: ui, header: map[string]string{"X-OpenWebUI-User-Id": "eve"}}, chat{token: ui, user: "eve"}, true},
		"a user who is named, and the same with a token": {chat{token: ui, user: "ada"}, chat{token: ada}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := c.a, c.b
			first := a.say(t, p, name)
			b.messages = append(b.messages, a.messages...)
			second := a
			if c.same {
				second = b // continues what a began
			}
			got := second.say(t, p, "next")
			if first.status != http.StatusOK || got.status != http.StatusOK || got.text != "3: next" {
				t.Fatalf("%+v, %+v", first, got)
			}
			joined := first.session == got.session
			if !c.same {
				other := b.say(t, p, "next")
				if other.text != "3: next" {
					t.Errorf("the history is not that of the request: %+v", other)
				}
				joined = other.session == first.session || other.session == got.session
			}
			if joined != c.same {
				t.Errorf("one session: %v", joined)
			}
		})
	}
}

func chatID(id string) map[string]string { return map[string]string{"X-OpenWebUI-Chat-Id": id} }

func twoTalks() map[string]string {
	f := flows()
	f["talk2.yaml"] = strings.Replace(f["talk.yaml"], "name: talk", "name: talk2", 1)
	return f
}

func TestAnEditedHistoryForksOrStartsASession(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{})
	ada := p.Token("ada", server.Read, server.Start)
	parent := func(session string) (id string, at int) {
		row, err := p.App.Store.Session(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		return row.Parent, row.ParentLength
	}
	c := chat{token: ada}
	first := c.say(t, p, "one")
	c.say(t, p, "two")
	again := chat{token: ada, messages: c.messages[:2:2]} // the second message is written again
	forked := again.say(t, p, "other")
	if id, at := parent(forked.session); id != first.session || at != 2 || forked.text != "3: other" {
		t.Errorf("%+v is a fork of %q at %d", forked, id, at)
	}
	if next := c.say(t, p, "three"); next.session != first.session || next.text != "5: three" {
		t.Errorf("the first conversation continues: %+v", next)
	}
	if next := again.say(t, p, "more"); next.session != forked.session || next.text != "5: more" {
		t.Errorf("the fork continues: %+v", next)
	}
	edited := chat{token: ada, messages: []message{{"user", "one"}, {"assistant", "No."}}}
	fresh := edited.say(t, p, "why")
	if id, _ := parent(fresh.session); id != "" || fresh.session == first.session || fresh.text != "3: why" {
		t.Errorf("an answer that was never given: %+v, fork of %q", fresh, id)
	}
	system := chat{token: ada, messages: append([]message{{"system", "It is Monday."}}, c.messages...)}
	if next := system.say(t, p, "four"); next.session != first.session {
		t.Errorf("another system text: %+v", next)
	}
	elsewhere, err := p.App.Session(t.Context(), nil, sessionID(forked.session))
	if err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, elsewhere, "by the API")
	if next := again.say(t, p, "unaware"); next.session == forked.session || next.text != "7: unaware" {
		t.Errorf("a session that continued elsewhere: %+v", next)
	}
	task := chat{token: ada, messages: []message{{"user", "### Task:\nGenerate a title for: one"}}}
	if r := task.send(t, p); r.session == first.session || r.text != "1: ### Task:\nGenerate a title for: one" {
		t.Errorf("a title: %+v", r)
	}
}

func TestAnExplicitSessionIsOneOfTheCallers(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{})
	ada, bob := p.Token("ada", server.Read, server.Start), p.Token("bob", server.Read, server.Start)
	c := chat{token: ada}
	first := c.say(t, p, "one")
	header := map[string]string{"X-Weir-Session": first.session}
	one := []message{{"user", "two"}}
	if r := (&chat{token: ada, header: header, messages: one}).send(t, p); r.session != first.session || r.text != "3: two" {
		t.Errorf("by id: %+v", r)
	}
	foreign := (&chat{token: bob, header: header, messages: one}).send(t, p)
	header["X-Weir-Session"] = "unknown"
	unknown := (&chat{token: bob, header: header, messages: one}).send(t, p)
	if foreign.status != http.StatusNotFound || strings.ReplaceAll(foreign.text, first.session, "unknown") != unknown.text {
		t.Errorf("another's: %+v; nobody's: %+v", foreign, unknown)
	}
	thread := map[string]string{"X-Weir-Thread": "work"}
	a := (&chat{token: ada, header: thread, messages: one}).send(t, p)
	b := (&chat{token: ada, header: thread, messages: one}).send(t, p)
	other := (&chat{token: bob, header: thread, messages: one}).send(t, p)
	if a.session != b.session || b.text != "3: two" || other.session == a.session {
		t.Errorf("by thread: %+v, %+v, of another: %+v", a, b, other)
	}
	ui := p.Token("ui", server.Start, server.ActAs)
	if r := (&chat{token: ui, header: thread, messages: one}).send(t, p); r.status != http.StatusBadRequest {
		t.Errorf("a thread of nobody: %+v", r)
	}
}

func TestARequestWithAKeyIsSentOnce(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{})
	ada := p.Token("ada", server.Read, server.Start)
	session := (&chat{token: ada, messages: []message{{"user", "one"}}}).send(t, p).session
	keyed := chat{token: ada, header: map[string]string{"X-Weir-Session": session, "Idempotency-Key": "1"}, messages: []message{{"user", "two"}}}
	first, again := keyed.send(t, p), keyed.send(t, p)
	if first.text != "3: two" || again.text != "3: two" {
		t.Errorf("%+v, then %+v", first, again)
	}
	keyed.messages[0].Content = "three"
	if other := keyed.send(t, p); other.status != http.StatusBadRequest || !strings.Contains(other.text, "request_reused") {
		t.Errorf("another content: %+v", other)
	}
}

func TestARepeatedRequestAttachesToItsRound(t *testing.T) {
	t.Parallel()
	started, finish := make(chan struct{}, 4), make(chan struct{})
	p := open(t, servertest.Options{Answer: func(r *llmtest.Request) llmtest.Turn {
		started <- struct{}{}
		<-finish
		return servertest.Repeat(r)
	}})
	ada := p.Token("ada", server.Read, server.Start)
	var all sync.WaitGroup
	var first reply
	all.Go(func() {
		c := chat{token: ada}
		first = c.say(t, p, "once")
	})
	<-started
	// The first chunk of a stream is sent when its round is known.
	content := map[string]any{"model": "talk", "stream": true, "messages": []message{{"user", "once"}}}
	a := request(t, p.URL+"/v1/chat/completions", ada, content, nil)
	defer a.Body.Close()
	lines := bufio.NewReader(a.Body)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Fatal(line, err)
	}
	close(finish)
	all.Wait()
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "[DONE]") {
		t.Fatal(string(rest), err)
	}
	row, err := p.App.Store.Session(t.Context(), first.session)
	if err != nil || row.Rounds != 1 || a.Header.Get("X-Weir-Session") != first.session || first.text != "1: once" {
		t.Errorf("%d rounds (%v); %+v and session %s", row.Rounds, err, first, a.Header.Get("X-Weir-Session"))
	}
	if c := (chat{token: ada}); c.say(t, p, "once").session == first.session {
		t.Error("the same words later are part of the ended round")
	}
}

// TestResponsesAndConversationsBelongToTheirUser tries every route with ids of another user,
// and with those of another person for whom the same token acts.
func TestResponsesAndConversationsBelongToTheirUser(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{})
	scopes := []server.Scope{server.Read, server.Start}
	ada, bob := p.Token("ada", scopes...), p.Token("bob", scopes...)
	id := func(path, token string, content map[string]any) string {
		t.Helper()
		_, _, text := post(t, p.URL+path, token, content, nil)
		var o struct{ ID string }
		if err := json.Unmarshal([]byte(text), &o); err != nil || o.ID == "" {
			t.Fatal(text, err)
		}
		return o.ID
	}
	ask := func(more map[string]any) map[string]any {
		content := map[string]any{"model": "talk", "input": "x"}
		maps.Copy(content, more)
		return content
	}
	response := id("/v1/responses", ada, ask(nil))
	conversation := id("/v1/conversations", ada, map[string]any{"items": []any{map[string]any{"role": "user", "content": "x"}}})
	item := "/v1/conversations/" + conversation + "/items/msg_" + strings.TrimPrefix(conversation, "conv_") + "_0"
	try := func(method, path string, content map[string]any) (int, string) {
		t.Helper()
		body, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		q, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+bob)
		a, err := new(http.Client).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(text)
	}
	for _, c := range []struct {
		method, path string
		content      map[string]any
	}{
		{"GET", "/v1/responses/" + response, nil},
		{"DELETE", "/v1/responses/" + response, nil},
		{"POST", "/v1/responses/" + response + "/cancel", nil},
		{"POST", "/v1/responses", ask(map[string]any{"previous_response_id": response})},
		{"POST", "/v1/responses", ask(map[string]any{"conversation": conversation})},
		{"GET", "/v1/conversations/" + conversation, nil},
		{"POST", "/v1/conversations/" + conversation, map[string]any{"metadata": map[string]any{}}},
		{"DELETE", "/v1/conversations/" + conversation, nil},
		{"GET", "/v1/conversations/" + conversation + "/items", nil},
		{"POST", "/v1/conversations/" + conversation + "/items", map[string]any{"items": []any{}}},
		{"GET", item, nil},
		{"DELETE", item, nil},
	} {
		if status, text := try(c.method, c.path, c.content); status != http.StatusNotFound || !strings.Contains(text, `"not_found"`) {
			t.Errorf("%s %s %v: %d %s", c.method, c.path, c.content, status, text)
		}
	}
	ui := p.Token("ui", append(scopes, server.ActAs)...)
	eves := id("/v1/responses", ui, ask(map[string]any{"user": "eve"}))
	status, _, text := post(t, p.URL+"/v1/responses", ui, ask(map[string]any{"user": "fay", "previous_response_id": eves}), nil)
	if status != http.StatusNotFound {
		t.Errorf("another person with the same token continues: %d %s", status, text)
	}
	id("/v1/responses", ui, ask(map[string]any{"user": "eve", "previous_response_id": eves}))
}

func TestAMemberThatOccursTwiceIsRefused(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{})
	token := p.Token("ada", server.Read, server.Start)
	conversation := createdConversation(t, p, token)
	for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/conversations", "/v1/conversations/" + conversation, "/v1/conversations/" + conversation + "/items"} {
		status, _, text := post(t, p.URL+path, token, json.RawMessage(`{"model":"talk","metadata":{"a":"1","\u0061":"2"}}`), nil)
		if status != http.StatusBadRequest || !strings.Contains(text, "occurs twice") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func createdConversation(t *testing.T, p *servertest.Process, token string) string {
	t.Helper()
	_, _, text := post(t, p.URL+"/v1/conversations", token, struct{}{}, nil)
	var c struct{ ID string }
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.ID == "" {
		t.Fatalf("%v in %s", err, text)
	}
	return c.ID
}
