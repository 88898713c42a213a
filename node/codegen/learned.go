package codegen

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"time"

	"github.com/weir-run/weir/engine"
)

// minReliability is the success rate above which learned code is used.
const minReliability = 0.8

// LearnedState is the state of learned code.
type LearnedState string

// The states of learned code.
const (
	// LearnedCandidate: it succeeded for one input, and is not used yet.
	LearnedCandidate LearnedState = "candidate"
	// LearnedAccepted: for another input, which has another result, it had the same result as
	// newly generated code. It is used.
	LearnedAccepted LearnedState = "learned"
	// LearnedDisabled: a person disabled it. No other code is learned in its place.
	LearnedDisabled LearnedState = "disabled"
)

// AllLearned is the prefix of the keys of learned code in the cache. The names of the user
// and of the flow follow, escaped as in URLs, and then a digest of the task.
const AllLearned = "learned/"

// LearnedPrefix returns the prefix of the keys of one user's learned code.
func LearnedPrefix(user string) string { return AllLearned + url.PathEscape(user) + "/" }

// Learned is a program that models wrote for a task in one user's flow and that succeeded.
type Learned struct {
	// ID is a digest of its user, flow and task.
	ID               string
	User, Flow, Node string
	// Task is the beginning of the prompt.
	Task, Language, Model, Code string
	// Run is the run in which it was generated; Confirmed the run in which it had the same
	// result as newly generated code, "" for a candidate.
	Run, Confirmed string
	State          LearnedState
	// Uses counts the uses since it was confirmed, Successes the successful ones.
	Uses, Successes int64
	At              time.Time // time of generation

	valuesDigest  string // digest of the values that it processed
	resultDigest  string // digest of its result for these values
	previousState LearnedState
}

// Reliability returns the share of successful uses, 1 before the first.
func (l *Learned) Reliability() float64 {
	if l.Uses == 0 {
		return 1
	}
	return float64(l.Successes) / float64(l.Uses)
}

// Active reports whether the next run with this task uses it.
func (l *Learned) Active() bool {
	return l != nil && l.State == LearnedAccepted && l.Reliability() >= minReliability
}

func (l *Learned) value() map[string]any {
	v := map[string]any{
		"user": l.User, "flow": l.Flow, "node": l.Node, "run": l.Run, "task": l.Task, "language": l.Language, "at": l.At.UnixMilli(),
		"code": l.Code, "model": l.Model, "state": string(l.State), "evidence": l.valuesDigest, "result": l.resultDigest, "uses": l.Uses, "successes": l.Successes,
	}
	if l.Confirmed != "" {
		v["confirmed"] = l.Confirmed
	}
	if l.previousState != "" {
		v["before"] = string(l.previousState)
	}
	return v
}

func readLearned(v engine.Value) *Learned {
	o, _ := v.(map[string]any)
	text := func(name string) string { return textOf(o[name]) }
	l := &Learned{
		User: text("user"), Flow: text("flow"), Node: text("node"), Run: text("run"), Task: text("task"), Language: text("language"),
		Code: text("code"), Model: text("model"), Confirmed: text("confirmed"),
		State: LearnedState(text("state")), previousState: LearnedState(text("before")), valuesDigest: text("evidence"), resultDigest: text("result"),
	}
	l.Uses, _ = o["uses"].(int64)
	l.Successes, _ = o["successes"].(int64)
	if at, ok := o["at"].(int64); ok {
		l.At = time.UnixMilli(at)
	}
	if l.Code == "" {
		return nil
	}
	return l
}

// ReadLearned reads the cached value of a key; ok is false if it is not learned code.
func ReadLearned(key string, v engine.Value) (l Learned, ok bool) {
	read := readLearned(v)
	if read == nil {
		return Learned{}, false
	}
	sum := sha256.Sum256([]byte(key))
	read.ID = hex.EncodeToString(sum[:8])
	return *read, true
}

// Disable returns the value that disables learned code; ok is false if it is disabled
// already, or is not learned code.
func Disable(v engine.Value) (disabled engine.Value, ok bool) {
	l := readLearned(v)
	if l == nil || l.State == LearnedDisabled {
		return nil, false
	}
	l.previousState, l.State = l.State, LearnedDisabled
	return l.value(), true
}

// Enable reverts Disable and resets the counters, so that code that a person has reviewed
// is tried again.
func Enable(v engine.Value) (enabled engine.Value, ok bool) {
	l := readLearned(v)
	if l == nil || l.State != LearnedDisabled {
		return nil, false
	}
	l.State, l.previousState, l.Uses, l.Successes = LearnedCandidate, "", 0, 0
	if was := LearnedState(textOf(v.(map[string]any)["before"])); was == LearnedAccepted {
		l.State = was
	}
	return l.value(), true
}
