package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/server/trigger"
	"github.com/weir-run/weir/store"
)

type createTriggerInput struct {
	Body struct {
		Name     string          `json:"name" minLength:"1" maxLength:"100" doc:"What the runs name as their origin: schedule:NAME, webhook:NAME or file:NAME/FILE"`
		Flow     string          `json:"flow" minLength:"1" doc:"The name of a flow of the server"`
		Kind     string          `json:"kind" enum:"schedule,webhook,file"`
		Folder   string          `json:"folder,omitempty" maxLength:"100" doc:"For files: the name of a folder of the configuration of the server"`
		Pattern  string          `json:"pattern,omitempty" maxLength:"200" doc:"For files: names that count, such as *.pdf; without it all"`
		Schedule string          `json:"schedule,omitempty" maxLength:"200" doc:"Minute, hour, day of the month, month, day of the week, as in cron; or @hourly, @daily, @weekly, @monthly"`
		Zone     string          `json:"zone,omitempty" maxLength:"100" doc:"The time zone, such as Europe/Berlin; without it UTC"`
		Missed   string          `json:"missed,omitempty" enum:"skip,one,all" doc:"Times at which no server ran: start none (skip, the default), one run, or all (at most 100)"`
		Overlap  string          `json:"overlap,omitempty" enum:"allow,skip,queue,cancel" doc:"If the run before has not ended: start another one (allow, the default), none, one when it has ended (queue, for a schedule or files), or one and cancel that before"`
		Inputs   json.RawMessage `json:"inputs,omitempty" doc:"An object of inputs of each run"`
		Payload  string          `json:"payload,omitempty" maxLength:"200" doc:"The input that takes the body of the request of a webhook, or the file"`
	}
}

// TriggerPath names a trigger.
type TriggerPath struct {
	Trigger string `path:"trigger" maxLength:"100" doc:"The id of the trigger"`
}

type pauseTriggerInput struct {
	TriggerPath
	Body struct {
		Paused bool `json:"paused"`
	}
}

type createdTrigger struct {
	*trigger.Trigger
	Path   string `json:"path,omitempty" doc:"For a webhook: where requests go"`
	Secret string `json:"secret,omitempty" doc:"For a webhook: signs requests, as Standard Webhooks describe. It is not shown again."`
}

