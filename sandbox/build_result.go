package sandbox

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine"
)

// Keys of the context with a special meaning. Neither enters the state.
const (
	// BranchKey holds the decision of a decision node.
	BranchKey = "branch_decision"
	// MetadataKey holds notes of agents.
	MetadataKey = "_ai_metadata"
)

// updatesKey is the member of a printed object that holds the update.
const updatesKey = "context_updates"

// Outcome is the state that code left when it ended without an error.
type Outcome struct {
	// Context is the context as the code left it. Its values are those of engine.Value
	// without handles, or json.Number.
	Context map[string]any
	// Unencodable are the values of the context that JSON cannot represent; their keys are
	// not in Context.
	Unencodable []UnencodableValue
	// Stdout and Stderr are the output of the code.
	Stdout, Stderr string
}

// UnencodableValue is a value that JSON cannot represent.
type UnencodableValue struct {
	Key  string `json:"key"`  // of the context
	Path string `json:"path"` // path below the key, as ".items[3]"; "" is the key's own value
	Why  string `json:"why"`  // "is a set"
}

// CodeContext returns the context for the job's code: a copy of the job's, without
// branch_decision for a decision.
func (j *Job) CodeContext() map[string]any {
	given := maps.Clone(j.Context)
	if given == nil {
		given = map[string]any{}
	}
	if j.Decision {
		delete(given, BranchKey)
	}
	return given
}

// BuildResult computes the result of a job from the outcome of its code. All executors use
// it, so that code has the same meaning in each of them:
//
//   - The last line of stdout that is a JSON object, and not an empty one, is the
//     update: its context_updates, or without those all of it except status and
//     message. If its status is "error", the job fails with its message. A status other
//     than "error", "success" and "ok" is an error, and so is a later line that has the key
//     context_updates and is no JSON object.
//   - Without such a line the update is the difference of the context: keys that
//     were assigned or changed at any depth, and keys that were deleted.
//   - branch_decision, from the line or else from the context, is the decision of
//     a decision node, and is required there; it is never part of the update.
//   - _ai_metadata is never part of the update.
//
// If the update has a value that JSON cannot represent, the error has the code
// code_value_invalid and the key. The error is an *Error. The executor must set Took and
// Sandbox of the result.
func BuildResult(job *Job, e *Outcome) (*Result, error) {
	r := &Result{Set: map[string]any{}, Stdout: e.Stdout, Stderr: e.Stderr}
	line, rest, found, err := lastObject(e.Stdout)
	if err != nil {
		return r, err
	}
	var branch any
	if found {
		r.Stdout, r.Printed = rest, true
		branch, err = r.applyPrinted(job, line)
	} else {
		err = r.applyChanges(job, e)
	}
	if err != nil {
		return r, err
	}
	if !job.Decision {
		return r, nil
	}
	if branch == nil {
		if branch, err = branchFromContext(e); err != nil {
			return r, err
		}
	}
	r.Branch, err = branchName(branch)
	return r, err
}

// applyPrinted takes the update and the branch from the printed object.
func (r *Result) applyPrinted(job *Job, line map[string]any) (branch any, err error) {
	if m, said := line["message"]; said && m != nil {
		r.Message = text(m)
	}
	failed, err := saysFailed(line["status"])
	if err != nil && !job.ReadOnly {
		return nil, err
	}
	isData := err != nil
	if failed {
		message := r.Message
		if message == "" {
			message = "the code printed a status of error, without a message"
		}
		return nil, &Error{Code: engine.CodeCodeFailed, Message: message}
	}
	updates, bare := line, false
	switch under := line[updatesKey].(type) {
	case map[string]any:
		updates = under
	case nil:
		if _, said := line[updatesKey]; said { // null means no update
			updates = nil
		} else {
			bare = true
		}
	default:
		return nil, &Error{
			Code: engine.CodeCodeValue, Key: updatesKey,
			Message: "the code printed context_updates that is " + engine.KindOf(under) + " and not an object of keys and values",
			Hint:    `print json.dumps({"status": "success", "context_updates": {...}})`,
		}
	}
	branch = updates[BranchKey]
	if branch == nil {
		branch = line[BranchKey]
	}
	for _, key := range slices.Sorted(maps.Keys(updates)) {
		if isReservedKey(key) || bare && (key == "status" && !isData || key == "message") {
			continue
		}
		v, odd := NormalizeValue(updates[key])
		if odd != nil {
			odd.Key = key
			return nil, odd.failure("printed")
		}
		r.Set[key] = v
	}
	return branch, nil
}

