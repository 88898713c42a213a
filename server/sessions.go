package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

type openSessionInput struct {
	Keyed
	Body struct {
		Flow   string `json:"flow" minLength:"1" doc:"The name of a flow of the server"`
		Thread string `json:"thread,omitempty" maxLength:"200" doc:"Names one of your conversations with the flow. A session of that thread is returned if there is one."`
	}
}

type listSessionsInput struct {
	Flow   string `query:"flow" doc:"Only sessions with the flow of this name"`
	User   string `query:"user" doc:"Only sessions of this user; of another user only with the scope admin"`
	Label  string `query:"label" doc:"Only sessions with this label"`
	Cursor string `query:"cursor" doc:"The member next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type sessionList struct {
	Sessions []app.SessionRow `json:"sessions"`
	Next     string           `json:"next" doc:"The cursor of the next page; empty on the last one"`
}

type sendInput struct {
	SessionPath
	Keyed
	Wait int `query:"wait" minimum:"0" maximum:"60" doc:"Wait up to this many seconds for the reply"`
	Body struct {
		Message json.RawMessage `json:"message" doc:"A text, a message, or the answer to the question that the session waits for. Approvals are answered with POST /v1/runs/{run}/answer."`
		Inputs  json.RawMessage `json:"inputs,omitempty" doc:"An object of inputs of the flow beside the message"`
		Model   string          `json:"model,omitempty" doc:"Replaces the model of the flow for the round"`
		Busy    string          `json:"busy,omitempty" enum:"queue,reject,fork" doc:"What to do while a round is running"`
	}
}

// sent is what became of a message.
type sent struct {
	Session string          `json:"session" doc:"Where the message was added: a fork of the session if that was busy and busy is fork"`
	Message string          `json:"message" doc:"The id of the message"`
	Run     string          `json:"run" doc:"The round that took the message; empty while it waits in the queue"`
	Status  string          `json:"status" doc:"queued, or the status of the run"`
	Text    string          `json:"text" doc:"The reply, once the run rests"`
	Report  *app.RunReport  `json:"report" doc:"The run, once it rests; null before"`
	Added   json.RawMessage `json:"messages" doc:"The messages that the reply added to the history"`
	// Truncated is nil if the answer has all values.
	Truncated []app.TruncatedValue `json:"truncated,omitempty" doc:"The values that are larger than 64 KiB"`
}

type sentOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     sent
}

type messagesInput struct {
	SessionPath
	From  int `query:"from" minimum:"0" doc:"The first position"`
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"200"`
	ValueBound
}

type messageList struct {
	Messages []app.MessageRow `json:"messages"`
	Length   int              `json:"length" doc:"How many messages the session has"`
	// Truncated is nil if the answer has all values.
	Truncated []app.TruncatedValue `json:"truncated,omitempty" doc:"The texts and data that are larger than maxValue"`
}

type queueList struct {
	Queue []app.QueuedRow `json:"queue" doc:"The next first"`
}

type unqueueInput struct {
	SessionPath
	Message string `path:"message" maxLength:"400" doc:"The id of the message"`
}

type forkSessionInput struct {
	SessionPath
	Keyed
	Body struct {
		At *int `json:"at,omitempty" minimum:"0" doc:"Begin with this many messages; without it, with all"`
	}
}

func (s *Server) registerSessions() {
	op := func(id, method, path string, scope Scope, summary string) operation {
		return operation{id: id, method: method, path: "/v1/sessions" + path, scope: scope, summary: summary, tags: []string{"sessions"}}
	}
	open := op("openSession", http.MethodPost, "", Start, "Start a session, or find that of a thread")
	open.status = http.StatusCreated
	register(s, open, openSession)
	register(s, op("listSessions", http.MethodGet, "", Read, "List sessions, newest first"), listSessions)
	register(s, op("getSession", http.MethodGet, "/{session}", Read, "Get a session"), getSession)
	register(s, op("setSessionLabels", http.MethodPut, "/{session}/labels", Start, "Set the labels of a session"), setSessionLabels)
	register(s, op("setSessionTitle", http.MethodPut, "/{session}/title", Start, "Set the title of a session"), setSessionTitle)
	register(s, op("sendMessage", http.MethodPost, "/{session}/messages", Start, "Send a message"), sendMessage)
	register(s, op("listMessages", http.MethodGet, "/{session}/messages", Read, "List the messages of the history"), listMessages)
	register(s, op("listQueue", http.MethodGet, "/{session}/queue", Read, "List the messages that no round has taken"), listQueue)
	register(s, op("unqueueMessage", http.MethodDelete, "/{session}/queue/{message}", Start, "Remove a message that no round has taken"), unqueueMessage)
	fork := op("forkSession", http.MethodPost, "/{session}/fork", Start, "Start a session with the first messages of another")
	fork.status = http.StatusCreated
	register(s, fork, forkSession)
	register(s, op("editMessage", http.MethodPost, "/{session}/messages/{position}/edit", Start, "Send another message in the place of one of a person, in a fork of the session"), editMessage)
	register(s, op("regenerateMessage", http.MethodPost, "/{session}/messages/{position}/regenerate", Start, "Send a message of a person again, in a fork of the session"), regenerateMessage)
	register(s, op("getSessionBudget", http.MethodGet, "/{session}/budget", Read, "Get what the rounds of a session may spend together, and have spent"), getSessionBudget)
	register(s, op("increaseSessionBudget", http.MethodPost, "/{session}/budget", Start, "Add to the budget of a session"), increaseSessionBudget)
	register(s, op("deleteSession", http.MethodDelete, "/{session}", Start, "Delete a session with its rounds and forks"), deleteSession)
}

