package convo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ToolCleaning is what Clean leaves of tool calls and their results.
type ToolCleaning int

// What is left of tool calls and their results. A call and its results are never
// parted.
const (
	// ToolsKept keeps both.
	ToolsKept ToolCleaning = iota
	// ToolsCleared keeps both, the results without their text and parts.
	ToolsCleared
	// ToolsDropped leaves out both; what the assistant said beside a call stays.
	ToolsDropped
)

// clearedResult is the text of a result under ToolsCleared.
const clearedResult = "[This result was left out.]"

// CleanOptions say what Clean leaves out. The zero value makes a history that can
// be replayed under other instructions: without system messages, and without what
// no provider accepts.
type CleanOptions struct {
	// KeepSystem keeps system messages.
	KeepSystem bool
	// Tools is what is left of tool calls and results: all by default.
	Tools ToolCleaning
	// DropReasoning leaves out the reasoning of models, and all native blocks
	// with it, since these may hold it.
	DropReasoning bool
	// DropNative leaves out what only one provider reads: native blocks. A
	// message that has nothing else goes with them.
	DropNative bool
	// SkipQuery leaves out the first message of a person that says something.
	SkipQuery bool
	// Merge makes one message of those that one role has said in a row, texts
	// and reasoning a blank line apart, with the id, priority and name of the
	// first and the metadata of all (the first's where two have a key). Their
	// native blocks go. Pinned messages and those of other names are not merged.
	Merge bool
	// Last keeps the newest messages, at most so many, with whole groups (a
	// message with calls and its results is one), but never less than the last
	// group; 0 keeps all. It counts what all other options leave.
	Last int
	// IgnorePins treats pinned messages as any other. They stay else, with the
	// group they are in, whatever Tools, SkipQuery, Last and KeepSystem say, and
	// Last does not count those that are older than what it keeps.
	IgnorePins bool
}

// Clean returns the messages that may be handed on: for Validate they are valid,
// whatever ms is, and in the order of ms. Beside what the options say it leaves
// out what Repair does, roles that are none of the four, and messages that say
// nothing (neither text but white space, nor parts, calls or native blocks).
// Cleaning again changes nothing, but that SkipQuery then takes the next query.
//
// ms is not changed; the list that returns is the caller's own, its messages
// share texts and parts with ms. It takes time in proportion to the length of ms,
// besides what Repair takes for a message with very many calls. Of a history
// with versions, pass what Context.Messages or History.Clean take: the newest.
func Clean(ms []Message, o CleanOptions) []Message {
	out := o.cleanGroups(Repair(ms))
	if o.Merge {
		out = mergeRuns(out)
	}
	if o.Last > 0 {
		out = o.lastGroups(out)
	}
	return slices.Clip(out)
}

// Clean returns a history of its own with the newest versions of the messages of
// h, cleaned. The error is that of a store that cannot be read.
func (h History) Clean(o CleanOptions) (History, error) {
	ms, err := h.newestVersions(0)
	if err != nil {
		return History{}, fmt.Errorf("clean a history: %w", err)
	}
	return History{}.Append(Clean(ms, o)...), nil
}

// cleanGroups is what is left of repaired messages group by group.
func (o CleanOptions) cleanGroups(ms []Message) []Message {
	out := make([]Message, 0, len(ms))
	query := o.SkipQuery
	for i := 0; i < len(ms); {
		end := i + 1
		if ms[i].Role == Assistant {
			end = groupEnd(ms, i)
		}
		group := ms[i:end]
		i = end
		pinned := o.keepsPinned(group)
		if query && group[0].Role == User && !group[0].isBlank() {
			query = false
			if !pinned {
				continue
			}
		}
		out = o.appendGroup(out, group, pinned)
	}
	return out
}

// keepsPinned reports whether a group stays where others go.
func (o CleanOptions) keepsPinned(group []Message) bool {
	return !o.IgnorePins && slices.ContainsFunc(group, func(m Message) bool { return m.Pinned })
}

