package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// linkKind is the kind of documents of answer links, by the SHA-256 digest of the secret in
// the link. The secret itself is not kept.
const linkKind = "link"

const (
	defaultLinkTime = 7 * 24 * time.Hour
	// maxLinkTries is how many answers that do not fit a link takes.
	maxLinkTries = 20
)

// answerLink is what is kept of an answer link.
type answerLink struct {
	Interrupt string    `json:"interrupt"`
	Question  string    `json:"question"` // digest of the question as it was asked
	Expires   time.Time `json:"expires"`
	Used      bool      `json:"used"`
	Tries     int       `json:"tries"`
	// By is who made the link.
	By string `json:"by,omitempty"`
}

type createLinkInput struct {
	RunPath
	Body struct {
		Interrupt string `json:"interrupt" minLength:"1" doc:"The id of the question, from the member interrupts of the run"`
		Expires   int    `json:"expires,omitempty" minimum:"60" maximum:"2592000" doc:"Seconds until the link expires; without it 7 days"`
	}
}

type createdLink struct {
	Path    string    `json:"path" doc:"The path of the link on this server. It is not shown again."`
	URL     string    `json:"url" doc:"The whole link, if the server knows its public address; else empty"`
	Expires time.Time `json:"expires"`
}

func (s *Server) registerLinks() {
	register(s, operation{
		id: "createAnswerLink", method: http.MethodPost, path: "/v1/runs/{run}/links", scope: Answer, status: http.StatusCreated, tags: []string{"runs"},
		summary: "Make a link with which a person without a token answers one question",
		description: "The link shows the question and a form. It is valid once, until it expires, and for the question as it is asked now: an answer that comes in " +
			"another way, a retry of the node and the deletion of the run make it invalid.",
	}, createLink)
	s.routes.handle("GET /a/{token}", Public, s.linkPage)
	s.routes.handle("POST /a/{token}", Public, s.answerLinkForm)
	s.routes.forms["POST /a/{token}"] = true
}

func linkID(secret string) string {
	h := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(h[:])
}

// openQuestion returns a question that a run waits for, and a digest of it and of the attempt
// that asks.
func (s *Server) openQuestion(ctx context.Context, run, interrupt string) (i engine.Interrupt, digest string, err error) {
	v, err := s.app.Inspect(ctx, run, 0)
	if err != nil {
		return i, "", err
	}
	i, path, ok := v.Run.Interrupt(interrupt)
	if !ok || i.Kind != engine.AwaitInput && i.Kind != engine.AwaitApproval {
		return i, "", &engine.Error{Code: engine.CodeInterruptUnknown, Message: "run " + run + " does not wait for an answer to " + interrupt}
	}
	attempt := 0
	for _, n := range v.Run.Nodes() {
		if n.Path == path {
			attempt = n.Attempt
		}
	}
	text, err := json.Marshal([]any{i.ID, i.Kind, i.Prompt, i.Schema, path, attempt})
	return i, linkID(string(text)), err
}

func createLink(c *call, in *createLinkInput) (*created[createdLink], error) {
	row, err := c.run(in.Run)
	if err != nil {
		return nil, err
	}
	_, question, err := c.openQuestion(c, in.Run, in.Body.Interrupt)
	if err != nil {
		return nil, err
	}
	life := defaultLinkTime
	if in.Body.Expires > 0 {
		life = time.Duration(in.Body.Expires) * time.Second
	}
	secret := strings.ToLower(rand.Text() + rand.Text())
	l := answerLink{Interrupt: in.Body.Interrupt, Question: question, Expires: time.Now().Add(life).UTC().Truncate(time.Second), By: c.who.user}
	data, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	// Due has expired links deleted.
	d := store.Document{Kind: linkKind, ID: linkID(secret), User: row.User, Run: in.Run, Body: data, Due: l.Expires}
	if _, err := c.app.Store.PutDocument(context.WithoutCancel(c), d); err != nil {
		return nil, err
	}
	path := "/a/" + secret
	out := createdLink{Path: c.options.BasePath + path, Expires: l.Expires}
	if c.options.PublicURL != "" {
		out.URL = c.options.PublicURL + path
	}
	return &created[createdLink]{Body: out}, nil
}

// openLink is a link that can be used, with its question.
type openLink struct {
	answerLink
	document store.Document
	question engine.Interrupt
}