func openSession(c *call, in *openSessionInput) (*created[app.SessionRow], error) {
	f, err := c.flow(in.Body.Flow)
	if err != nil {
		return nil, err
	}
	id, err := c.once("openSession", in.Key, in.Body, func(id string) (string, error) {
		o := weir.SessionOptions{User: c.who.user, Thread: in.Body.Thread}
		if o.Thread == "" {
			// No two callers without a thread share a session.
			o.ID, o.New = id, true
			if _, err := c.app.Store.Session(c, id); err == nil {
				return id, nil // made by the same request before
			}
		}
		x, err := c.app.Session(context.WithoutCancel(c), f.Flow, o)
		if err != nil {
			return "", err
		}
		return x.ID, nil
	})
	if err != nil {
		return nil, err
	}
	row, err := c.sessionRow(id)
	return &created[app.SessionRow]{"/v1/sessions/" + id, row}, err
}

func listSessions(c *call, in *listSessionsInput) (*body[sessionList], error) {
	if in.Cursor != "" {
		if _, err := c.session(in.Cursor); err != nil {
			return nil, invalidRequest("query.cursor", "the cursor is not one of a page of sessions; start with the first page")
		}
	}
	user, err := c.filterUser(in.User)
	if err != nil {
		return nil, err
	}
	f := store.SessionFilter{User: user, Flow: in.Flow, Before: in.Cursor, Limit: in.Limit + 1}
	list, err := c.sessions(in.Label, f)
	if err != nil {
		return nil, err
	}
	out := sessionList{}
	if len(list) > in.Limit {
		list = list[:in.Limit]
		out.Next = list[in.Limit-1].ID
	}
	out.Sessions, err = c.app.SessionRows(c, list)
	return bodyOf(out), err
}

func getSession(c *call, in *SessionPath) (*body[app.SessionRow], error) {
	row, err := c.sessionRow(in.Session)
	return bodyOf(row), err
}

// openOwn opens a session of the caller under the flow that the server offers by its name,
// else under that of its last round.
func (c *call) openOwn(id string) (*weir.Session, error) {
	row, err := c.session(id)
	if err != nil {
		return nil, err
	}
	var f *weir.Flow
	served, err := c.flowOf(row.Flow)
	if err != nil {
		return nil, err
	}
	if served != nil {
		f = served.Flow
	}
	return c.app.Session(context.WithoutCancel(c), f, weir.SessionOptions{ID: id})
}

func sendMessage(c *call, in *sendInput) (*sentOutput, error) {
	m, err := c.sending(in.Session, in.Body.Inputs, in.Body.Model, in.Body.Message)
	if err != nil {
		return nil, err
	}
	m.options.Busy = in.Body.Busy
	return c.sentOnce(m, "send "+in.Session, in.Key, in.Body, in.Wait)
}

// A sending is a message of the caller to a session of theirs.
type sending struct {
	session *weir.Session
	served  *app.ServedFlow // what the server offers by the name of the session's flow, nil without it
	message any             // nil if send takes none
	options weir.SendOptions
	send    func(ctx context.Context, message any, o weir.SendOptions) (*weir.Reply, error)
}

// sending reads a message that Session.Send sends.
func (c *call) sending(session string, inputs json.RawMessage, model string, message json.RawMessage) (*sending, error) {
	x, err := c.openOwn(session)
	if err != nil {
		return nil, err
	}
	m := &sending{session: x, options: weir.SendOptions{By: c.by(), Origin: c.origin("api")}, send: x.Send}
	if message != nil {
		if m.message, err = valueOf("body.message", message); err != nil {
			return nil, err
		}
	}
	if m.options.Inputs, err = objectOf("body.inputs", inputs); err != nil {
		return nil, err
	}
	if m.served, err = c.flowOf(x.Flow); err != nil {
		return nil, err
	}
	ofFlow := ""
	if m.served != nil {
		ofFlow = m.served.Model
	}
	m.options.Model, err = c.modelOr(model, ofFlow)
	return m, err
}

// sentOnce sends a message once, and reports it; see once.
func (c *call) sentOnce(m *sending, route, key string, content any, wait int) (*sentOutput, error) {
	var reply *weir.Reply
	id, err := c.once(route, key, content, func(id string) (string, error) {
		m.options.ID = id
		var err error
		reply, err = c.sendWithFiles(m)
		return id, err
	})
	if err == nil && reply == nil { // sent before
		reply, err = m.session.ReplyTo(context.WithoutCancel(c), weir.ReplyStart{Message: id}, m.options.By)
	}
	if err != nil {
		return nil, err
	}
	return c.sent(reply, wait)
}

