package server

import (
	"net/http"
	"time"

	"github.com/weir-run/weir/memory"
)

type listMemoryInput struct {
	User      string `query:"user" doc:"Only memory of this user; of another user only with the scope admin"`
	Namespace string `query:"namespace"`
	Kind      string `query:"kind" enum:"fact,episode,procedure"`
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
}

func (s *Server) registerMemory() {
	register(s, operation{
		id: "listMemory", method: http.MethodGet, path: "/v1/memory", scope: Read, tags: []string{"memory"}, summary: "List long-term memory, newest first",
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
	list, err := c.app.Store.Memories(c, memory.Filter{User: user, Namespace: in.Namespace, Kind: memory.Kind(in.Kind), Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := memoryList{Items: []memoryRow{}}
	for i := range list {
		m := &list[i]
		out.Items = append(out.Items, memoryRow{
			m.ID, m.Namespace, m.User, m.Session, string(m.Kind), m.Key, m.Text, append([]string{}, m.Tags...), m.Number, m.Written.UTC(), m.Source.Run,
		})
	}
	return bodyOf(out), nil
}
