package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// The kinds of documents of deployed flows.
const (
	deployedKind = store.FlowKind        // by name, deleted with its owner
	versionKind  = store.FlowVersionKind // by fingerprint; it stays, so that runs stay limited
	textKind     = store.FlowTextKind    // by name/fingerprint, deleted with the owner
)

// maxVersions is how many versions of a deployed flow are kept.
const maxVersions = 100

// FlowVersion is a version of a deployed flow.
type FlowVersion struct {
	Fingerprint string    `json:"fingerprint"`
	By          string    `json:"by" doc:"Who put it"`
	At          time.Time `json:"at"`
	Note        string    `json:"note" doc:"What the sender said of it"`
}

// DeployedFlow is a flow that a client has put into the store of a server.
type DeployedFlow struct {
	Name string `json:"name"`
	// Owner is the user who may change it.
	Owner string `json:"owner"`
	// Promoted is the fingerprint of the version that new runs and rounds take, "" for none.
	Promoted string `json:"promoted"`
	// Paused: nothing new starts.
	Paused bool `json:"paused"`
	// Access lists the users who may use it besides the owner; "*" is everyone.
	Access []string `json:"access"`
	// Grants is what its runs may use outside.
	Grants runner.Grants `json:"grants"`
	// Versions are the newest first.
	Versions []FlowVersion `json:"versions"`
	// Promotions are the newest first.
	Promotions []Promotion `json:"promotions" doc:"Which version was promoted when, the newest first"`
	// Revision grows with each change.
	Revision int64 `json:"-"`
}

// Promotion says since when new runs take a version.
type Promotion struct {
	Fingerprint string    `json:"fingerprint"`
	By          string    `json:"by" doc:"Who promoted it"`
	At          time.Time `json:"at"`
}

// Deployed are the flows that clients have put into a store. Its methods may be called
// concurrently, in any number of processes.
type Deployed struct {
	store     store.DocumentStore
	providers []string // that are configured
	// opened is closed when weir is set; it stays nil if the process could not be opened.
	opened chan struct{}
	weir   *weir.Weir

	mu    sync.Mutex
	flows map[string]*weir.Flow // by fingerprint
}

// NewFlowVersion is what Put adds.
type NewFlowVersion struct {
	Name, By, Note, Text string
	// Revision is that of the flow as the caller has read it, 0 for a new flow.
	Revision int64
	// Promote has new runs take the version.
	Promote bool
	// Flow is the parsed text.
	Flow *weir.Flow
}

// Get returns a deployed flow. store.ErrNotFound.
func (d *Deployed) Get(ctx context.Context, name string) (*DeployedFlow, error) {
	if d == nil { // the App was not opened by Open, so that nothing would apply grants
		return nil, &store.Unsupported{Capability: "documents"}
	}
	doc, err := d.store.Document(ctx, deployedKind, name)
	if err != nil {
		return nil, err
	}
	return deployedOf(&doc)
}

func deployedOf(doc *store.Document) (*DeployedFlow, error) {
	f := &DeployedFlow{Name: doc.ID, Revision: doc.Version, Promotions: []Promotion{}}
	if err := json.Unmarshal(doc.Body, f); err != nil {
		return nil, fmt.Errorf("read flow %s: %w", doc.ID, err)
	}
	f.Owner = doc.User
	return f, nil
}

