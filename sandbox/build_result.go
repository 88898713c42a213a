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

// Keys of the context with a meaning of their own; neither enters the state.
const (
	// BranchKey holds what a decision decided.
	BranchKey = "branch_decision"
	// MetadataKey holds what agents noted of their work.
	MetadataKey = "_ai_metadata"
)

// Outcome is how code left things when it came to its end without an error.
type Outcome struct {
	// Context is the context as the code left it. Its values are those of
	// engine.Value without handles, or json.Number.
	Context map[string]any
	// Unencodable are the values of the context that JSON does not have; their keys are
	// not in Context.
	Unencodable []UnencodableValue
	// Stdout and Stderr are what the code wrote.
	Stdout, Stderr string
}

// UnencodableValue is a value that JSON does not have.
type UnencodableValue struct {
	Key  string `json:"key"`  // of the context
	Path string `json:"path"` // below the key, as ".items[3]"; "" is the key's own value
	Why  string `json:"why"`  // "is a set"
}

// CodeContext is the context that the job's code is given: a copy of the job's, in
// which a decision finds no branch_decision of before.
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

// BuildResult reads what a job brought off how its code left things. All executors
// end with it, so that code means the same in each of them:
//
//   - The last line of stdout that is a JSON object, and not an empty one, is the
//     update: its context_updates, or without those all of it but status and
//     message. Where its status is "error" the job has failed with its message.
//   - Without such a line the update is how the context differs: keys that were
//     assigned or changed in depth, and keys that were deleted.
//   - branch_decision, of the line or else of the context, is what a decision
//     decided, and must be there; it is never part of the update.
//   - _ai_metadata is never part of the update.
//
// A value that JSON does not have is a code_value error with the key, where it
// would be part of the update. The error is an *Error; Took and Sandbox of the
// result are the executor's to set.
func BuildResult(job *Job, e *Outcome) (*Result, error) {
	r := &Result{Set: map[string]any{}, Stdout: e.Stdout, Stderr: e.Stderr}
	line, rest, found := lastObject(e.Stdout)
	var branch any
	var err error
	if found {
		r.Stdout, r.Printed = rest, true
		branch, err = r.applyPrinted(line)
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

// applyPrinted takes the update out of the object that was printed, and what it
// says of the branch.
func (r *Result) applyPrinted(line map[string]any) (branch any, err error) {
	if m, said := line["message"]; said && m != nil {
		r.Message = text(m)
	}
	if line["status"] == "error" {
		message := r.Message
		if message == "" {
			message = "the code printed a status of error, without a message"
		}
		return nil, &Error{Code: engine.CodeCodeFailed, Message: message}
	}
	updates, bare := line, false
	switch under := line["context_updates"].(type) {
	case map[string]any:
		updates = under
	case nil:
		if _, said := line["context_updates"]; said { // null: nothing to update
			updates = nil
		} else {
			bare = true
		}
	default:
		return nil, &Error{
			Code: engine.CodeCodeValue, Key: "context_updates",
			Message: "the code printed context_updates that is " + kindOf(under) + " and not an object of keys and values",
			Hint:    `print json.dumps({"status": "success", "context_updates": {...}})`,
		}
	}
	branch = updates[BranchKey]
	if branch == nil {
		branch = line[BranchKey]
	}
	for _, key := range slices.Sorted(maps.Keys(updates)) {
		if isReservedKey(key) || bare && (key == "status" || key == "message") {
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

// applyChanges takes the update out of what the code did to the context.
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

// branchName is a decision's branch as text.
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
			Hint:    "set context['branch_decision'] to the name of a branch on every way through the code",
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
			Message: "branch_decision is " + kindOf(t) + " and not the name of a branch",
			Hint:    "set it to a text, a boolean or a number",
		}
	}
}

// failure is the failure of a job whose update has the value.
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

// text is a printed message as text.
func text(v any) string {
	if s, ok := v.(string); ok {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return fmt.Sprint(v)
}
