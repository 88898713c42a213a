// Package convo implements conversation contexts: messages, histories with structural
// sharing, snapshots, forks, lanes, views, and the manager that makes all changes to a
// context.
//
// It must not know flows, runs, stores or providers, and imports no package of Weir.
// Callers pass in token counters and stores.
package convo

import "encoding/json"

// Role is who speaks.
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
	// ID is unique in the context; made by the manager where it is empty.
	ID   string `json:"id,omitempty"`
	Role Role   `json:"role"`
	// Text is the content; Parts holds images and files beside it.
	Text  string `json:"text,omitempty"`
	Parts []Part `json:"parts,omitempty"`
	// Reasoning is the model's own, kept and never sent as content.
	Reasoning string `json:"reasoning,omitempty"`
	// Calls are the tools an assistant message asks for.
	Calls []Call `json:"calls,omitempty"`
	// CallID and Name say which call a tool message answers; Failed marks a
	// result that is an error.
	CallID string `json:"call_id,omitempty"`
	Name   string `json:"name,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	// Native holds blocks that only their provider reads, returned to it
	// verbatim (reasoning signatures); Provider says whose they are.
	Native   json.RawMessage `json:"native,omitempty"`
	Provider string          `json:"provider,omitempty"`
	// Pinned messages stay in every view. Priority is kept for whoever reads it
	// (50 is the middle; 0 in JSON is 50); views go by age.
	Pinned   bool     `json:"pinned,omitempty"`
	Priority int      `json:"priority,omitempty"`
	Metadata Metadata `json:"metadata,omitempty"`
}

// Part is a piece of a message that is not plain text.
type Part struct {
	Kind string `json:"kind"` // "image" or "file"
	MIME string `json:"mime,omitempty"`
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
	// Data may be large and is shared by all copies of a message: it must not
	// be changed.
	Data []byte `json:"data,omitempty"`
}

// Call is a tool call as the model made it.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the JSON text exactly as the model wrote it.
	Arguments string `json:"arguments"`
}

// Settings are what a context asks of its model.
type Settings struct {
	Provider    string   `json:"provider,omitempty"`
	Model       string   `json:"model,omitempty"`
	System      string   `json:"system,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	MaxOutput   int      `json:"max_output,omitempty"` // tokens
	Reasoning   string   `json:"reasoning,omitempty"`
	Window      int      `json:"window,omitempty"`  // tokens
	Reserve     int      `json:"reserve,omitempty"` // tokens
	// History is "server" where the provider may keep the conversation.
	History string       `json:"history,omitempty"`
	View    ViewSettings `json:"view,omitzero"`
}

// Kind is what sort of context it is.
type Kind string

// The kinds. Main is the default.
const (
	Main     Kind = "main"
	Isolated Kind = "isolated"
	Portal   Kind = "portal"
)

// Change is one recorded change to one context, what the journal keeps of it.
// Exactly one field group is set: creation (Create, Kind, Label, Settings, Epoch,
// with Marks and Session) or one of the others.
type Change struct {
	// Create makes the context, with Kind and Settings.
	Create   bool      `json:"create,omitempty"`
	Kind     Kind      `json:"kind,omitempty"`
	Label    string    `json:"label,omitempty"`
	Settings *Settings `json:"settings,omitempty"`
	// Epoch is where views of a context begin that is created with a history;
	// Marks and Session may then be set with it.
	Epoch int `json:"epoch,omitempty"`
	// Append adds messages, in order. A message whose id the history has
	// already replaces it (a new version); an equal one is a no-op.
	Append []Message `json:"append,omitempty"`
	// Versions says that Append holds new versions of messages there already; with
	// Create, that the history that the context begins with does.
	Versions bool `json:"versions,omitempty"`
	// Set replaces the settings.
	Set *Settings `json:"set,omitempty"`
	// Reset begins an epoch: views start here, history stays.
	Reset bool `json:"reset,omitempty"`
	// Output sets the context's current output.
	Output *string `json:"output,omitempty"`
	// Session sets the provider's session id.
	Session *string `json:"session,omitempty"`
	// Marks sets what views leave out.
	Marks *Marks `json:"marks,omitempty"`
}
