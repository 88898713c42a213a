package convo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ToolCleaning says what Clean keeps of tool calls and their results.
type ToolCleaning int

// What Clean keeps of tool calls and results. It never separates a call from its results.
const (
	// ToolsKept keeps both.
	ToolsKept ToolCleaning = iota
	// ToolsCleared keeps both, but removes text and parts of the results.
	ToolsCleared
	// ToolsDropped removes both; the assistant's text next to a call stays.
	ToolsDropped
)

// clearedResult is the text of a result under ToolsCleared.
const clearedResult = "[This result was left out.]"

// CleanOptions select what Clean removes. With the zero value it makes a history that can
// be sent with other system instructions: without system messages, and without anything
// that providers reject.
type CleanOptions struct {
	// KeepSystem keeps system messages.
	KeepSystem bool
	// Tools says what is kept of tool calls and results, by default everything.
	Tools ToolCleaning
	// DropReasoning removes the reasoning of models, and with it all native blocks, which
	// may contain it.
	DropReasoning bool
	// DropNative removes native blocks, which only one provider can read, and messages that
	// have nothing else.
	DropNative bool
	// SkipQuery removes the first user message that is not blank.
	SkipQuery bool
	// Merge joins consecutive messages of one role into one. Texts and reasoning are
	// separated by a blank line; id, priority and name are those of the first message;
	// metadata is merged (the first message wins). Native blocks are removed. Pinned
	// messages and messages with different names are not merged.
	Merge bool
	// Last keeps at most this many of the newest messages, in whole groups (a message with
	// calls and its results is one), but at least the last group; 0 keeps all. It counts
	// what remains after all other options.
	Last int
	// IgnorePins treats pinned messages like all others. Otherwise a pinned message and its
	// group stay whatever Tools, SkipQuery, Last and KeepSystem say, and Last does not
	// count pinned messages that are older than what it keeps.
	IgnorePins bool
}

// Clean returns the selected messages, in order; Validate accepts the result for any ms.
// Beside what the options say it removes what Repair removes, messages with an unknown
// role, and messages without content (no text other than white space, no parts, calls or
// native blocks). Cleaning again changes nothing, except that SkipQuery then removes the
// next query.
//
// Clean does not change ms. The returned list belongs to the caller; its messages share
// texts and parts with ms. The time is proportional to the length of ms, plus the time of
// Repair for a message with very many calls. For a history with versions, pass the newest
// versions, as Context.Messages and History.Clean do.
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

// Clean returns a new history with the newest versions of the messages of h, cleaned. It
// returns an error if the messages cannot be read from the store.
func (h History) Clean(o CleanOptions) (History, error) {
	ms, err := h.newestVersions(0)
	if err != nil {
		return History{}, fmt.Errorf("clean a history: %w", err)
	}
	return History{}.Append(Clean(ms, o)...), nil
}

// cleanGroups returns what remains of repaired messages, group by group.
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

// keepsPinned reports whether a group stays because it is pinned.
func (o CleanOptions) keepsPinned(group []Message) bool {
	return !o.IgnorePins && slices.ContainsFunc(group, func(m Message) bool { return m.Pinned })
}

// appendGroup appends what remains of a group.
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
		m.Calls, m.Native, m.Provider = nil, nil, "" // native blocks contain the calls
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

// stripMessage returns the message without what the options remove from every message.
func (o CleanOptions) stripMessage(m Message) Message {
	if o.DropReasoning {
		m.Reasoning = ""
	}
	if o.DropReasoning || o.DropNative {
		m.Native, m.Provider = nil, ""
	}
	return m
}

// isBlank reports whether a message, other than a tool result, has no content.
func (m Message) isBlank() bool {
	return len(m.Parts) == 0 && len(m.Calls) == 0 && len(m.Native) == 0 && strings.TrimSpace(m.Text) == ""
}

// lastGroups applies Last to a valid list, which it may change.
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

// mergeRuns merges the runs of messages of one role in a valid list, which it may change.
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

// canMerge reports whether b can be merged with a. In a valid list a has no calls then,
// because their results would follow it.
func canMerge(a, b *Message) bool {
	return a.Role == b.Role && a.Role != Tool && a.Name == b.Name && !a.Pinned && !b.Pinned
}

// mergeMessages merges the messages of one run.
func mergeMessages(run []Message) Message {
	m := run[0]
	m.Parts, m.Native, m.Provider, m.Metadata = nil, nil, "", nil
	m.Calls = run[len(run)-1].Calls // no message before it has calls
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
