package runner

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
)

const (
	// liveTextTTL is how long a reader's request for live text lasts, and liveTextRenewal when it is renewed.
	liveTextTTL     = 30 * time.Second
	liveTextRenewal = 10 * time.Second
)

// remoteText is the live text that a reader has of runs that other processes execute. It belongs to the reader.
type remoteText struct {
	store store.LiveTextStore // nil if the store has none
	live  liveText
	runs  map[string]*remoteRun
	// requested is when the requests were renewed last.
	requested time.Time
}

// remoteRun is how far a reader has read the live text of a run.
type remoteRun struct {
	last      int64 // number of the last part that was read
	writer    string
	number    int64 // of the last part of the writer; 0: a whole part is needed
	requested bool  // a whole part was requested
	parts     []remotePart
}

// remotePart is a part that was read and not yielded.
type remotePart struct {
	livePart
	writer string
	whole  bool
}

// readElsewhere yields what is new of runs that other processes execute: events of the journals, and live text.
func (r *reader) readElsewhere() bool {
	if r.remote == nil {
		if !r.yieldGap() {
			return false
		}
		r.remote = &remoteText{store: r.l.liveWriter.store, live: make(liveText), runs: make(map[string]*remoteRun)}
	}
	r.at.hub, r.at.pos = "", 0
	// The parts are read first: the journals then have the events after which they are valid.
	return r.fetchParts() && r.replay(&subscription{}) && r.yieldAllParts()
}

// fetchParts reads the parts of the runs that have not ended. Live text is extra: if the store cannot be read or written, the
// reader has events only.
func (r *reader) fetchParts() bool {
	t := r.remote
	if t.store == nil {
		return true
	}
	after, fresh, renewed := r.openRuns()
	ok := true
	if len(fresh) > 0 {
		ok = t.store.RequestLiveText(r.ctx, fresh, true, liveTextTTL) == nil
		for _, run := range fresh {
			t.runs[run].requested = ok
		}
	}
	if len(renewed) > 0 && time.Since(t.requested) > liveTextRenewal {
		ok = t.store.RequestLiveText(r.ctx, renewed, false, liveTextTTL) == nil
		t.requested = time.Now()
	}
	if len(after) == 0 || !ok {
		return true
	}
	parts, err := t.store.LiveText(r.ctx, after)
	if err != nil {
		return true
	}
	for i := range parts {
		p := remotePart{writer: parts[i].Writer, whole: parts[i].Whole}
		if json.Unmarshal(parts[i].Data, &p.livePart) != nil { // of a later version
			continue
		}
		run := t.runs[parts[i].Run]
		run.last = parts[i].Number
		run.parts = append(run.parts, p)
	}
	return r.checkParts()
}

// openRuns returns the runs that have not ended, with the last part that was read of each: those of which a whole part is
// needed, and those whose request may have to be renewed.
func (r *reader) openRuns() (after map[string]int64, fresh, renewed []string) {
	t := r.remote
	after = make(map[string]int64)
	for i := range r.at.runs {
		f := &r.at.runs[i]
		if f.ended {
			continue
		}
		run := t.runs[f.run]
		if run == nil {
			run = new(remoteRun)
			t.runs[f.run] = run
		}
		if !run.requested {
			fresh = append(fresh, f.run)
		} else {
			renewed = append(renewed, f.run)
		}
		after[f.run] = run.last
	}
	if len(renewed) == 0 {
		t.requested = time.Now()
	}
	maps.DeleteFunc(t.runs, func(id string, _ *remoteRun) bool { _, open := after[id]; return !open })
	return after, fresh, renewed
}

// checkParts drops the parts that do not follow what the reader has. If a part is missing, or another execution of the run
// has begun, all live text is void: a gap says so, and whole parts are requested.
func (r *reader) checkParts() bool {
	lost := false
	for id, run := range r.remote.runs { // order: each entry is considered alone.
		lost = run.dropUnconnected(r.hasRemoteText(id)) || lost
	}
	if !lost {
		return true
	}
	for _, run := range r.remote.runs { // order: each entry is changed alone.
		run.number, run.requested = 0, false
		run.parts = run.parts[run.lastWhole():]
	}
	clear(r.remote.live)
	return r.yieldGap()
}

// dropUnconnected drops the parts that do not follow what the reader has, or a whole part. lost means that the reader has
// text that they do not replace.
func (t *remoteRun) dropUnconnected(hasText bool) (lost bool) {
	if t.number > 0 && connected(t.writer, t.number, t.parts) || len(t.parts) == 0 {
		return false
	}
	t.parts = t.parts[t.lastWhole():]
	if len(t.parts) == 0 {
		t.requested = false // the whole part was lost, or is still to come
		return t.number > 0
	}
	first := &t.parts[0]
	return hasText && first.writer != t.writer || !connected(first.writer, first.Number, t.parts[1:])
}

// lastWhole returns the index of the last whole part, the number of parts if there is none.
func (t *remoteRun) lastWhole() int {
	for i := range slices.Backward(t.parts) {
		if t.parts[i].whole {
			return i
		}
	}
	return len(t.parts)
}

// connected reports whether parts follow a part of a writer, one by one.
func connected(writer string, number int64, parts []remotePart) bool {
	for i := range parts {
		if parts[i].writer != writer || parts[i].Number != number+int64(i)+1 {
			return false
		}
	}
	return true
}

// hasRemoteText reports whether the reader has live text of a run.
func (r *reader) hasRemoteText(run string) bool {
	for k := range r.remote.live { // order: any.
		if k.run == run {
			return true
		}
	}
	return false
}