type listTriggersInput struct {
	Cursor string `query:"cursor" maxLength:"100" doc:"The member next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type triggerList struct {
	Triggers []*trigger.Trigger `json:"triggers"`
	Next     string             `json:"next" doc:"The cursor of the next page; empty on the last one"`
}

func (s *Server) registerTriggers() {
	op := func(id, method, path string, scope Scope, summary string) operation {
		return operation{id: id, method: method, path: "/v1/triggers" + path, scope: scope, summary: summary, tags: []string{"triggers"}}
	}
	create := op("createTrigger", http.MethodPost, "", Start, "Have runs started by a schedule, or by signed requests")
	create.status = http.StatusCreated
	register(s, create, createTrigger)
	register(s, op("listTriggers", http.MethodGet, "", Read, "List triggers"), listTriggers)
	register(s, op("getTrigger", http.MethodGet, "/{trigger}", Read, "Get a trigger"), getTrigger)
	register(s, op("listTriggerFiles", http.MethodGet, "/{trigger}/files", Read, "List the files that a trigger has seen in its folder"), listTriggerFiles)
	register(s, op("deleteTrigger", http.MethodDelete, "/{trigger}", Start, "Delete a trigger; its runs stay"), deleteTrigger)
	register(s, op("pauseTrigger", http.MethodPost, "/{trigger}/pause", Start, "Pause a trigger, or end its pause; times of the pause are not made up for, files are"), pauseTrigger)
	s.routes.handle("POST /t/{trigger}", Public, s.receiveTrigger)
}

// trigger returns a trigger of the caller.
func (c *call) trigger(id string) (*trigger.Trigger, error) {
	t, err := c.triggers.Get(c, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !c.who.owns(t.User) {
		return nil, notFound("trigger", id)
	}
	return t, err
}

func createTrigger(c *call, in *createTriggerInput) (*created[createdTrigger], error) {
	b := &in.Body
	if _, err := c.flow(b.Flow); err != nil {
		return nil, err
	}
	if err := runner.CheckOrigin(b.Kind + ":" + b.Name); err != nil {
		return nil, invalidRequest("body.name", err.Error())
	}
	if _, err := objectOf("body.inputs", b.Inputs); err != nil {
		return nil, err
	}
	t := &trigger.Trigger{
		Folder: b.Folder, Pattern: b.Pattern,
		ID: runner.NewID(), User: c.who.user, Name: b.Name, Flow: b.Flow, Kind: b.Kind, Schedule: b.Schedule, Zone: b.Zone, Missed: b.Missed, Overlap: b.Overlap,
		Inputs: b.Inputs, Payload: b.Payload, Created: time.Now().UTC().Truncate(time.Second),
	}
	if t.Inputs == nil {
		t.Inputs = json.RawMessage("{}")
	}
	if t.Folder != "" {
		if _, err := c.folderOf(c, t); err != nil {
			return nil, invalidRequest("body.folder", err.Error())
		}
	}
	if err := c.make(store.TriggerKind, func() error { return c.triggers.Put(context.WithoutCancel(c), t) }); err != nil {
		return nil, err
	}
	out := createdTrigger{Trigger: t}
	if t.Kind == trigger.Webhook {
		out.Path, out.Secret = c.options.BasePath+"/t/"+t.ID, c.triggers.Secret(t)
	}
	return &created[createdTrigger]{"/v1/triggers/" + t.ID, out}, nil
}

func listTriggers(c *call, in *listTriggersInput) (*body[triggerList], error) {
	user := c.who.user
	if c.who.all {
		user = ""
	}
	list, err := c.triggers.List(c, user, in.Cursor, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := triggerList{Triggers: []*trigger.Trigger{}}
	for i, t := range list {
		if i == in.Limit {
			out.Next = list[i-1].ID
			break
		}
		if c.who.owns(t.User) {
			out.Triggers = append(out.Triggers, t)
		}
	}
	return bodyOf(out), nil
}

func getTrigger(c *call, in *TriggerPath) (*body[*trigger.Trigger], error) {
	t, err := c.trigger(in.Trigger)
	return bodyOf(t), err
}

func deleteTrigger(c *call, in *TriggerPath) (*struct{}, error) {
	t, err := c.trigger(in.Trigger)
	if err != nil {
		return nil, err
	}
	return nil, c.triggers.Delete(context.WithoutCancel(c), t.ID)
}

func pauseTrigger(c *call, in *pauseTriggerInput) (*body[*trigger.Trigger], error) {
	t, err := c.trigger(in.Trigger)
	if err != nil {
		return nil, err
	}
	t.Paused = in.Body.Paused
	err = c.triggers.Put(context.WithoutCancel(c), t)
	if errors.Is(err, store.ErrChanged) {
		return nil, newProblem(http.StatusConflict, engine.CodeFlowChanged, "the trigger fired or was changed meanwhile; send the request again")
	}
	return bodyOf(t), err
}

// startTriggered starts the run of a firing for the user of the trigger. Refused says why that
// user can not start it; err is a failure that may pass.
func (s *Server) startTriggered(ctx context.Context, t *trigger.Trigger, f trigger.Firing) (refused string, err error) {
	if _, err := s.app.Store.Run(ctx, f.Run); !errors.Is(err, store.ErrNotFound) {
		return "", err // the firing has its run
	}
	role, disabled, err := s.roleOf(ctx, t.User)
	if err != nil {
		return "", err
	}
	if disabled || !role.allows(Start) {
		return refusedFor(t, "the user of the trigger is deactivated, or may not start runs")
	}
	c := &call{ctx, s, principal{user: t.User, all: t.User == ""}}
	start := weir.Start{ID: f.Run, User: t.User, Origin: t.Kind + ":" + t.Name}
	if f.File != nil {
		start.Origin += "/" + f.File.Name
	}
	served, err := c.flow(t.Flow)
	if err == nil {
		start.Inputs, err = objectOf("inputs", t.Inputs)
	}
	if err == nil && t.Payload != "" {
		if start.Inputs == nil {
			start.Inputs = map[string]any{}
		}
		if f.File != nil {
			start.Inputs[t.Payload], err = fileInput(served.Flow, t.Payload, f.File)
		} else {
			start.Inputs[t.Payload], err = valueOf("payload", f.Payload)
		}
	}
	if err == nil {
		start.Model, err = s.modelOr("", served.Model)
	}
	if err == nil {
		_, err = s.app.Start(context.WithoutCancel(ctx), served.Flow, start)
	}
	if err == nil || errors.Is(err, store.ErrExists) {
		return "", nil
	}
	if p := problemOf(err); p.Code == engine.CodeFlowPaused {
		return refusedFor(t, p.Detail)
	} else if p.Status < http.StatusInternalServerError {
		return p.Detail, nil
	}
	return "", err
}

// cancelTriggered cancels the run before of a trigger.
func (s *Server) cancelTriggered(ctx context.Context, t *trigger.Trigger, run string) error {
	_, err := s.app.Cancel(context.WithoutCancel(ctx), run, t.User, "the next run of the trigger "+t.Name+" starts")
	if err != nil {
		if ended, unread := s.hasEnded(ctx, run); unread == nil && ended {
			return nil
		}
	}
	return err
}

// hasEnded reports whether a run has ended, or does not exist.
func (s *Server) hasEnded(ctx context.Context, run string) (bool, error) {
	r, err := s.app.Store.Run(ctx, run)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return r.Head.Status.Ended(), err
}

// receiveTrigger starts a run by a signed request of another program.
func (s *Server) receiveTrigger(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		newProblem(http.StatusRequestEntityTooLarge, engine.CodeRequestTooLarge, "the body of the request is too large, or was not received").write(w)
		return
	}
	h := r.Header
	run, err := s.triggers.Receive(r.Context(), r.PathValue("trigger"), trigger.Request{
		ID: h.Get("Webhook-Id"), Timestamp: h.Get("Webhook-Timestamp"), Signature: h.Get("Webhook-Signature"), Body: text,
	})
	switch {
	case errors.Is(err, trigger.ErrRequest), errors.Is(err, store.ErrUnsupported):
		if wait := s.linkRate.take("t "+s.clientAddress(r), time.Now()); wait > 0 { // only refused requests count
			tooMany(w, wait)
			return
		}
		newProblem(http.StatusUnauthorized, engine.CodeUnauthenticated, trigger.ErrRequest.Error()).write(w)
	case err != nil:
		p := problemOf(err)
		p.Detail = app.Printable(p.Detail)
		p.write(w)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(map[string]string{"run": run}) // the client has gone if it fails
	}
}
