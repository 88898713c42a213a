// Package convo implements conversation contexts: messages, histories with structural
// sharing, snapshots, forks, lanes, views, and the manager that makes all changes to a
// context.
//
// It must not know flows, runs, stores or providers, and imports no package of Weir.
// Callers pass in token counters and stores.
package convo

import (
	"encoding/json"
	"time"
)

// Role is the author of a message.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one entry of a history. Messages are immutable: to change one,
// Upsert a new version under its id.
type Message struct {
	// ID is unique in the context; the manager creates it if it is empty.
	ID   string `json:"id,omitempty"`
	Role Role   `json:"role"`
	// Text is the content; Parts has images and files.
	Text  string `json:"text,omitempty"`
	Parts []Part `json:"parts,omitempty"`
	// Reasoning is the model's reasoning. It is stored and never sent as content.
	Reasoning string `json:"reasoning,omitempty"`
	// Calls are the tool calls of an assistant message.
	Calls []Call `json:"calls,omitempty"`
	// CallID and Name identify the call that a tool message answers; Failed marks an error
	// result.
	CallID string `json:"call_id,omitempty"`
	Name   string `json:"name,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	// Native has blocks that only their provider can read, and that are sent back to it
	// unchanged (reasoning signatures); Provider names that provider.
	Native   json.RawMessage `json:"native,omitempty"`
	Provider string          `json:"provider,omitempty"`
	// Pinned messages stay in every view. Of the others, views omit those with the lowest
	// Priority first, 1 to 100; 0 means 50.
	Pinned   bool     `json:"pinned,omitempty"`
	Priority int      `json:"priority,omitempty"`
	Metadata Metadata `json:"metadata,omitempty"`
}

// Part is a piece of a message other than plain text.
type Part struct {
	Kind string `json:"kind"` // "image" or "file"
	MIME string `json:"mime,omitempty"`
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
	// Data may be large and is shared by all copies of a message. It must not be changed.
	Data []byte `json:"data,omitempty"`
}

// Call is a tool call of a model.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the JSON text exactly as the model wrote it.
	Arguments string `json:"arguments"`
}

// Settings are a context's settings of model calls.
type Settings struct {
	Provider    string   `json:"provider,omitempty"`
	Model       string   `json:"model,omitempty"`
	System      string   `json:"system,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	MaxOutput   int      `json:"max_output,omitempty"` // tokens
	Reasoning   string   `json:"reasoning,omitempty"`
	Window      int      `json:"window,omitempty"`  // tokens
	Reserve     int      `json:"reserve,omitempty"` // tokens
	// History is "server" if the provider may keep the conversation.
	History string       `json:"history,omitempty"`
	View    ViewSettings `json:"view,omitzero"`
	// Fallback says which models are asked if a call of Model fails; nil for none. It belongs to
	// Model: replacing the model removes it.
	Fallback *Fallback `json:"fallback,omitempty"`
	// CallTimeout limits each model call.
	CallTimeout CallTimeout `json:"call_timeout,omitzero"`
	// ClientTools are offered to the models of this context besides the tools of nodes. The client that started the run has
	// them: a call waits for its output.
	ClientTools *ClientTools `json:"client_tools,omitempty"`
	// Demands are what the client that started the run demands of the answer, nil for nothing.
	Demands *AnswerDemands `json:"demands,omitempty"`
}

// AnswerDemands are what a client demands of the answer to its message. The nodes that give the answer fail if their models do
// not comply.
type AnswerDemands struct {
	// Nodes are the paths of the nodes that give the answer; no others are bound.
	Nodes []string `json:"nodes"`
	// Schema is the JSON Schema of the answer, an object; nil means text.
	Schema map[string]any `json:"schema,omitempty"`
	// MustCall are names of ClientTools. The first answer of each model calls one of them; empty leaves that to the model.
	MustCall []string `json:"must_call,omitempty"`
}

// ClientTools are tools of one client.
type ClientTools struct {
	List []ClientTool `json:"list"`
}

// ClientTool is a tool that a client has.
type ClientTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is the JSON Schema of the arguments, an object; nil takes none.
	Parameters map[string]any `json:"parameters,omitempty"`
}

// ClientCallKey is the member of the schema of a question that is a call of a ClientTool: an object with id, name and
// arguments, which is JSON text.
const ClientCallKey = "x-weir-client-call"

// Fallback lists the models that are asked one after another if a context's model fails.
type Fallback struct {
	// Models are written "provider/model".
	Models []string `json:"models"`
	// On are the codes of the failures after which the next one is asked; empty means the
	// default of the model service.
	On []string `json:"on,omitempty"`
}

// CallTimeout limits one model call: until its answer begins, without anything arriving, and in
// all. Zero leaves the limit of the provider.
type CallTimeout struct {
	First time.Duration `json:"first,omitempty"` // nanoseconds in JSON, as the others
	Idle  time.Duration `json:"idle,omitempty"`
	Total time.Duration `json:"total,omitempty"`
}

// Kind is the kind of a context.
type Kind string

// The kinds. Main is the default.
const (
	Main     Kind = "main"
	Isolated Kind = "isolated"
	Portal   Kind = "portal"
)

// Change is one recorded change to one context, as journaled. Exactly one group of fields
// is set: creation (Create, Kind, Label, Settings, Epoch, with Marks and Session) or one of
// the others.
type Change struct {
	// Create creates the context, with Kind and Settings.
	Create   bool      `json:"create,omitempty"`
	Kind     Kind      `json:"kind,omitempty"`
	Label    string    `json:"label,omitempty"`
	Settings *Settings `json:"settings,omitempty"`
	// Epoch is the position at which views begin, for a context that is created with a
	// history; Marks and Session may then be set too.
	Epoch int `json:"epoch,omitempty"`
	// Append adds messages, in order. A message with a known id replaces that message (a
	// new version); an equal one is a no-op.
	Append []Message `json:"append,omitempty"`
	// Versions says that Append has new versions of existing messages; with Create, that
	// the initial history has.
	Versions bool `json:"versions,omitempty"`
	// Set replaces the settings.
	Set *Settings `json:"set,omitempty"`
	// Reset begins an epoch: views start here; the history stays.
	Reset bool `json:"reset,omitempty"`
	// Output sets the context's current output.
	Output *string `json:"output,omitempty"`
	// Session sets the provider's session id.
	Session *string `json:"session,omitempty"`
	// Marks sets what views omit.
	Marks *Marks `json:"marks,omitempty"`
}
