package server

import (
	"context"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

type sessionLabelsInput struct {
	SessionPath
	Body struct {
		Labels []string `json:"labels" nullable:"false" maxItems:"20" doc:"All labels of the session: lower case letters, digits, dots, hyphens and underscores, at most 64"`
	}
}

type sessionTitleInput struct {
	SessionPath
	Body struct {
		Title string `json:"title" maxLength:"200" doc:"One line of at most 200 bytes; empty removes the title"`
	}
}

// sessionRow reports a session of the caller.
func (c *call) sessionRow(id string) (app.SessionRow, error) {
	row, err := c.session(id)
	if err != nil {
		return app.SessionRow{}, err
	}
	return c.app.SessionRow(c, &row)
}

// sessions lists sessions; those with a label, if it is not "".
func (c *call) sessions(label string, f store.SessionFilter) ([]store.Session, error) {
	if label == "" {
		return c.app.Sessions(c, f)
	}
	return c.app.LabelledSessions(c, label, f)
}

func setSessionLabels(c *call, in *sessionLabelsInput) (*body[app.SessionRow], error) {
	row, err := c.session(in.Session)
	if err != nil {
		return nil, err
	}
	if err := c.app.LabelSession(context.WithoutCancel(c), row.ID, in.Body.Labels, c.by()); err != nil {
		return nil, err
	}
	named, err := c.app.SessionRow(c, &row)
	return bodyOf(named), err
}

func setSessionTitle(c *call, in *sessionTitleInput) (*body[app.SessionRow], error) {
	row, err := c.session(in.Session)
	if err != nil {
		return nil, err
	}
	if err := c.app.RenameSession(context.WithoutCancel(c), row.ID, in.Body.Title, c.by()); err != nil {
		return nil, err
	}
	named, err := c.app.SessionRow(c, &row)
	return bodyOf(named), err
}