// appendGroup appends what is left of a group.
func (o CleanOptions) appendGroup(out, group []Message, pinned bool) []Message {
	m, results := o.stripMessage(group[0]), group[1:]
	switch m.Role {
	case User, Assistant:
	case System:
		if !o.KeepSystem && !pinned {
			return out
		}
	default:
		return out
	}
	if o.Tools == ToolsDropped && !pinned && len(m.Calls) > 0 {
		m.Calls, m.Native, m.Provider = nil, nil, "" // native blocks hold the calls
		results = nil
	}
	if m.isBlank() {
		return out
	}
	out = append(out, m)
	for _, r := range results {
		r = o.stripMessage(r)
		if o.Tools == ToolsCleared && !pinned {
			r.Text, r.Parts = clearedResult, nil
		}
		out = append(out, r)
	}
	return out
}

// stripMessage is a message without what the options leave out of any.
func (o CleanOptions) stripMessage(m Message) Message {
	if o.DropReasoning {
		m.Reasoning = ""
	}
	if o.DropReasoning || o.DropNative {
		m.Native, m.Provider = nil, ""
	}
	return m
}

// isBlank reports whether a message that is no result says nothing.
func (m Message) isBlank() bool {
	return len(m.Parts) == 0 && len(m.Calls) == 0 && len(m.Native) == 0 && strings.TrimSpace(m.Text) == ""
}

// lastGroups is what Last leaves of a valid list, which it takes over.
func (o CleanOptions) lastGroups(ms []Message) []Message {
	cut, left := len(ms), o.Last
	for end := len(ms); end > 0; end = cut {
		start := end - 1
		for ms[start].Role == Tool {
			start--
		}
		left -= end - start
		if left < 0 && end < len(ms) {
			break
		}
		cut = start
	}
	out := ms[:0]
	for i := 0; i < cut; {
		end := i + 1
		if ms[i].Role == Assistant {
			end = groupEnd(ms, i)
		}
		if o.keepsPinned(ms[i:end]) {
			out = append(out, ms[i:end]...)
		}
		i = end
	}
	return append(out, ms[cut:]...)
}

// mergeRuns makes one message of each run in a valid list, which it takes over.
func mergeRuns(ms []Message) []Message {
	out := ms[:0]
	for i := 0; i < len(ms); {
		end := i + 1
		for end < len(ms) && canMerge(&ms[end-1], &ms[end]) {
			end++
		}
		if end == i+1 {
			out = append(out, ms[i])
		} else {
			out = append(out, mergeMessages(ms[i:end]))
		}
		i = end
	}
	return out
}

// canMerge reports whether b goes on with what a says. In a valid list a has no
// calls then: their results would stand between.
func canMerge(a, b *Message) bool {
	return a.Role == b.Role && a.Role != Tool && a.Name == b.Name && !a.Pinned && !b.Pinned
}

// mergeMessages is one message of a run.
func mergeMessages(run []Message) Message {
	m := run[0]
	m.Parts, m.Native, m.Provider, m.Metadata = nil, nil, "", nil
	m.Calls = run[len(run)-1].Calls // none before has any
	texts, thoughts := make([]string, 0, len(run)), make([]string, 0, len(run))
	for _, r := range run {
		if r.Text != "" {
			texts = append(texts, r.Text)
		}
		if r.Reasoning != "" {
			thoughts = append(thoughts, r.Reasoning)
		}
		m.Parts = append(m.Parts, r.Parts...)
		if len(r.Metadata) > 0 && m.Metadata == nil {
			m.Metadata = maps.Clone(r.Metadata)
		}
		for k, v := range r.Metadata {
			if _, set := m.Metadata[k]; !set {
				m.Metadata[k] = v
			}
		}
	}
	m.Text, m.Reasoning = strings.Join(texts, "\n\n"), strings.Join(thoughts, "\n\n")
	return m
}
