package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// filterKind are documents by a digest of the user and the name.
const filterKind = store.FilterKind

const (
	// maxFilters bounds the saved filters of a user, and maxFilterSize one of them in bytes.
	maxFilters    = 200
	maxFilterSize = 8 << 10
)

// savedFilter is a selection that a user has named.
type savedFilter struct {
	Name    string          `json:"name"`
	Of      string          `json:"of" doc:"What it selects: runs, sessions, or another list of the client"`
	Query   json.RawMessage `json:"query" doc:"An object that the client gave; the server does not read it"`
	Changed time.Time       `json:"changed"`
}

// FilterPath names a saved filter.
type FilterPath struct {
	Filter string `path:"filter" minLength:"1" maxLength:"200" doc:"The name of the filter"`
}

type putFilterInput struct {
	FilterPath
	Body struct {
		Of    string          `json:"of" minLength:"1" maxLength:"100"`
		Query json.RawMessage `json:"query" doc:"An object, at most 8 KiB"`
	}
}

type filterList struct {
	Filters []savedFilter `json:"filters"`
}

func (s *Server) registerFilters() {
	op := func(id, method, path, summary string) operation {
		return operation{id: id, method: method, path: "/v1/filters" + path, scope: Read, summary: summary, tags: []string{"runs"}}
	}
	register(s, op("listFilters", http.MethodGet, "", "List your saved filters"), listFilters)
	register(s, op("putFilter", http.MethodPut, "/{filter}", "Save a filter under a name, for you alone"), putFilter)
	register(s, op("deleteFilter", http.MethodDelete, "/{filter}", "Delete a saved filter"), deleteFilter)
}

// ownPrefix begins the ids of documents of the caller that others cannot name.
func (c *call) ownPrefix(kind string) string {
	return hex.EncodeToString(c.digest(kind, c.who.user)[:12]) + "/"
}

func listFilters(c *call, _ *struct{}) (*body[filterList], error) {
	prefix := c.ownPrefix(filterKind)
	docs, err := c.app.Store.Documents(c, store.DocumentFilter{Kind: filterKind, Prefix: prefix, Limit: maxFilters})
	out := filterList{Filters: []savedFilter{}}
	for i := range docs {
		f := savedFilter{}
		err = errors.Join(err, json.Unmarshal(docs[i].Body, &f))
		f.Name, f.Changed = strings.TrimPrefix(docs[i].ID, prefix), docs[i].Updated.UTC()
		out.Filters = append(out.Filters, f)
	}
	return bodyOf(out), err
}

func putFilter(c *call, in *putFilterInput) (*body[savedFilter], error) {
	if err := runner.CheckName("name", in.Filter); err != nil {
		return nil, err
	}
	if len(in.Body.Query) > maxFilterSize {
		return nil, invalidRequest("body.query", "the filter has more than 8 KiB")
	}
	if _, err := objectOf("body.query", in.Body.Query); err != nil {
		return nil, err
	}
	f := savedFilter{Name: in.Filter, Of: in.Body.Of, Query: in.Body.Query}
	prefix := c.ownPrefix(filterKind)
	d, err := c.keepOwn(store.Document{Kind: filterKind, ID: prefix + in.Filter, User: c.who.user}, prefix, maxFilters, f)
	f.Changed = d.Updated.UTC()
	return bodyOf(f), err
}

// keepOwn makes or replaces a document of the caller, who may have at most so many with the
// prefix.
func (c *call) keepOwn(d store.Document, prefix string, most int, content any) (store.Document, error) {
	var err error
	if d.Body, err = json.Marshal(content); err != nil {
		return d, err
	}
	for {
		have, err := c.app.Store.Document(c, d.Kind, d.ID)
		if d.Version = have.Version; errors.Is(err, store.ErrNotFound) {
			list, err := c.app.Store.Documents(c, store.DocumentFilter{Kind: d.Kind, Prefix: prefix, Limit: most})
			if err != nil {
				return d, err
			}
			if len(list) == most {
				return d, newProblem(http.StatusConflict, engine.CodeTooMany, "there are "+itoa(int64(most))+" already; delete one first")
			}
		} else if err != nil {
			return d, err
		}
		kept, err := c.app.Store.PutDocument(context.WithoutCancel(c), d)
		if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
			continue // another request of the user was faster
		}
		return kept, err
	}
}

func deleteFilter(c *call, in *FilterPath) (*struct{}, error) {
	err := c.app.Store.DeleteDocument(context.WithoutCancel(c), filterKind, c.ownPrefix(filterKind)+in.Filter, 0)
	if errors.Is(err, store.ErrNotFound) {
		return nil, notFound("filter", in.Filter)
	}
	return nil, err
}
