package openai

import (
	"context"
	"encoding/base32"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/store"
)

// conversation is what the server keeps of a conversation. Its session begins with the first
// response, which says with which flow.
type conversation struct {
	ID       string         `json:"id"`
	Token    string         `json:"token"`
	Created  int64          `json:"created"`
	Metadata map[string]any `json:"metadata"`
	// Items are what the client put in before there was a session.
	Items []convo.Message `json:"items,omitempty"`
	// Deleted are the positions of Items that the client has deleted. They keep their places, so that ids of others stay.
	Deleted []int  `json:"deleted,omitempty"`
	Session string `json:"session,omitempty"`
	Flow    string `json:"flow,omitempty"`

	version int64
	user    string
}

func (v *conversation) object() map[string]any {
	metadata := v.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	return map[string]any{"id": v.ID, "object": "conversation", "created_at": v.Created, "metadata": metadata}
}

// store keeps the conversation; store.ErrChanged if another request has changed it.
func (v *conversation) store(c *server.Caller) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	d := store.Document{Kind: kindConversation, ID: v.ID, User: v.user, Version: v.version, Body: body}
	d, err = c.App().Store.PutDocument(context.WithoutCancel(c.Context()), d)
	v.version = d.Version
	return err
}

// conversationOf reads a conversation that the caller may see.
func conversationOf(c *server.Caller, id string) (*conversation, error) {
	d, err := c.App().Store.Document(c.Context(), kindConversation, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	v := &conversation{}
	if err == nil {
		if err := json.Unmarshal(d.Body, v); err != nil {
			return nil, err
		}
	}
	if err != nil || !c.Owns(d.User) && (v.Token == "" || v.Token != c.Token()) {
		return nil, server.NotFound("conversation", id)
	}
	// The session may be that of a person for whom a token of the user acted.
	if v.Session != "" && (v.Token == "" || v.Token != c.Token()) {
		if _, err := c.Session(v.Session); err != nil {
			return nil, server.NotFound("conversation", id)
		}
	}
	v.version, v.user = d.Version, d.User
	return v, nil
}

type conversationBody struct {
	Items    json.RawMessage `json:"items"`
	Metadata map[string]any  `json:"metadata"`
}

func createConversation(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	var b conversationBody
	v := &conversation{Token: c.Token(), Created: time.Now().Unix(), user: c.User()}
	err := decodeOptional(r, &b)
	if err == nil && len(b.Items) > 0 && string(b.Items) != "null" {
		v.Items, err = messagesOf("body.items", b.Items)
		if err == nil {
			_, err = loadFiles(c, "body.items", v.Items)
		}
	}
	if err == nil {
		v.ID, v.Metadata = "conv_"+c.NewID(), b.Metadata
		err = v.store(c)
	}
	answerConversation(w, c, v, err)
}

// decodeOptional reads a body that may be missing.
func decodeOptional(r *http.Request, v any) error {
	if r.ContentLength == 0 {
		return nil
	}
	return decode(r, v)
}

func answerConversation(w http.ResponseWriter, c *server.Caller, v *conversation, err error) {
	if err != nil {
		handle(w, c, err)
		return
	}
	writeJSON(w, http.StatusOK, v.object())
}

func getConversation(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	v, err := conversationOf(c, r.PathValue("conversation"))
	answerConversation(w, c, v, err)
}

func updateConversation(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	var b struct {
		Metadata map[string]any `json:"metadata"`
	}
	v, err := conversationOf(c, r.PathValue("conversation"))
	if err == nil {
		err = decode(r, &b)
	}
	if err == nil {
		v.Metadata = b.Metadata
		err = v.store(c)
	}
	answerConversation(w, c, v, err)
}

// deleteConversation forgets the conversation. Its session stays, as its items do in the protocol.
func deleteConversation(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	v, err := conversationOf(c, r.PathValue("conversation"))
	if err == nil {
		err = c.App().Store.DeleteDocument(context.WithoutCancel(c.Context()), kindConversation, v.ID, 0)
	}
	if err != nil {
		handle(w, c, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": v.ID, "object": "conversation.deleted", "deleted": true})
}

// conversationSession returns the session of a conversation; the first response makes it.
func conversationSession(c *server.Caller, q *request, id string) (*weir.Session, error) {
	defer c.Enter("conversation " + id)()
	v, err := conversationOf(c, id)
	if err != nil {
		return nil, err
	}
	x := &exchange{request: q, c: q.who.caller}
	if v.Session == "" {
		v.Flow = q.flow.Name
		// Another process that starts the same conversation finds the same session.
		v.Session = "v" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(c.Digest("conversation", id, v.Flow)[:15]))
		_, err := x.open(weir.SessionOptions{ID: v.Session, User: x.c.User(), New: true})
		if err != nil && !errors.Is(err, store.ErrExists) {
			return nil, err
		}
		if err := v.store(c); err != nil {
			return nil, err
		}
	}
	if v.Flow != q.flow.Name {
		return nil, server.InvalidRequest("body.conversation", "the conversation is one with the model "+v.Flow)
	}
	in, err := x.open(weir.SessionOptions{ID: v.Session})
	if err != nil {
		return nil, err
	}
	if in.User != x.c.User() { // that of another person with the same token
		return nil, server.NotFound("conversation", id)
	}
	row, err := in.Info(c.Context())
	if err == nil && row.Length == 0 && row.Rounds == 0 && row.Queued == 0 {
		q.seed = append(v.seed(), q.history...)
	} else if err == nil && len(q.history) > 0 {
		err = server.InvalidRequest("body.input", "with a conversation the input is one message: the server has the others")
	}
	return in, err
}

// addItems adds items to a conversation that has had no response.
func addItems(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	var b conversationBody
	v, err := conversationOf(c, r.PathValue("conversation"))
	if err == nil {
		err = decode(r, &b)
	}
	var list []convo.Message
	if err == nil {
		list, err = messagesOf("body.items", b.Items)
	}
	if err == nil {
		_, err = loadFiles(c, "body.items", list)
	}
	if err == nil && v.Session != "" {
		err = server.InvalidRequest("body.items", "the conversation has begun; send messages with responses")
	}
	if err == nil {
		v.Items = append(v.Items, list...)
		err = v.store(c)
	}
	if err != nil {
		handle(w, c, err)
		return
	}
	writeItems(w, itemsOf(v.ID, len(v.Items)-len(list), list), false)
}

func writeItems(w http.ResponseWriter, items []any, more bool) {
	o := map[string]any{"object": "list", "data": items, "has_more": more, "first_id": nil, "last_id": nil}
	if len(items) > 0 {
		first, _ := items[0].(map[string]any)
		last, _ := items[len(items)-1].(map[string]any)
		o["first_id"], o["last_id"] = first["id"], last["id"]
	}
	writeJSON(w, http.StatusOK, o)
}

// itemsOf returns messages as items; from is the position of the first one.
func itemsOf(conversation string, from int, list []convo.Message) []any {
	out := []any{}
	for i := range list {
		out = append(out, itemOf(conversation, from+i, &list[i]))
	}
	return out
}

// itemOf returns a message as an item; its id has its position.
func itemOf(conversation string, at int, m *convo.Message) map[string]any {
	content := map[string]any{"type": "input_text", "text": m.Text}
	if m.Role == convo.Assistant {
		content = textPart(m.Text)
	}
	return map[string]any{
		"id": "msg_" + strings.TrimPrefix(conversation, "conv_") + "_" + itoa(at), "type": "message", "role": string(m.Role), "status": "completed", "content": []any{content},
	}
}

// writePage writes the part of a list of items that the request asks for: newest first unless
// order is asc, at most limit, after the item with the id after.
func writePage(w http.ResponseWriter, r *http.Request, items []any) {
	query := r.URL.Query()
	if query.Get("order") != "asc" {
		slices.Reverse(items)
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(items, func(x any) bool { o, _ := x.(map[string]any); return o["id"] == after })
		items = items[i+1:]
	}
	limit := 20
	if n, err := strconv.Atoi(query.Get("limit")); err == nil && n > 0 && n <= 100 {
		limit = n
	}
	more := len(items) > limit
	writeItems(w, items[:min(limit, len(items))], more)
}