// List returns the deployed flows by name, at most limit behind the name after.
func (d *Deployed) List(ctx context.Context, after string, limit int) ([]*DeployedFlow, error) {
	if d == nil {
		return nil, &store.Unsupported{Capability: "documents"}
	}
	docs, err := d.store.Documents(ctx, store.DocumentFilter{Kind: deployedKind, After: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]*DeployedFlow, 0, len(docs))
	for i := range docs {
		f, err := deployedOf(&docs[i])
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// Put adds a version to a flow, which is made if it is new: its owner is who puts it first.
// The flow may use only what is granted to it. store.ErrExists, store.ErrChanged.
func (d *Deployed) Put(ctx context.Context, n NewFlowVersion) (*DeployedFlow, error) {
	f := &DeployedFlow{Name: n.Name, Owner: n.By, Access: []string{}, Promotions: []Promotion{}}
	if n.Revision > 0 {
		have, err := d.Get(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		if have.Revision != n.Revision {
			return nil, fmt.Errorf("flow %s: %w", n.Name, store.ErrChanged)
		}
		f = have
	}
	if err := d.check(n.Flow, f); err != nil {
		return nil, err
	}
	fingerprint := n.Flow.Fingerprint()
	if err := d.weir.Keep(ctx, n.Flow); err != nil {
		return nil, err
	}
	if err := d.putVersion(ctx, fingerprint, version{Flow: n.Name}); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(f.Versions, func(v FlowVersion) bool { return v.Fingerprint == fingerprint }) {
		f.Versions = slices.Insert(f.Versions, 0, FlowVersion{fingerprint, n.By, time.Now().UTC().Truncate(time.Second), n.Note})
	}
	if n.Promote {
		f.Promote(fingerprint, n.By)
	}
	for i := len(f.Versions) - 1; i > 0 && len(f.Versions) > maxVersions; i-- {
		if f.Versions[i].Fingerprint != f.Promoted {
			f.Versions = slices.Delete(f.Versions, i, i+1)
		}
	}
	if err := d.Save(ctx, f); err != nil {
		return nil, err
	}
	return f, d.keepText(ctx, f, fingerprint, n.Text)
}

// putVersion keeps what is known of a fingerprint, before any run can have it.
func (d *Deployed) putVersion(ctx context.Context, fingerprint string, v version) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = d.store.PutDocument(ctx, store.Document{Kind: versionKind, ID: fingerprint, Body: body})
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

func (d *Deployed) keepText(ctx context.Context, f *DeployedFlow, fingerprint, text string) error {
	body, err := json.Marshal(text)
	if err != nil {
		return err
	}
	_, err = d.store.PutDocument(ctx, store.Document{Kind: textKind, ID: f.Name + "/" + fingerprint, User: f.Owner, Body: body})
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

// Save keeps the changes of a flow that was read. store.ErrChanged.
func (d *Deployed) Save(ctx context.Context, f *DeployedFlow) error {
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	doc, err := d.store.PutDocument(ctx, store.Document{Kind: deployedKind, ID: f.Name, User: f.Owner, Version: f.Revision, Body: body})
	f.Revision = doc.Version
	return err
}

// Delete deletes a flow with the texts of its versions. Runs stay, and may use nothing
// outside from then on. store.ErrChanged, store.ErrNotFound.
func (d *Deployed) Delete(ctx context.Context, f *DeployedFlow) error {
	if err := d.store.DeleteDocument(ctx, deployedKind, f.Name, f.Revision); err != nil {
		return err
	}
	texts, err := d.store.Documents(ctx, store.DocumentFilter{Kind: textKind, Prefix: f.Name + "/", Limit: 10 * maxVersions})
	for i := range texts {
		err = errors.Join(err, d.store.DeleteDocument(ctx, textKind, texts[i].ID, 0))
	}
	return err
}

// Text returns the text of a version as it was put. store.ErrNotFound.
func (d *Deployed) Text(ctx context.Context, name, fingerprint string) (text string, err error) {
	doc, err := d.store.Document(ctx, textKind, name+"/"+fingerprint)
	if err == nil {
		err = json.Unmarshal(doc.Body, &text)
	}
	return text, err
}

// Flow returns the definition of a version.
func (d *Deployed) Flow(ctx context.Context, fingerprint string) (*weir.Flow, error) {
	d.mu.Lock()
	f := d.flows[fingerprint]
	d.mu.Unlock()
	if f != nil {
		return f, nil
	}
	select {
	case <-d.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.weir == nil {
		return nil, store.ErrClosed
	}
	f, err := d.weir.FlowByFingerprint(ctx, fingerprint)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flows == nil || len(d.flows) > maxVersions {
		d.flows = make(map[string]*weir.Flow)
	}
	d.flows[fingerprint] = f
	return f, nil
}

// NotGrantedError lists what a flow uses and was not granted to it.
type NotGrantedError struct{ Missing []*engine.Error }

// Error implements error.
func (e *NotGrantedError) Error() string { return e.Missing[0].Message }

// Unwrap returns the first error.
func (e *NotGrantedError) Unwrap() error { return e.Missing[0] }

// check returns a *NotGrantedError for what a flow uses that is not granted to it.
func (d *Deployed) check(f *weir.Flow, of *DeployedFlow) error {
	var missing []*engine.Error
	grants := d.effective(&of.Grants)
	for _, u := range d.weir.UsesOf(f) {
		if !grants.Allows(u) {
			missing = append(missing, runner.NotGranted(u))
		}
	}
	for _, u := range f.Uses {
		if name := u.Flow.Name; name != f.Name && !slices.Contains(of.Grants.Flows, name) && !slices.Contains(of.Grants.Flows, "*") {
			missing = append(missing, &engine.Error{
				Code: engine.CodeNotGranted, Permanent: true, Message: fmt.Sprintf("the flow may not run the flow %q: this was not granted to it", name),
			})
		}
	}
	if missing == nil {
		return nil
	}
	return &NotGrantedError{missing}
}

// effective are grants as they are applied: all providers are those that are configured. A
// script is a file of the machine, so its provider is never granted.
func (d *Deployed) effective(g *runner.Grants) *runner.Grants {
	out := *g
	if slices.Contains(g.Providers, "*") {
		out.Providers = d.providers
	}
	out.Providers = slices.DeleteFunc(slices.Clone(out.Providers), func(name string) bool { return name == ScriptProvider })
	return &out
}

// grants implements weir.Options.Grants: a fingerprint that no client has put is not
// limited. A flow that was deleted has no grants.
func (d *Deployed) grants(ctx context.Context, fingerprint string) (*runner.Grants, error) {
	v, err := d.versionOf(ctx, fingerprint)
	if err == nil && v.Like != "" {
		fingerprint = v.Like
		v, err = d.versionOf(ctx, fingerprint)
	}
	name := v.Flow
	if name == "" || err != nil {
		return nil, err
	}
	f, err := d.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return &runner.Grants{}, nil
	}
	if err != nil {
		return nil, err
	}
	// A run under a version that the flow does not have is one of a deleted flow of this name.
	if !slices.ContainsFunc(f.Versions, func(v FlowVersion) bool { return v.Fingerprint == fingerprint }) {
		return &runner.Grants{}, nil
	}
	return d.effective(&f.Grants), nil
}

// version is what is kept of a fingerprint.
type version struct {
	// Flow is the flow that a client has put under this name.
	Flow string `json:"flow,omitempty"`
	// Like is the fingerprint whose grants apply to a flow that was derived from it.
	Like string `json:"like,omitempty"`
}

// versionOf returns what is kept of a fingerprint, the zero value for one that no client has put.
func (d *Deployed) versionOf(ctx context.Context, fingerprint string) (v version, err error) {
	doc, err := d.store.Document(ctx, versionKind, fingerprint)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnsupported) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(doc.Body, &v)
}

// nameOf returns the flow that a fingerprint belongs to, "" if no client has put it.
func (d *Deployed) nameOf(ctx context.Context, fingerprint string) (string, error) {
	v, err := d.versionOf(ctx, fingerprint)
	return v.Flow, err
}

// Derive has the grants of a flow apply to one that was derived from it, before any run has it.
// If the flow is not limited, neither is the other.
func (d *Deployed) Derive(ctx context.Context, derived, from string) error {
	if d == nil {
		return nil
	}
	v, err := d.versionOf(ctx, from)
	if err != nil || v == (version{}) {
		return err
	}
	if v.Like != "" {
		from = v.Like
	}
	return d.putVersion(ctx, derived, version{Like: from})
}

// NameOf returns the flow whose version has a fingerprint, "" if no client has put it.
func (d *Deployed) NameOf(ctx context.Context, fingerprint string) (string, error) {
	if d == nil {
		return "", nil
	}
	return d.nameOf(ctx, fingerprint)
}

// GrantsOf returns what runs of a fingerprint may use outside; nil is anything.
func (d *Deployed) GrantsOf(ctx context.Context, fingerprint string) (*runner.Grants, error) {
	if d == nil {
		return nil, nil
	}
	return d.grants(ctx, fingerprint)
}

// maxPromotions bounds the promotions that are kept of a flow.
const maxPromotions = 100

// Promote has new runs and rounds take a version.
func (f *DeployedFlow) Promote(fingerprint, by string) {
	if f.Promoted == fingerprint {
		return
	}
	f.Promoted = fingerprint
	f.Promotions = slices.Insert(f.Promotions, 0, Promotion{fingerprint, by, time.Now().UTC().Truncate(time.Second)})
	f.Promotions = f.Promotions[:min(len(f.Promotions), maxPromotions)]
}

// current implements weir.Options.Current: a new round of a deployed flow runs the version
// that is promoted.
func (d *Deployed) current(ctx context.Context, f *weir.Flow) (*weir.Flow, error) {
	name, err := d.nameOf(ctx, f.Fingerprint())
	if name == "" || err != nil {
		return f, err
	}
	now, err := d.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) || err == nil && (now.Promoted == "" || now.Promoted == f.Fingerprint()) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	return d.Flow(ctx, now.Promoted)
}

// MayUse reports whether a user may see and start the flow.
func (f *DeployedFlow) MayUse(user string) bool {
	return f.Owner == user || slices.Contains(f.Access, user) || slices.Contains(f.Access, "*")
}
