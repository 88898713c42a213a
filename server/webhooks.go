package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/server/webhook"
	"github.com/weir-run/weir/store"
)

type createWebhookInput struct {
	Body struct {
		URL    string   `json:"url" maxLength:"2000" doc:"Where deliveries go. Private addresses are refused unless the configuration of the server allows them."`
		Events []string `json:"events" minItems:"1" maxItems:"10" doc:"run.completed, run.failed, run.cancelled, run.waiting, budget.near"`
		Flow   string   `json:"flow,omitempty" doc:"Only runs of the flow with this name"`
		All    bool     `json:"all,omitempty" doc:"Runs of all users; needs the scope admin"`
	}
}

// WebhookPath names a webhook.
type WebhookPath struct {
	Webhook string `path:"webhook" maxLength:"100" doc:"The id of the webhook"`
}

type webhookSecret struct {
	*webhook.Hook
	Secret string `json:"secret" doc:"Verifies deliveries, as Standard Webhooks describe. It is not shown again."`
}

type webhookList struct {
	Webhooks []*webhook.Hook `json:"webhooks"`
}

type pauseWebhookInput struct {
	WebhookPath
	Body struct {
		Paused bool `json:"paused"`
	}
}

type deliveriesInput struct {
	WebhookPath
	Cursor string `query:"cursor" maxLength:"100" doc:"The member next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type deliveryList struct {
	Deliveries []*webhook.Delivery `json:"deliveries" doc:"Those of older runs first"`
	Next       string              `json:"next" doc:"The cursor of the next page; empty on the last one"`
}

type deliveryPath struct {
	WebhookPath
	Delivery string `path:"delivery" maxLength:"100" doc:"The id of the delivery"`
}

func (s *Server) registerWebhooks() {
	op := func(id, method, path string, scope Scope, summary string) operation {
		return operation{id: id, method: method, path: "/v1/webhooks" + path, scope: scope, summary: summary, tags: []string{"webhooks"}}
	}
	create := op("createWebhook", http.MethodPost, "", Start, "Have events of runs sent to an address")
	create.status = http.StatusCreated
	register(s, create, createWebhook)
	register(s, op("listWebhooks", http.MethodGet, "", Read, "List webhooks"), listWebhooks)
	register(s, op("getWebhook", http.MethodGet, "/{webhook}", Read, "Get a webhook"), getWebhook)
	register(s, op("deleteWebhook", http.MethodDelete, "/{webhook}", Start, "Delete a webhook with its deliveries"), deleteWebhook)
	register(s, op("pauseWebhook", http.MethodPost, "/{webhook}/pause", Start, "Hold the deliveries of a webhook back, or send them again"), pauseWebhook)
	register(s, op("rotateWebhook", http.MethodPost, "/{webhook}/rotate", Start, "Give a webhook another secret; for a day deliveries are signed with both"), rotateWebhook)
	register(s, op("listDeliveries", http.MethodGet, "/{webhook}/deliveries", Read, "List deliveries with their tries"), listDeliveries)
	register(s, op("resendDelivery", http.MethodPost, "/{webhook}/deliveries/{delivery}/resend", Start, "Send a delivery once more"), resendDelivery)
}

// webhook returns a webhook of the caller.
func (c *call) webhook(id string) (*webhook.Hook, error) {
	h, err := c.hooks.Hook(c, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !c.who.owns(h.User) {
		return nil, notFound("webhook", id)
	}
	return h, err
}

func createWebhook(c *call, in *createWebhookInput) (*created[webhookSecret], error) {
	if in.Body.All && !c.who.all {
		return nil, newProblem(http.StatusForbidden, engine.CodeForbidden, "only a token with the scope admin can have events of all users sent")
	}
	h := &webhook.Hook{
		ID: runner.NewID(), User: c.who.user, URL: in.Body.URL, Events: in.Body.Events, Flow: in.Body.Flow, All: in.Body.All,
		Created: time.Now().UTC().Truncate(time.Second),
	}
	if err := c.make(store.NoticeKind, func() error { return c.hooks.Put(context.WithoutCancel(c), h) }); err != nil {
		return nil, err
	}
	return &created[webhookSecret]{"/v1/webhooks/" + h.ID, webhookSecret{h, c.hooks.Secret(h)}}, nil
}

func listWebhooks(c *call, _ *struct{}) (*body[webhookList], error) {
	list, err := c.hooks.Hooks(c, "")
	out := webhookList{Webhooks: []*webhook.Hook{}}
	for _, h := range list {
		if c.who.owns(h.User) {
			out.Webhooks = append(out.Webhooks, h)
		}
	}
	return bodyOf(out), err
}

func getWebhook(c *call, in *WebhookPath) (*body[*webhook.Hook], error) {
	h, err := c.webhook(in.Webhook)
	return bodyOf(h), err
}

func deleteWebhook(c *call, in *WebhookPath) (*struct{}, error) {
	h, err := c.webhook(in.Webhook)
	if err != nil {
		return nil, err
	}
	return nil, c.hooks.Delete(context.WithoutCancel(c), h)
}

func pauseWebhook(c *call, in *pauseWebhookInput) (*body[*webhook.Hook], error) {
	h, err := c.webhook(in.Webhook)
	if err != nil {
		return nil, err
	}
	h.Paused = in.Body.Paused
	return bodyOf(h), changedHook(c.hooks.Put(context.WithoutCancel(c), h))
}

func rotateWebhook(c *call, in *WebhookPath) (*body[webhookSecret], error) {
	h, err := c.webhook(in.Webhook)
	if err != nil {
		return nil, err
	}
	if err := c.hooks.Rotate(context.WithoutCancel(c), h); err != nil {
		return nil, changedHook(err)
	}
	return bodyOf(webhookSecret{h, c.hooks.Secret(h)}), nil
}

// changedHook: two requests changed the webhook at the same time.
func changedHook(err error) error {
	if errors.Is(err, store.ErrChanged) {
		return newProblem(http.StatusConflict, engine.CodeFlowChanged, "the webhook was changed by another request meanwhile")
	}
	return err
}

func listDeliveries(c *call, in *deliveriesInput) (*body[deliveryList], error) {
	h, err := c.webhook(in.Webhook)
	if err != nil {
		return nil, err
	}
	list, err := c.hooks.Deliveries(c, h.ID, in.Cursor, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := deliveryList{Deliveries: list}
	if len(list) > in.Limit {
		out.Deliveries = list[:in.Limit]
		out.Next = list[in.Limit-1].ID
	}
	return bodyOf(out), nil
}

func resendDelivery(c *call, in *deliveryPath) (*body[*webhook.Delivery], error) {
	h, err := c.webhook(in.Webhook)
	if err != nil {
		return nil, err
	}
	d, err := c.hooks.Resend(context.WithoutCancel(c), h.ID, in.Delivery)
	if errors.Is(err, store.ErrNotFound) {
		return nil, notFound("delivery", in.Delivery)
	}
	return bodyOf(d), changedHook(err)
}