// sendWithFiles sends a message with the content of the files that it and the inputs name.
func (c *call) sendWithFiles(m *sending) (*weir.Reply, error) {
	used := &usedFiles{call: c}
	message, err := used.message("body.message", m.message)
	if err != nil {
		return nil, err
	}
	o := m.options
	if m.served != nil {
		if in, _ := session.MessageInput(m.served.Flow); len(used.list) > 0 && in.Type == flow.TypeText {
			return nil, invalidRequest("body.message", "the flow "+m.session.Flow+" takes text alone: its input "+in.Name+" has the type text, and message would take images and files")
		}
		if o.Inputs, err = used.inputs(m.served.Flow, o.Inputs); err != nil {
			return nil, err
		}
	}
	reply, err := m.send(context.WithoutCancel(c), message, o)
	if err != nil {
		return nil, err
	}
	return reply, used.usedBy(reply.Session.ID)
}

// sent reports a message, after at most some seconds.
func (c *call) sent(reply *weir.Reply, wait int) (*sentOutput, error) {
	ctx, cancel := context.WithTimeout(c.whileAllowed(c), time.Duration(wait)*time.Second)
	defer cancel()
	out := sent{Session: reply.Session.ID, Message: reply.Message, Status: "queued", Added: json.RawMessage("[]")}
	state, err := reply.Wait(ctx)
	if wait > 0 {
		if err := c.checkAllowed(); err != nil {
			return nil, err
		}
	}
	out.Run = reply.Run()
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	if err != nil {
		if out.Run != "" {
			row, err := c.run(out.Run)
			if err != nil {
				return nil, err
			}
			out.Status = row.Head.Status.String()
		}
		return &sentOutput{http.StatusAccepted, "/v1/sessions/" + out.Session + "/messages", out}, nil
	}
	report := c.boundReport(app.RunReportOf(state.Result), "/report")
	rows := app.MessageRows(state.Messages)
	out.Report, out.Status, out.Text = &report, report.Status, state.Text
	out.Truncated = append(report.Truncated, c.boundRows(out.Session, "/messages/", rows, defaultMaxValue)...)
	report.Truncated = nil
	if len(out.Text) > defaultMaxValue {
		out.Text = excerpt.Bytes(out.Text, maxExcerpt)
		if i := len(rows) - 1; i >= 0 {
			out.Truncated = append(out.Truncated, app.TruncatedValue{Place: "/text", Size: len(state.Text), Excerpt: out.Text, URL: c.sessionMessageURL(out.Session, rows[i].Position)})
		}
	}
	if out.Added, err = json.Marshal(rows); err != nil {
		return nil, err
	}
	return &sentOutput{http.StatusOK, "/v1/runs/" + out.Run, out}, nil
}

func listMessages(c *call, in *messagesInput) (*body[messageList], error) {
	row, err := c.session(in.Session)
	if err != nil {
		return nil, err
	}
	out := messageList{Messages: []app.MessageRow{}, Length: row.Length}
	if in.From < row.Length {
		list, err := c.app.Store.SessionMessages(c, row.ID, in.From, min(in.From+in.Limit, row.Length))
		if err != nil {
			return nil, err
		}
		out.Messages = app.MessageRows(list)
		out.Truncated = c.boundRows(row.ID, "/messages/", out.Messages, in.MaxValue)
	}
	return bodyOf(out), nil
}

func listQueue(c *call, in *SessionPath) (*body[queueList], error) {
	if _, err := c.session(in.Session); err != nil {
		return nil, err
	}
	list, err := c.app.QueuedMessages(c, in.Session)
	return bodyOf(queueList{app.QueuedRows(list)}), err
}

func unqueueMessage(c *call, in *unqueueInput) (*struct{}, error) {
	if _, err := c.session(in.Session); err != nil {
		return nil, err
	}
	list, err := c.app.QueuedMessages(c, in.Session)
	if err != nil {
		return nil, err
	}
	if !containsMessage(list, in.Message) { // it may be another session's
		return nil, notFound("queued message", in.Message)
	}
	_, err = c.app.Unqueue(context.WithoutCancel(c), in.Message)
	return nil, err
}

func containsMessage(list []session.QueuedMessage, id string) bool {
	for i := range list {
		if list[i].ID == id {
			return true
		}
	}
	return false
}

func forkSession(c *call, in *forkSessionInput) (*created[app.SessionRow], error) {
	row, err := c.session(in.Session)
	if err != nil {
		return nil, err
	}
	at := -1
	if in.Body.At != nil {
		if at = *in.Body.At; at > row.Length {
			return nil, invalidRequest("body.at", "the session has "+itoa(int64(row.Length))+" messages")
		}
	}
	id, err := c.once("forkSession "+in.Session, in.Key, in.Body, func(string) (string, error) {
		return c.app.ForkSession(context.WithoutCancel(c), in.Session, at)
	})
	if err != nil {
		return nil, err
	}
	made, err := c.sessionRow(id)
	return &created[app.SessionRow]{"/v1/sessions/" + id, made}, err
}
