package livetext

import (
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// Ordered reads the items of one round from its beginning, and holds the text of the answer so far. Unlike that of Reader, the
// order of the texts is that of the journal: every reader of the round gets the same text in the end, in whichever process and
// however late it comes, and what it has before is the beginning of that text, unless a call is made again.
type Ordered struct {
	types map[string]string // of the speakers, by path
	turns []*turn
	live  map[string]*pending // by path: output of what has not completed
}

// turn is one entry of a node, until it completes, fails or waits.
type turn struct {
	path   string
	texts  []string // complete
	closed bool
}

// NewOrdered returns a reader for rounds of a flow.
func NewOrdered(f *flow.Flow) *Ordered {
	o := &Ordered{types: make(map[string]string), live: make(map[string]*pending)}
	speakers := Speakers(f)
	for _, n := range f.Nodes {
		if speakers[n.ID] {
			o.types[n.ID] = n.Type
		}
	}
	return o
}

// Next takes an item.
func (o *Ordered) Next(it *weir.Item) {
	switch {
	case it.PathPrefix != "": // a child run speaks to its parent
		return
	case it.Event != nil:
		o.event(it.Event)
	case it.Gap:
		clear(o.live)
	case it.Retracted:
		if p := o.live[it.Path]; p != nil && p.key == it.Effect {
			delete(o.live, it.Path)
		}
	case it.Chunk != nil && it.Chunk.Text != "" && o.types[it.Path] != "" && isAnswer(it.Effect):
		p := o.live[it.Path]
		if p == nil || p.key != it.Effect || it.Snapshot {
			p = &pending{key: it.Effect}
			o.live[it.Path] = p
		}
		p.text.WriteString(it.Chunk.Text)
	}
}

// isAnswer reports whether the text of an effect can be part of the answer: that of a summary is not.
func isAnswer(effect string) bool {
	if effect == "" {
		return true
	}
	_, name := engine.SplitEffectKey(effect)
	name, _, _ = strings.Cut(name, "#")
	return name == "model"
}

func (o *Ordered) event(e engine.Event) {
	if done, ok := e.(*engine.EffectCompleted); ok {
		o.completed(done)
		return
	}
	path := engine.EventPath(e)
	if o.types[path] == "" {
		return
	}
	switch e := e.(type) {
	case *engine.NodeStarted, *engine.NodeResumed:
		if o.open(path) == nil {
			o.turns = append(o.turns, &turn{path: path})
		}
	case *engine.NodeCompleted:
		if o.types[path] == "say" {
			v, _ := e.Outputs.Get("text")
			text, _ := v.(string)
			o.add(path, text)
		}
		o.close(path)
	case *engine.NodeErrored, *engine.NodeFailed, *engine.NodeCancelled, *engine.NodeWaiting, *engine.NodePulling,
		*engine.NodeExpanded, *engine.NodeRetrying, *engine.NodeOverridden:
		o.close(path)
	}
}

// completed takes the text of a model call.
func (o *Ordered) completed(e *engine.EffectCompleted) {
	path, _ := engine.SplitEffectKey(e.Key)
	if o.types[path] == "" || !isAnswer(e.Key) {
		return
	}
	delete(o.live, path)
	if e.Error != nil {
		return
	}
	answer, _ := e.Result.(map[string]any)
	message, _ := answer["message"].(map[string]any)
	text, _ := message["text"].(string)
	o.add(path, text)
}

// open returns the turn of a node that has not ended, nil for none.
func (o *Ordered) open(path string) *turn {
	for _, t := range o.turns {
		if t.path == path && !t.closed {
			return t
		}
	}
	return nil
}

// add adds a complete text to the turn of a node. A node whose start precedes what was read has none.
func (o *Ordered) add(path, text string) {
	t := o.open(path)
	if t == nil {
		t = &turn{path: path}
		o.turns = append(o.turns, t)
	}
	delete(o.live, path)
	if text != "" {
		t.texts = append(t.texts, text)
	}
}

func (o *Ordered) close(path string) {
	delete(o.live, path)
	if t := o.open(path); t != nil {
		t.closed = true
	}
}

// Spoken is the text of an answer, made of one or several texts with blank lines between them.
type Spoken struct {
	Text string
	// Ends are the offsets in bytes at which its texts end, ascending. What follows the last of them is not complete.
	Ends []int
}

// add adds a text.
func (s *Spoken) add(text string, complete bool) {
	if text == "" {
		return
	}
	if s.Text != "" {
		s.Text += "\n\n"
	}
	s.Text += text
	if complete {
		s.Ends = append(s.Ends, len(s.Text))
	}
}

// Complete returns how many bytes of the text are complete: the journal has them.
func (s *Spoken) Complete() int {
	if len(s.Ends) == 0 {
		return 0
	}
	return s.Ends[len(s.Ends)-1]
}

// Spoken returns the text so far. Nodes that execute at the same time speak one after another.
func (o *Ordered) Spoken() (s Spoken) {
	for _, t := range o.turns {
		for _, text := range t.texts {
			s.add(text, true)
		}
		if t.closed {
			continue
		}
		if p := o.live[t.path]; p != nil {
			s.add(p.text.String(), false)
		}
		break
	}
	return s
}

// End returns the whole answer of a round that rests. last is its last text as the record has it, and the others are added to the
// answer.
func (o *Ordered) End(last string, others ...string) (s Spoken) {
	has := false
	for _, t := range o.turns {
		for _, text := range t.texts {
			s.add(text, true)
			has = has || text == last
		}
	}
	if !has {
		s.add(last, true)
	}
	for _, text := range others {
		s.add(text, true)
	}
	return s
}