// errLink: nothing can be answered with the link. The reason is not disclosed to a client
// without a valid link.
var errLink = errors.New("link")

// link returns the link of a request if its question is open.
func (s *Server) link(ctx context.Context, secret string) (*openLink, error) {
	d, err := s.app.Store.Document(ctx, linkKind, linkID(secret))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnsupported) {
		return nil, errLink
	}
	if err != nil {
		return nil, err
	}
	l := &openLink{document: d}
	if err := json.Unmarshal(d.Body, &l.answerLink); err != nil {
		return nil, err
	}
	if l.Used || l.Tries >= maxLinkTries || !time.Now().Before(l.Expires) {
		return nil, errLink
	}
	for _, user := range []string{d.User, l.By} { // whose run it is, and who gave the link away
		_, disabled, err := s.roleOf(ctx, user)
		if err != nil {
			return nil, err
		}
		if disabled {
			return nil, errLink
		}
	}
	var question string
	l.question, question, err = s.openQuestion(ctx, d.Run, l.Interrupt)
	if app.ErrorCode(err) == engine.CodeInterruptUnknown || errors.Is(err, store.ErrNotFound) || err == nil && question != l.Question {
		return nil, errLink
	}
	return l, err
}

// save keeps a change of the link.
func (s *Server) saveLink(ctx context.Context, l *openLink) error {
	data, err := json.Marshal(l.answerLink)
	if err != nil {
		return err
	}
	l.document.Body = data
	l.document, err = s.app.Store.PutDocument(ctx, l.document)
	return err
}

func (s *Server) linkPage(w http.ResponseWriter, r *http.Request) {
	l, ok := s.linkOf(w, r)
	if ok {
		writePage(w, http.StatusOK, questionPage(l.question, ""))
	}
}

// linkOf returns the link of a request, or answers it.
func (s *Server) linkOf(w http.ResponseWriter, r *http.Request) (*openLink, bool) {
	l, err := s.link(r.Context(), r.PathValue("token"))
	switch {
	case errors.Is(err, errLink):
		if wait := s.linkRate.take(s.clientAddress(r), time.Now()); wait > 0 { // only refused requests count
			tooMany(w, wait)
			return nil, false
		}
		writePage(w, http.StatusGone, messagePage("This link cannot be used", "It was used, it has expired, or the question was answered in another way."))
	case err != nil:
		s.logger.ErrorContext(r.Context(), "answer link", "error", err)
		writePage(w, http.StatusServiceUnavailable, messagePage("Not available", "Please try again in a moment."))
	}
	return l, err == nil
}

func (s *Server) answerLinkForm(w http.ResponseWriter, r *http.Request) {
	l, ok := s.linkOf(w, r)
	if !ok {
		return
	}
	if err := r.ParseForm(); err != nil {
		writePage(w, http.StatusBadRequest, questionPage(l.question, "The form could not be read."))
		return
	}
	ctx := context.WithoutCancel(r.Context())
	v, err := app.AnswerOf(l.question, r.PostForm.Get("value"), r.PostForm.Get("reason"))
	if err == nil {
		_, err = s.app.Answer(ctx, l.document.Run, l.Interrupt, v, "link")
	}
	switch code := app.ErrorCode(err); {
	case err == nil:
		l.Used = true
	case code == engine.CodeInterruptUnknown:
		writePage(w, http.StatusGone, messagePage("This link cannot be used", "The question was answered in another way."))
		return
	case errors.Is(err, store.ErrOwned), errors.Is(err, store.ErrClosed), StatusOf(code) >= http.StatusInternalServerError && code != engine.CodeFailed:
		s.logger.ErrorContext(ctx, "answer by link", "error", err)
		writePage(w, http.StatusServiceUnavailable, messagePage("Not available", "Your answer was not taken. Please try again in a moment."))
		return
	default:
		l.Tries++
	}
	if saved := s.saveLink(ctx, l); saved != nil && !errors.Is(saved, store.ErrChanged) && !errors.Is(saved, store.ErrNotFound) {
		s.logger.ErrorContext(ctx, "keep answer link", "error", saved)
	}
	if err != nil {
		writePage(w, http.StatusUnprocessableEntity, questionPage(l.question, app.Printable(err.Error())))
		return
	}
	writePage(w, http.StatusOK, messagePage("Thank you", "Your answer was recorded. You can close this page."))
}