// yieldRemoteBefore yields the live text that comes before an event, and the retractions of what the event makes void.
func (r *reader) yieldRemoteBefore(it *Item) bool {
	if r.remote == nil || r.skipping {
		return true
	}
	if !r.yieldPartsBefore(it.Run, it.Number) {
		return false
	}
	for _, void := range r.remote.live.applyEvent(it.Run, it.Event, it.At) {
		if !r.yieldItem(void) {
			return false
		}
	}
	return true
}

// yieldPartsBefore yields the parts of a run that are valid before its event with a number.
func (r *reader) yieldPartsBefore(id string, number int64) bool {
	run := r.remote.runs[id]
	for run != nil && len(run.parts) > 0 && run.parts[0].Event < number {
		p := run.parts[0]
		run.parts = run.parts[1:]
		run.writer, run.number = p.writer, p.Number
		if !r.yieldPart(id, &p) {
			return false
		}
	}
	return true
}

// yieldAllParts yields the parts that are valid after what was read of the journals.
func (r *reader) yieldAllParts() bool {
	for _, id := range slices.Sorted(maps.Keys(r.remote.runs)) {
		if f := r.runPosition(id); f != nil && !r.yieldPartsBefore(id, f.last+1) {
			return false
		}
	}
	return true
}

// yieldPart yields what a part says, except of effects that events which the reader has completed or made void.
func (r *reader) yieldPart(id string, p *remotePart) bool {
	valid, ok := r.stillValid(id, p)
	if !ok {
		return false
	}
	for i := range p.Effects {
		e := &p.Effects[i]
		k := liveKey{id, e.Path, e.Effect}
		if valid != nil && valid[k] == nil {
			continue
		}
		if valid != nil {
			e.Completed = valid[k].completed
		}
		for _, it := range r.remote.live.items(k, e, p.whole, r.l.clock.now()) {
			if !r.yieldItem(it) {
				return false
			}
		}
	}
	return true
}

// stillValid returns the effects of a part that are in flight after the events which the reader has and the process that
// wrote the part had not; nil if there are none such events.
func (r *reader) stillValid(id string, p *remotePart) (valid liveText, ok bool) {
	last := r.runPosition(id).last
	if p.Event >= last || len(p.Effects) == 0 {
		return nil, true
	}
	valid = make(liveText)
	for i := range p.Effects {
		e := &p.Effects[i]
		valid[liveKey{id, e.Path, e.Effect}] = &effectOutput{attempt: e.Attempt, lane: e.Lane, completed: e.Completed}
	}
	for c, err := range r.l.store.Commits(r.ctx, id, p.Seq) {
		if err != nil {
			r.yield(Item{}, err)
			return nil, false
		}
		for i, e := range c.Events {
			if n := c.First + int64(i); n > p.Event && n <= last {
				valid.applyEvent(id, e, c.At)
			}
		}
	}
	return valid, true
}

// items adds what a part says of an effect to the live text of a reader, and returns the items that say so.
func (l liveText) items(k liveKey, e *effectPart, whole bool, at int64) (out []Item) {
	s := l[k]
	if s != nil && (e.Restarted || s.attempt != e.Attempt) {
		out, s = s.retract(out, k, at), nil
	}
	it := Item{Run: k.run, At: at, Path: k.path, Attempt: e.Attempt, Effect: k.effect}
	piece := &llm.Chunk{Effect: k.effect, Text: e.Text, Reasoning: e.Reasoning, Stdout: e.Stdout, Stderr: e.Stderr}
	if whole && s != nil { // most of it is known
		if rest, follows := s.rest(e); follows {
			piece, whole = rest, false
		} else {
			s = nil
		}
	}
	if s == nil {
		s = &effectOutput{attempt: e.Attempt, interim: !mayBeAnswer(k.effect), lane: e.Lane}
		l[k] = s
	}
	s.completed = e.Completed
	if e.Wait != nil {
		wait := it
		wait.Interim, wait.Chunk = s.interim, e.Wait
		out = append(out, wait)
	}
	if e.Interim && !s.interim {
		s.interim = true
		mark := it
		mark.Interim = true
		out = append(out, mark)
	}
	it.Interim = s.interim
	s.text.WriteString(piece.Text)
	s.reasoning.WriteString(piece.Reasoning)
	s.stdout.WriteString(piece.Stdout)
	s.stderr.WriteString(piece.Stderr)
	if piece.Text+piece.Reasoning+piece.Stdout+piece.Stderr != "" {
		text := it
		text.Chunk, text.Snapshot = piece, whole
		out = append(out, text)
	}
	for i := range e.Calls {
		call := it
		call.Chunk = &llm.Chunk{Effect: k.effect, Call: &e.Calls[i]}
		out = append(out, call)
	}
	return out
}

// rest returns what a part with all of the output of an effect has beyond that of the reader.
func (s *effectOutput) rest(e *effectPart) (rest *llm.Chunk, follows bool) {
	rest = &llm.Chunk{}
	follows = true
	cut := func(have *strings.Builder, all string) string {
		tail, ok := strings.CutPrefix(all, have.String())
		follows = follows && ok
		return tail
	}
	rest.Text, rest.Reasoning = cut(&s.text, e.Text), cut(&s.reasoning, e.Reasoning)
	rest.Stdout, rest.Stderr = cut(&s.stdout, e.Stdout), cut(&s.stderr, e.Stderr)
	return rest, follows
}