// saysFailed reads the status of a printed object. A word that is neither of the two may be meant as
// a failure, or as a value of the state, and is refused.
func saysFailed(status any) (bool, error) {
	word, isText := status.(string)
	switch {
	case status == nil, isText && (strings.EqualFold(word, "success") || strings.EqualFold(word, "ok")):
		return false, nil
	case isText && strings.EqualFold(word, "error"):
		return true, nil
	}
	return false, &Error{
		Code: engine.CodeCodeValue, Key: "status",
		Message: "the code printed a status that is neither success nor error: " + text(status),
		Hint:    "a status that is a value of the state is printed inside " + updatesKey,
	}
}

// applyChanges takes the update from the changes to the context.
func (r *Result) applyChanges(job *Job, e *Outcome) error {
	for _, o := range e.Unencodable {
		if !isReservedKey(o.Key) {
			return o.failure("left")
		}
	}
	before := job.CodeContext()
	for _, key := range slices.Sorted(maps.Keys(e.Context)) {
		if isReservedKey(key) {
			continue
		}
		after, odd := NormalizeValue(e.Context[key])
		if odd != nil {
			odd.Key = key
			return odd.failure("left")
		}
		was, there := before[key]
		if there {
			if n, odd := NormalizeValue(was); odd == nil && reflect.DeepEqual(n, after) {
				continue
			}
		}
		r.Set[key] = after
	}
	odd := make(map[string]bool, len(e.Unencodable))
	for _, o := range e.Unencodable {
		odd[o.Key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, left := e.Context[key]; !left && !isReservedKey(key) && !odd[key] {
			r.Delete = append(r.Delete, key)
		}
	}
	return nil
}

// isReservedKey reports whether a key is never part of an update.
func isReservedKey(key string) bool { return key == BranchKey || key == MetadataKey }

func branchFromContext(e *Outcome) (any, error) {
	for _, o := range e.Unencodable {
		if o.Key == BranchKey {
			return nil, o.failure("left")
		}
	}
	return e.Context[BranchKey], nil
}

// branchName returns a decision's branch as text.
func branchName(v any) (string, error) {
	v, odd := NormalizeValue(v)
	if odd != nil {
		odd.Key = BranchKey
		return "", odd.failure("left")
	}
	switch t := v.(type) {
	case nil:
		return "", &Error{
			Code: engine.CodeBranchMissing, Key: BranchKey,
			Message: "the code did not set branch_decision",
			Hint:    "set context['branch_decision'] to the name of a branch on every path through the code",
		}
	case string:
		return t, nil
	case bool:
		return strconv.FormatBool(t), nil
	case int64:
		return strconv.FormatInt(t, 10), nil
	case float64:
		return strconv.FormatFloat(t, 'f', -1, 64), nil
	default:
		return "", &Error{
			Code: engine.CodeBranchMissing, Key: BranchKey,
			Message: "branch_decision is " + engine.KindOf(t) + " and not the name of a branch",
			Hint:    "set it to a text, a boolean or a number",
		}
	}
}

// failure returns the error of a job whose update has the value.
func (o *UnencodableValue) failure(how string) error {
	where := fmt.Sprintf("context[%q]", o.Key)
	if o.Path != "" {
		where += o.Path
	}
	return &Error{
		Code: engine.CodeCodeValue, Key: o.Key,
		Message: "the code " + how + " a value that JSON does not have: " + where + " " + o.Why,
		Hint:    "convert it: sets and tuples with list(), dates and decimals with str() or float()",
	}
}

// text returns a printed message as text.
func text(v any) string {
	if s, ok := v.(string); ok {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return fmt.Sprint(v)
}
