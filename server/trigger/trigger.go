// Package trigger starts runs by schedules, by signed requests of other programs, and by files in folders. Several
// processes on one store share the work: the id of a run follows from its firing, so that a
// firing starts one run, whichever process handles it.
//
// It must not know the HTTP API, nor how a run is started.
package trigger

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // machines without a database of time zones

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Kind is the kind of the documents of triggers.
const Kind = store.TriggerKind

// The kinds of triggers.
const (
	Schedule = "schedule"
	Webhook  = "webhook"
	Files    = "file"
)

// Trigger says when runs of a flow start.
type Trigger struct {
	ID   string `json:"id"`
	User string `json:"user" doc:"For whom the runs start"`
	Name string `json:"name" doc:"What runs name as their origin"`
	Flow string `json:"flow"`
	Kind string `json:"kind" enum:"schedule,webhook,file"`
	// Folder and Pattern belong to a trigger by files.
	Folder  string `json:"folder,omitempty" doc:"The name of the folder in the configuration"`
	Pattern string `json:"pattern,omitempty" doc:"Names of files that count, such as *.pdf; empty is all"`
	// Schedule and Zone belong to a schedule.
	Schedule string `json:"schedule,omitempty" doc:"Minute, hour, day of the month, month, day of the week, as in cron"`
	Zone     string `json:"zone,omitempty" doc:"The time zone, such as Europe/Berlin; empty is UTC"`
	// Missed says what happens with times at which no process was there.
	Missed string `json:"missed,omitempty" enum:"skip,one,all" doc:"Times at which no server ran: start none, one run, or all (at most 100)"`
	// Overlap says what happens if the run before has not ended.
	Overlap string `json:"overlap,omitempty" enum:"allow,skip,queue,cancel" doc:"If the run before has not ended: start another one, none, one when it has ended, or one and cancel that before"`
	// Inputs are those of each run; Payload names the input that gets the body of a request, or the file.
	Inputs  json.RawMessage `json:"inputs"`
	Payload string          `json:"payload,omitempty" doc:"The input that takes the body of the request, or the file"`
	Paused  bool            `json:"paused"`
	Created time.Time       `json:"created"`

	// Queued are the times of a schedule with the overlap queue whose runs have not started,
	// oldest first.
	Queued []time.Time `json:"queued,omitempty" doc:"Times that wait for the end of the run before, at most 100"`

	Next      time.Time `json:"next,omitzero" doc:"The next time of the schedule"`
	LastRun   string    `json:"lastRun" doc:"The run that it has started last"`
	LastFired time.Time `json:"lastFired,omitzero"`
	LastError string    `json:"lastError" doc:"Why the last firing started no run; empty if it did"`

	version int64
}

// Firing is one event that starts a run.
type Firing struct {
	// Run is the id of the run, which follows from the trigger and the event.
	Run string
	// Payload is the body of a request, File a file; nil for others.
	Payload json.RawMessage
	File    *File
}

// Options of a Runner. All but Logger and Clock are required.
type Options struct {
	Store store.DocumentStore
	// Start starts the run of a firing; starting it again must do nothing. Refused says why
	// the firing starts none. An error may pass: the firing is tried again. For a file, one that wraps ErrLater is shown.
	Start func(ctx context.Context, t *Trigger, f Firing) (refused string, err error)
	// Ended reports whether a run has ended, or does not exist.
	Ended func(ctx context.Context, run string) (bool, error)
	// Cancel cancels the run before, for a trigger with the overlap cancel. Cancelling it again,
	// or after it has ended, must do nothing.
	Cancel func(ctx context.Context, t *Trigger, run string) error
	// Folder returns the folder of a trigger by files. The error says why nothing starts at present.
	Folder func(ctx context.Context, t *Trigger) (Folder, error)
	// Key is the secret from which ids of runs and secrets of triggers derive.
	Key    []byte
	Logger *slog.Logger
	Clock  func() time.Time
}

// Runner keeps triggers and fires them. Its methods may be called concurrently.
type Runner struct {
	o Options

	mu      sync.Mutex
	settled map[string]string // by trigger: the digest of its folder when nothing was left to do
}

// New returns a Runner. Run makes it fire schedules.
func New(o Options) *Runner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Runner{o: o}
}

const (
	// interval is how often the store is asked for work.
	interval = time.Second
	// claimTime is how long a process has to fire what it took.
	claimTime = time.Minute
	// grace is how late a time may be before it counts as missed.
	grace = time.Minute
	// maxMissed bounds how many missed times start runs.
	maxMissed = 100
	// replayWindow is how old a request may be, and how far ahead its clock.
	replayWindow = 5 * time.Minute
)

