package memorytool

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

const (
	writeDescription = "Remembers something about the user for later conversations: a fact (what is so), an episode (what happened) or a procedure (how something is done, its steps). " +
		"Remember what the user would want you to know next time, in a sentence that is understood without this conversation. " +
		"A fact or procedure with a key replaces what stood under that key."
	forgetDescription = "Forgets one remembered item for good, with what it said before. Its id is what memoryRead, identifyUser and memoryWrite give."
)

func writeParameters() map[string]any {
	return objectSchema([]any{"kind", "text"}, map[string]any{
		"kind": map[string]any{"type": "string", "enum": kindNames()},
		"text": map[string]any{"type": "string", "minLength": 1, "description": "What to remember."},
		"key": map[string]any{
			"type": "string", "maxLength": memory.MaxKey,
			"description": "What a fact or procedure is about, such as diet, home address, how to reset the router: there is one of each.",
		},
		"tags": map[string]any{"type": "array", "maxItems": memory.MaxTags, "items": map[string]any{"type": "string", "maxLength": memory.MaxTag}, "description": "Words under which it is found, too."},
		"when": map[string]any{"type": "string", "description": "When an episode happened, if not now: a date such as 2026-11-20, a time such as 2026-11-20T09:30:00Z, or how long ago, such as 12h or 30d."},
	})
}

func forgetParameters() map[string]any {
	return objectSchema([]any{"id"}, map[string]any{"id": map[string]any{"type": "string", "minLength": 1, "description": "The item's id."}})
}

// write stores an item.
func (k *memoryTools) write(ctx context.Context, call tool.Call, args map[string]any) (string, error) {
	var in struct {
		Kind memory.Kind `json:"kind"`
		Text string      `json:"text"`
		Key  string      `json:"key"`
		Tags []string    `json:"tags"`
		When string      `json:"when"`
	}
	if err := decodeArguments(args, &in); err != nil {
		return "", err
	}
	s, err := k.scope(call.Caller)
	if err != nil {
		return "", err
	}
	w := memory.Write{
		Scope: s, Kind: in.Kind, Key: in.Key, Text: in.Text, Tags: in.Tags, Now: k.options.Now(),
		Source: source(call.Caller), Call: call.Key, MaxItems: max(k.options.MaxItems, 0),
	}
	if in.When != "" && in.Kind != memory.Episode {
		return "", fmt.Errorf("when: only an episode happens at a time; write it into the text of a %s", in.Kind)
	}
	if w.At, err = parseTime(in.When, w.Now); err != nil {
		return "", fmt.Errorf("when: %w", err)
	}
	done, err := k.store.Remember(ctx, w)
	if errors.Is(err, memory.ErrFull) {
		return "", fmt.Errorf("%w: forget what is of no use any more with %s, or write a new version under a key", err, Forget)
	}
	if err != nil {
		return "", err
	}
	item := w.Item(done.Version)
	item.ID = done.ID
	if err := call.Declare(artifact(&item, trajectory.ToolOutput)); err != nil {
		return "", err
	}
	call.Return(map[string]any{"id": done.ID, "version": done.Version, "known": done.Known})
	switch {
	case done.Known:
		return fmt.Sprintf("This was remembered already, as %s.", done.ID), nil
	case done.Version > 1:
		return fmt.Sprintf("Remembered as %s, in place of what stood under that key; it is version %d.", done.ID, done.Version), nil
	}
	return fmt.Sprintf("Remembered as %s.", done.ID), nil
}

// forget deletes an item.
func (k *memoryTools) forget(ctx context.Context, call tool.Call, args map[string]any) (string, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := decodeArguments(args, &in); err != nil {
		return "", err
	}
	s, err := k.scope(call.Caller)
	if err != nil {
		return "", err
	}
	was, err := k.store.Forget(ctx, s, in.ID, call.Key)
	switch {
	case err != nil:
		return "", err
	case !was:
		return "", fmt.Errorf("nothing of this user is remembered under the id %q: %s tells the ids", in.ID, Read)
	}
	call.Return(map[string]any{"id": in.ID})
	return "Forgotten.", nil
}
