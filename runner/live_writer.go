package runner

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
)

const (
	// liveTextInterval is the least time between two parts of the live text of a run.
	liveTextInterval = 250 * time.Millisecond
	// minWholePart is the number of bytes of parts in the store from which a whole part may replace them.
	minWholePart = 64 << 10
	// removeLiveText limits the time for removing the parts when the process closes.
	removeLiveText = 2 * time.Second
)

// livePart is the data of a store.LiveTextPart. It is valid after the event with number Event, in the commit Seq.
type livePart struct {
	// Number counts the parts of the writer from 1, so that a reader notices a missing one.
	Number  int64        `json:"n"`
	Event   int64        `json:"e"`
	Seq     int64        `json:"s"`
	Effects []effectPart `json:"o,omitempty"`
}

// effectPart is what a part says of an effect: in a whole part its output so far, otherwise what was added to it.
type effectPart struct {
	Path      string `json:"p"`
	Effect    string `json:"k,omitempty"`
	Attempt   int    `json:"a,omitempty"`
	Lane      string `json:"l,omitempty"`
	Completed bool   `json:"c,omitempty"`
	Interim   bool   `json:"i,omitempty"`
	// Restarted means that earlier output of the effect is void.
	Restarted bool         `json:"r,omitempty"`
	Text      string       `json:"t,omitempty"`
	Reasoning string       `json:"h,omitempty"`
	Stdout    string       `json:"out,omitempty"`
	Stderr    string       `json:"err,omitempty"`
	Calls     []convo.Call `json:"calls,omitempty"`
	// Wait is the piece by which the service announced that it waits before it makes the call.
	Wait *llm.Chunk `json:"w,omitempty"`
}

func (p *effectPart) size() int {
	return len(p.Text) + len(p.Reasoning) + len(p.Stdout) + len(p.Stderr)
}

// writtenOutput is what the parts of a run have of an effect.
type writtenOutput struct {
	of                              *effectOutput
	text, reasoning, stdout, stderr int
	calls                           int
	interim                         bool
}

// liveTextLog is what a process has written of the live text of an execution. It belongs to the goroutine of the
// liveWriter, except request.
type liveTextLog struct {
	request string // name of the newest request; guarded by the liveWriter's lock
	served  string // name of the request that the last whole part has answered
	writer  string
	number  int64
	written map[liveKey]writtenOutput
	bytes   int  // of the parts since the last whole one
	stored  bool // the store has parts
	broken  bool // a part is missing
}

// liveWriter writes the live text of executions of this process while other processes read it.
type liveWriter struct {
	l       *Local
	store   store.LiveTextStore // nil if the store has none
	mu      sync.Mutex          // guards the following fields
	logs    map[*Execution]*liveTextLog
	running bool
}

// setReaders sets the executions whose live text is read, with the names of the requests.
func (w *liveWriter) setReaders(requests map[*Execution]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(requests) == 0 && len(w.logs) == 0 || w.l.ctx.Err() != nil {
		return
	}
	for x, log := range w.logs { // order: each entry is considered alone.
		log.request = requests[x]
	}
	for x, name := range requests { // order: each entry is considered alone.
		if w.logs[x] == nil {
			if w.logs == nil {
				w.logs = make(map[*Execution]*liveTextLog)
			}
			w.logs[x] = &liveTextLog{request: name, writer: rand.Text()}
		}
	}
	if !w.running {
		w.running = true
		w.l.loops.Go(w.run)
	}
}

// run writes until nobody reads.
func (w *liveWriter) run() {
	t := time.NewTicker(liveTextInterval)
	defer t.Stop()
	for w.write() {
		select {
		case <-t.C:
		case <-w.l.ctx.Done():
			w.removeAll()
			return
		}
	}
}

// write writes what is new, and reports whether anybody reads still.
func (w *liveWriter) write() bool {
	w.mu.Lock()
	logs, requests := maps.Clone(w.logs), make(map[*Execution]string, len(w.logs))
	for x, log := range logs { // order: the map is a copy.
		requests[x] = log.request
	}
	w.mu.Unlock()
	var parts []store.LiveTextPart
	var gone []*Execution
	removed := make(map[string]string)
	for x, log := range logs { // order: sorted below.
		if requests[x] == "" || x.hasEnded() {
			gone = append(gone, x)
		} else if p := x.hub.liveTextPart(log, requests[x]); p != nil {
			p.Run = x.ID
			parts = append(parts, *p)
			continue
		} else if log.number == 0 || !log.stored || len(log.written) > 0 {
			continue
		}
		if log.stored {
			removed[x.ID], log.stored = log.writer, false
		}
	}
	slices.SortFunc(parts, func(a, b store.LiveTextPart) int { return strings.Compare(a.Run, b.Run) })
	w.put(logs, parts, removed)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range gone {
		delete(w.logs, x)
	}
	w.running = len(w.logs) > 0
	return w.running
}