// check returns an *engine.Error for a trigger that cannot be used.
func (t *Trigger) check() error {
	invalid := func(format string, args ...any) error {
		return &engine.Error{Code: engine.CodeInput, Permanent: true, Message: fmt.Sprintf(format, args...)}
	}
	schedule := t.Kind == Schedule
	switch {
	case schedule && t.Payload != "":
		return invalid("payload: a schedule has no request whose body an input could take")
	case !schedule && (t.Schedule != "" || t.Zone != "" || t.Missed != ""):
		return invalid("schedule, zone and missed belong to triggers of the kind schedule")
	case t.Kind == Webhook && t.Overlap == overlapQueue:
		return invalid("overlap: runs by requests cannot be queued")
	case t.Kind != Files && (t.Folder != "" || t.Pattern != ""):
		return invalid("folder and pattern belong to triggers of the kind file")
	case schedule && t.Schedule == "":
		return invalid("schedule: expected minute, hour, day of the month, month and day of the week")
	}
	if t.Kind == Files {
		return t.checkFiles(invalid)
	}
	if schedule {
		if _, err := ParseCron(t.Schedule, t.Zone); err != nil {
			return invalid("%v", err)
		}
	}
	return nil
}

// checkFiles checks what belongs to a trigger by files.
func (t *Trigger) checkFiles(invalid func(format string, args ...any) error) error {
	if _, err := path.Match(t.Pattern, ""); err != nil {
		return invalid("pattern: %q is no pattern of names, such as *.pdf", t.Pattern)
	}
	switch {
	case t.Folder == "":
		return invalid("folder: expected the name of a folder of the configuration")
	case t.Payload == "":
		return invalid("payload: expected the name of the input that takes the file")
	case t.Overlap == overlapSkip || t.Overlap == overlapCancel:
		return invalid("overlap: a trigger by files has allow or queue, so that each file starts a run")
	}
	return nil
}

// Put keeps a trigger, new or changed. store.ErrExists, store.ErrChanged.
func (r *Runner) Put(ctx context.Context, t *Trigger) error {
	if err := t.check(); err != nil {
		return err
	}
	var due time.Time
	if t.Kind == Files && !t.Paused {
		due = r.o.Clock()
	}
	if t.Kind == Schedule {
		c, err := ParseCron(t.Schedule, t.Zone)
		if err != nil {
			return err
		}
		// Times of a pause are not missed.
		if t.Next = c.Next(r.o.Clock()); !t.Paused {
			due = t.Next
		} else {
			t.Queued = nil
		}
	}
	return r.save(ctx, t, due)
}

func (r *Runner) save(ctx context.Context, t *Trigger, due time.Time) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	d, err := r.o.Store.PutDocument(ctx, store.Document{Kind: Kind, ID: t.ID, User: t.User, Version: t.version, Body: body, Due: due})
	t.version = d.Version
	return err
}

// Get returns a trigger. store.ErrNotFound.
func (r *Runner) Get(ctx context.Context, id string) (*Trigger, error) {
	d, err := r.o.Store.Document(ctx, Kind, id)
	if err != nil {
		return nil, err
	}
	return triggerOf(&d)
}

func triggerOf(d *store.Document) (*Trigger, error) {
	t := &Trigger{version: d.Version}
	if err := json.Unmarshal(d.Body, t); err != nil {
		return nil, fmt.Errorf("read trigger %s: %w", d.ID, err)
	}
	return t, nil
}

// List returns the triggers of a user, of all if user is "", by id behind after.
func (r *Runner) List(ctx context.Context, user, after string, limit int) ([]*Trigger, error) {
	list, err := r.o.Store.Documents(ctx, store.DocumentFilter{Kind: Kind, User: user, After: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]*Trigger, 0, len(list))
	for i := range list {
		t, err := triggerOf(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// Delete deletes a trigger. Runs that it has started stay.
func (r *Runner) Delete(ctx context.Context, id string) error {
	if err := r.o.Store.DeleteDocument(ctx, Kind, id, 0); err != nil {
		return err
	}
	return r.deleteRecords(ctx, id)
}

// Run fires schedules and looks into folders until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	for {
		if err := r.Step(ctx); err != nil && ctx.Err() == nil {
			r.o.Logger.WarnContext(ctx, "triggers", "error", err)
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return
		}
	}
}

// Step fires the schedules that are due, and looks into the folders that are.
func (r *Runner) Step(ctx context.Context) error {
	for {
		list, err := r.o.Store.ClaimDocuments(ctx, Kind, claimTime, 8)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			t, err := triggerOf(&list[i])
			switch {
			case err != nil:
			case t.Kind == Files:
				err = r.scanFolder(ctx, t)
			default:
				err = r.fireSchedule(ctx, t)
			}
			if err != nil {
				return err
			}
		}
	}
}

