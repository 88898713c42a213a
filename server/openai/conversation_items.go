package openai

import (
	"net/http"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
)

// kept returns the positions of the items that were not deleted.
func (v *conversation) kept() (out []int) {
	for i := range v.Items {
		if !slices.Contains(v.Deleted, i) {
			out = append(out, i)
		}
	}
	return out
}

// seed returns the items with which the session begins.
func (v *conversation) seed() (out []convo.Message) {
	for _, i := range v.kept() {
		out = append(out, v.Items[i])
	}
	return out
}

// items returns what people and models said, oldest first. An item has the same id before and after the session begins.
func (v *conversation) items(c *server.Caller) ([]any, error) {
	out, kept := []any{}, v.kept()
	if v.Session == "" {
		for _, i := range kept {
			out = append(out, itemOf(v.ID, i, &v.Items[i]))
		}
		return out, nil
	}
	row, err := c.App().Store.Session(c.Context(), v.Session)
	if err != nil {
		return nil, err
	}
	rows, err := c.App().Store.SessionMessages(c.Context(), v.Session, 0, row.Length)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		at := len(v.Items) + i - len(kept)
		if i < len(kept) {
			at = kept[i]
		}
		if m := &rows[i].Message; (m.Role == convo.User || m.Role == convo.Assistant) && m.Text != "" {
			out = append(out, itemOf(v.ID, at, m))
		}
	}
	return out, nil
}

// itemNamed returns an item of a conversation.
func (v *conversation) itemNamed(c *server.Caller, id string) (map[string]any, error) {
	items, err := v.items(c)
	if err != nil {
		return nil, err
	}
	for _, x := range items {
		if item, _ := x.(map[string]any); item["id"] == id {
			return item, nil
		}
	}
	return nil, server.NotFound("item", id)
}

// listItems lists the messages that people and models said, newest first unless order is asc.
func listItems(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	v, err := conversationOf(c, r.PathValue("conversation"))
	var items []any
	if err == nil {
		items, err = v.items(c)
	}
	if err != nil {
		handle(w, c, err)
		return
	}
	writePage(w, r, items)
}

func getItem(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	v, err := conversationOf(c, r.PathValue("conversation"))
	var item map[string]any
	if err == nil {
		item, err = v.itemNamed(c, r.PathValue("item"))
	}
	if err != nil {
		handle(w, c, err)
		return
	}
	writeJSON(w, http.StatusOK, item)
}

// deleteItem deletes an item of a conversation whose session has not begun. Messages of a session are never deleted.
func deleteItem(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	id, item := r.PathValue("conversation"), r.PathValue("item")
	defer c.Enter("conversation " + id)()
	v, err := conversationOf(c, id)
	if err == nil {
		_, err = v.itemNamed(c, item)
	}
	if err == nil {
		err = v.deleteItem(c, item)
	}
	answerConversation(w, c, v, err)
}

func (v *conversation) deleteItem(c *server.Caller, id string) error {
	if v.Session != "" {
		p := server.NewProblem(http.StatusConflict, engine.CodeStatusConflict, "the conversation has begun: item "+id+" is part of the record of session "+v.Session+", of which nothing is deleted")
		p.Hint = "edit a message with POST /v1/sessions/ID/messages/N/edit, which forks the session before it, or delete the session"
		return p
	}
	for _, i := range v.kept() {
		if itemOf(v.ID, i, &v.Items[i])["id"] == id {
			v.Deleted, v.Items[i] = append(v.Deleted, i), convo.Message{}
			break
		}
	}
	return v.store(c)
}
