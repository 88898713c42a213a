package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/memory"
)

type listMemoryInput struct {
	User      string `query:"user" doc:"Only memory of this user; of another user only with the scope admin"`
	Namespace string `query:"namespace"`
	Kind      string `query:"kind" enum:"fact,episode,procedure"`
	Text      string `query:"text" maxLength:"200" doc:"Only items with this text in their key, text, tags, kind, namespace, user or session; upper and lower case are the same"`
	Cursor    string `query:"cursor" maxLength:"500" doc:"The member next of the page before"`
	Limit     int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

// memoryRow is an item of long-term memory.
type memoryRow struct {
	ID        string    `json:"id"`
	Namespace string    `json:"namespace"`
	User      string    `json:"user"`
	Session   string    `json:"session" doc:"The session that it belongs to if there is no user"`
	Kind      string    `json:"kind"`
	Key       string    `json:"key"`
	Text      string    `json:"text"`
	Tags      []string  `json:"tags"`
	Version   int       `json:"version"`
	Written   time.Time `json:"written"`
	Run       string    `json:"run" doc:"The run that wrote it"`
}

type forgetMemoryInput struct {
	Item string `path:"item" minLength:"1" maxLength:"400" doc:"The id of the item"`
}

type memoryList struct {
	Items []memoryRow `json:"items"`
	Next  string      `json:"next" doc:"The cursor of the next page; empty on the last one. A page of a rare text may have fewer items than its limit, or none, and a cursor."`
}

func (s *Server) registerMemory() {
	register(s, operation{
		id: "listMemory", method: http.MethodGet, path: "/v1/memory", scope: Read, tags: []string{"memory"}, summary: "List long-term memory, newest first",
		description: "An item that is written while its list is read may come again: it has moved to the first page.",
	}, listMemory)
	register(s, operation{
		id: "forgetMemory", method: http.MethodDelete, path: "/v1/memory/{item}", scope: Start, status: http.StatusNoContent, tags: []string{"memory"},
		summary: "Forget an item of long-term memory with all its versions",
	}, forgetMemory)
}

func forgetMemory(c *call, in *forgetMemoryInput) (*struct{}, error) {
	gone, err := c.app.Store.ForgetMemories(c, memory.Filter{User: c.reachableUser(), ID: in.Item})
	if err == nil && gone.Memories == 0 {
		return nil, notFound("memory item", in.Item)
	}
	return nil, err
}

func listMemory(c *call, in *listMemoryInput) (*body[memoryList], error) {
	user, err := c.filterUser(in.User)
	if err != nil {
		return nil, err
	}
	f := memory.Filter{User: user, Namespace: in.Namespace, Kind: memory.Kind(in.Kind)}
	if in.Cursor != "" {
		var ok bool
		if f.Behind, ok = parseMemoryCursor(in.Cursor); !ok {
			return nil, invalidRequest("query.cursor", "the cursor is not one of a page of memory; start with the first page")
		}
	}
	out, err := c.scanMemory(f, strings.ToLower(in.Text), in.Limit)
	if err != nil {
		return nil, err
	}
	return bodyOf(*out), nil
}

// scanMemory reads items until a page is full, all were read, or listTime is over. The text is in lower case.
func (c *call) scanMemory(f memory.Filter, text string, limit int) (*memoryList, error) {
	f.Limit = limit + 1
	if text != "" {
		f.Limit = listPage
	}
	out, end := &memoryList{Items: []memoryRow{}}, time.Now().Add(listTime)
	for {
		page, err := c.app.Store.Memories(c, f)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if len(out.Items) == limit {
				out.Next = memoryCursor(f.Behind)
				return out, nil
			}
			f.Behind = memory.PositionOf(&page[i])
			if text == "" || memoryHas(&page[i], text) {
				out.Items = append(out.Items, memoryRowOf(&page[i]))
			}
		}
		if len(page) < f.Limit {
			return out, nil
		}
		if time.Now().After(end) {
			out.Next = memoryCursor(f.Behind)
			return out, nil
		}
	}
}

func memoryRowOf(m *memory.Item) memoryRow {
	return memoryRow{
		m.ID, m.Namespace, m.User, m.Session, string(m.Kind), m.Key, m.Text, append([]string{}, m.Tags...), m.Number, m.Written.UTC(), m.Source.Run,
	}
}

// memoryHas reports whether an item has a text, which is in lower case.
func memoryHas(m *memory.Item, text string) bool {
	parts := append([]string{m.Key, m.Text, m.User, m.Session, string(m.Kind), m.Namespace}, m.Tags...)
	return slices.ContainsFunc(parts, func(t string) bool { return strings.Contains(strings.ToLower(t), text) })
}

// memoryCursor returns the cursor of a position: Unix milliseconds and the id.
func memoryCursor(p memory.Position) string {
	return strconv.FormatInt(p.Written.UnixMilli(), 10) + "." + p.ID
}

func parseMemoryCursor(cursor string) (memory.Position, bool) {
	at, id, found := strings.Cut(cursor, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !found || err != nil || id == "" {
		return memory.Position{}, false
	}
	return memory.Position{Written: time.UnixMilli(ms), ID: id}, true
}