// fireSchedule fires the times of a schedule that are past, as its policy says.
func (r *Runner) fireSchedule(ctx context.Context, t *Trigger) error {
	c, err := ParseCron(t.Schedule, t.Zone)
	if err != nil {
		return err
	}
	now := r.o.Clock()
	var times []time.Time
	next := t.Next
	for ; !next.IsZero() && !next.After(now); next = c.Next(next) {
		if times = append(times, next); len(times) > maxMissed {
			times = times[1:]
		}
	}
	switch last := len(times) - 1; {
	case last < 0 || t.Missed == "all":
	case t.Missed == "one" || now.Sub(times[last]) < grace:
		times = times[last:]
	default:
		times = nil
	}
	due := next
	if t.Overlap == overlapQueue {
		due, err = r.fireQueued(ctx, t, times, next)
	} else {
		err = r.fireAll(ctx, t, times)
	}
	if err != nil {
		return err // the claim ends, and the firing is tried again
	}
	t.Next = next
	if err := r.save(ctx, t, due); err != nil && !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil // a change meanwhile says itself when the trigger is due
}

// fire starts the run of a firing and notes on the trigger what became of it.
func (r *Runner) fire(ctx context.Context, t *Trigger, f Firing) error {
	refused, err := r.start(ctx, t, f)
	if err != nil {
		return err
	}
	t.LastFired, t.LastError = r.o.Clock().UTC().Truncate(time.Second), refused
	if refused == "" {
		t.LastRun = f.Run
	}
	return nil
}

func (r *Runner) start(ctx context.Context, t *Trigger, f Firing) (refused string, err error) {
	if (t.Overlap == overlapSkip || t.Overlap == overlapCancel) && t.LastRun != "" && t.LastRun != f.Run {
		ended, err := r.o.Ended(ctx, t.LastRun)
		if err != nil {
			return "", err
		}
		if !ended && t.Overlap == overlapSkip {
			return fmt.Sprintf("skipped: run %s has not ended", t.LastRun), nil
		}
		if !ended {
			if err := r.o.Cancel(ctx, t, t.LastRun); err != nil {
				return "", err
			}
		}
	}
	return r.o.Start(ctx, t, f)
}

// runID returns the id of the run of a firing.
func (r *Runner) runID(t *Trigger, event string) string {
	m := hmac.New(sha256.New, r.o.Key)
	m.Write([]byte("firing " + t.ID + " " + event))
	return "t" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(m.Sum(nil)[:15]))
}

// Secret returns the secret with which requests to a webhook are signed, in the form of
// Standard Webhooks. It derives from the key and is not kept.
func (r *Runner) Secret(t *Trigger) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(r.secret(t))
}

func (r *Runner) secret(t *Trigger) []byte {
	m := hmac.New(sha256.New, r.o.Key)
	m.Write([]byte("trigger " + t.ID))
	return m.Sum(nil)
}

// Request is a request of another program.
type Request struct {
	ID, Timestamp, Signature string // the headers webhook-id, webhook-timestamp, webhook-signature
	Body                     []byte
}

// ErrRequest: the request is not signed by the trigger's secret, or is too old, or there is no
// such trigger.
var ErrRequest = errors.New("the request is not signed with the secret of a trigger, or its time is not within five minutes of now")

// Receive fires a trigger by a request and returns the run. The same request again returns
// the same run and starts nothing. ErrRequest.
func (r *Runner) Receive(ctx context.Context, id string, q Request) (run string, err error) {
	t, err := r.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && (t.Kind != Webhook || !r.signed(t, &q)) {
		return "", ErrRequest
	}
	if err != nil {
		return "", err
	}
	if t.Paused {
		return "", &engine.Error{Code: engine.CodeFlowPaused, Permanent: true, Message: "the trigger is paused"}
	}
	f := Firing{Run: r.runID(t, q.ID), Payload: q.Body}
	if err := r.fire(ctx, t, f); err != nil {
		return "", err
	}
	// What was started last is a note; that of a request at the same time is as good.
	if err := r.save(ctx, t, time.Time{}); err != nil && !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	if t.LastError != "" {
		return "", &engine.Error{Code: engine.CodeInput, Permanent: true, Message: "the request starts no run: " + t.LastError}
	}
	return f.Run, nil
}

// signed reports whether a request is signed and new.
func (r *Runner) signed(t *Trigger, q *Request) bool {
	seconds, err := strconv.ParseInt(q.Timestamp, 10, 64)
	if err != nil || q.ID == "" || len(q.ID) > 200 {
		return false
	}
	if age := r.o.Clock().Sub(time.Unix(seconds, 0)); age > replayWindow || age < -replayWindow {
		return false
	}
	m := hmac.New(sha256.New, r.secret(t))
	m.Write([]byte(q.ID + "." + q.Timestamp + "."))
	m.Write(q.Body)
	want := []byte("v1," + base64.StdEncoding.EncodeToString(m.Sum(nil)))
	return slices.ContainsFunc(strings.Fields(q.Signature), func(s string) bool { return hmac.Equal([]byte(s), want) })
}