// put writes parts and removes those of writers. What cannot be written is lost; the next parts are whole.
func (w *liveWriter) put(logs map[*Execution]*liveTextLog, parts []store.LiveTextPart, removed map[string]string) {
	var err error
	if len(parts) > 0 {
		err = w.store.PutLiveText(w.l.ctx, parts)
	}
	if err != nil {
		for _, log := range logs { // order: each entry is changed alone.
			log.broken = true
		}
	}
	if len(removed) > 0 && err == nil {
		err = w.store.RemoveLiveText(w.l.ctx, removed)
	}
	if err != nil && w.l.ctx.Err() == nil {
		w.l.o.Logger.Warn("write live text", "error", err)
	}
}

// removeAll removes what the store has when the process closes.
func (w *liveWriter) removeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	removed := make(map[string]string)
	for x, log := range w.logs { // order: none in a map.
		if log.stored {
			removed[x.ID] = log.writer
		}
	}
	w.logs, w.running = nil, false
	if len(removed) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.l.ctx), removeLiveText)
	defer cancel()
	if err := w.store.RemoveLiveText(ctx, removed); err != nil {
		w.l.o.Logger.Warn("remove live text", "error", err)
	}
}

// liveTextPart returns what is new in the live text of the hub's run, nil if there is nothing. A part with everything is
// returned for a new request, after a lost part, and if the parts in the store are much longer than the text.
func (h *hub) liveTextPart(log *liveTextLog, request string) *store.LiveTextPart {
	h.mu.Lock()
	fence := h.fence
	if fence == 0 { // nothing can be written
		h.mu.Unlock()
		return nil
	}
	size := 0
	for k, o := range h.live { // order: a sum.
		if k.run == h.root {
			size += o.size()
		}
	}
	whole := log.served != request || log.broken || !log.stored || log.bytes > minWholePart && log.bytes > 2*size
	if whole && log.served == request && !h.hasLiveText() {
		h.mu.Unlock() // the store needs none
		log.written = nil
		return nil
	}
	part := livePart{Number: log.number + 1, Event: h.lastEvents[h.root], Seq: h.lastSeq}
	written := make(map[liveKey]writtenOutput)
	for _, k := range h.live.keys() {
		if k.run != h.root {
			continue
		}
		o := h.live[k]
		if p, is := o.part(k, log.written[k], whole); is {
			part.Effects = append(part.Effects, p)
		}
		written[k] = o.written()
	}
	h.mu.Unlock()
	log.written = written
	if !whole && len(part.Effects) == 0 {
		return nil
	}
	data, _ := json.Marshal(part) // it has texts and numbers alone
	if whole {
		log.bytes = 0
	}
	log.number, log.served, log.stored, log.broken = part.Number, request, true, false
	log.bytes += len(data)
	return &store.LiveTextPart{Fence: fence, Writer: log.writer, Whole: whole, Data: data}
}

// hasLiveText reports whether an effect of the hub's run is in flight and has output; h.mu is held.
func (h *hub) hasLiveText() bool {
	for k := range h.live { // order: any.
		if k.run == h.root {
			return true
		}
	}
	return false
}

// part returns what is new of the output of an effect; is says whether anything is.
func (s *effectOutput) part(k liveKey, w writtenOutput, whole bool) (p effectPart, is bool) {
	p = effectPart{Path: k.path, Effect: k.effect, Attempt: s.attempt, Lane: s.lane, Completed: s.completed, Interim: s.interim}
	p.Restarted = w.of != nil && w.of != s
	before := w
	if w.of != s {
		before = writtenOutput{of: s, interim: w.interim && w.of == s}
		if s.size() == 0 {
			p.Wait = s.wait
		}
	}
	p.Calls = s.calls[before.calls:]
	if whole {
		before = writtenOutput{of: s}
	}
	p.Text, p.Reasoning = s.text.String()[before.text:], s.reasoning.String()[before.reasoning:]
	p.Stdout, p.Stderr = s.stdout.String()[before.stdout:], s.stderr.String()[before.stderr:]
	return p, whole || w.of != s || p.size() > 0 || len(p.Calls) > 0 || s.interim != before.interim
}

// written returns what parts have once all of the output is in them.
func (s *effectOutput) written() writtenOutput {
	return writtenOutput{s, s.text.Len(), s.reasoning.Len(), s.stdout.Len(), s.stderr.Len(), len(s.calls), s.interim}
}
