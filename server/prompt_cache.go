package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/runner"
)

type promptCacheList struct {
	Calls []promptCache `json:"calls"`
}

// promptCache says how much of a model call a vendor's prompt cache could have had from the
// call before.
type promptCache struct {
	Call  string    `json:"call" doc:"The key of the effect"`
	Usage app.Usage `json:"usage" doc:"cached counts the input tokens that the vendor reported as read from its cache"`
	// Before is the call before in the journal with the same model; empty if there is none.
	Before string `json:"before" doc:"The key of the call before with the same provider and model; empty if there is none"`
	Equal  int    `json:"equal" doc:"How many messages at the beginning are the same in both, if tools and system are"`
	Of     int    `json:"of" doc:"How many messages the call before had"`
	Place  string `json:"place" doc:"Where the two first differ: tools, system, or messages[3]; empty if the call before is the beginning of this one"`
	Byte   int    `json:"byte" doc:"The first byte that differs, within the JSON of that place"`
	Was    string `json:"was" doc:"The call before from that byte on, shortened"`
	Is     string `json:"is" doc:"This call from that byte on, shortened"`
	// BeforeRun is another run only for the first call of a round.
	BeforeRun string `json:"beforeRun" doc:"The run of the call before: this one, or an earlier round of its session; empty if there is none"`
	Cause     string `json:"cause" enum:",tools,system,message,view" doc:"What differs: tools, system instructions, a message with another content, or the view, which shows other messages; empty if nothing does"`
	Node      string `json:"node" doc:"The path of the node that added the message that differs; for another cause, that of this call; empty if nothing differs or it is not known"`
	Lost      int    `json:"lost" doc:"About how many tokens of the call before are behind the difference, so that a vendor cannot read them from its cache; by their share of the bytes"`
	Cost      int64  `json:"cost" doc:"What these tokens cost more than from the cache, in millionths of a US dollar; 0 if the prices are not known"`
}

const (
	// maxCallsBack bounds how many earlier calls are read to find the one before.
	maxCallsBack = 20
	// maxDifference bounds what is shown of a difference, in bytes.
	maxDifference = 200
	// maxRoundsBack bounds how many earlier rounds are read to find the call before.
	maxRoundsBack = 3
)

func (s *Server) registerPromptCache() {
	register(s, operation{
		id: "getPromptCache", method: http.MethodGet, path: "/v1/runs/{run}/cache", scope: Read, tags: []string{"history"},
		summary: "Compare each model call of a node with the one before, as a vendor's prompt cache does",
		description: "Vendors cache the beginning of a request: tools, system, messages. The call before is the last one in the journal of the run, or of one of the " +
			"three rounds before it in its session, with the same provider and model. Its request must be reproducible.",
	}, getPromptCache)
}

func getPromptCache(c *call, in *callsInput) (*body[promptCacheList], error) {
	v, err := c.inspect(in.Run, 0)
	if err != nil {
		return nil, err
	}
	n := history.NewTimeline(v).Nodes[in.Node]
	if n == nil {
		return nil, notFound("node", in.Node)
	}
	f := cacheForensics{call: c, view: v}
	r := f.reader(in.Run)
	out := promptCacheList{Calls: []promptCache{}}
	calls, err := r.callsOf(in.Node)
	if err != nil {
		return nil, err
	}
	all := modelEffects(v.Commits)
	for i := range calls {
		at := slices.IndexFunc(all, func(e *engine.EffectCompleted) bool { return e.Key == calls[i].Key })
		if at < 0 || calls[i].Request == nil {
			continue
		}
		x := promptCache{Call: calls[i].Key, Usage: app.UsageOf(*all[at].Usage)}
		if err := f.explain(&x, calls[i].Request, all[max(0, at-maxCallsBack):at]); err != nil {
			return nil, err
		}
		out.Calls = append(out.Calls, x)
	}
	return bodyOf(out), nil
}

// modelEffects returns the completed model calls of a journal, in order.
func modelEffects(commits []engine.Commit) (out []*engine.EffectCompleted) {
	for _, commit := range commits {
		for _, e := range commit.Events {
			if x, ok := e.(*engine.EffectCompleted); ok && x.Usage != nil && x.Usage.Calls > 0 {
				out = append(out, x)
			}
		}
	}
	return out
}

// requestReader reproduces the requests of a run, those of each node once.
type requestReader struct {
	c    *call
	run  string
	read map[string][]runner.ModelCall
}

func (r *requestReader) callsOf(node string) ([]runner.ModelCall, error) {
	if list, ok := r.read[node]; ok {
		return list, nil
	}
	list, err := r.c.app.InspectPrompts(r.c, r.run, node)
	if err == nil {
		r.read[node] = list
	}
	return list, err
}

// sentRequest is what of a request decides about a prompt cache.
type sentRequest struct {
	Provider string            `json:"provider"`
	Model    string            `json:"model"`
	Tools    json.RawMessage   `json:"tools"`
	System   json.RawMessage   `json:"system"`
	Messages []json.RawMessage `json:"messages"`
}

// compare finds the newest of the earlier calls that has the same model and a request, and
// sets where the two differ. It returns that request and its input tokens, nil if there is none.
func (r *requestReader) compare(x *promptCache, is *sentRequest, earlier []*engine.EffectCompleted) (was *sentRequest, input int, err error) {
	for _, e := range slices.Backward(earlier) {
		node, _ := engine.SplitEffectKey(e.Key)
		calls, err := r.callsOf(node)
		if err != nil {
			return nil, 0, err
		}
		i := slices.IndexFunc(calls, func(m runner.ModelCall) bool { return m.Key == e.Key && m.Request != nil })
		if i < 0 {
			continue // of an earlier attempt
		}
		was := &sentRequest{}
		if err := json.Unmarshal(calls[i].Request, was); err != nil {
			return nil, 0, fmt.Errorf("request of %s: %w", e.Key, err)
		}
		if was.Provider == is.Provider && was.Model == is.Model {
			x.Before, x.BeforeRun = e.Key, r.run
			x.differ(was, is)
			return was, e.Usage.Input, nil
		}
	}
	return nil, 0, nil
}

// differ sets the first place where two requests differ, in the order in which vendors
// cache them.
func (x *promptCache) differ(was, is *sentRequest) {
	x.Of = len(was.Messages)
	if x.place("tools", was.Tools, is.Tools) || x.place("system", was.System, is.System) {
		return
	}
	for i, m := range was.Messages {
		var other json.RawMessage
		if i < len(is.Messages) {
			other = is.Messages[i]
		}
		if x.place(fmt.Sprintf("messages[%d]", i), m, other) {
			return
		}
		x.Equal++
	}
}

// place sets a place where two values differ, and reports whether they do.
func (x *promptCache) place(name string, was, is json.RawMessage) bool {
	if bytes.Equal(was, is) {
		return false
	}
	n := 0
	for n < len(was) && n < len(is) && was[n] == is[n] {
		n++
	}
	x.Place, x.Byte = name, n
	x.Was, x.Is = excerpt.Bytes(string(was[n:]), maxDifference), excerpt.Bytes(string(is[n:]), maxDifference)
	return true
}
