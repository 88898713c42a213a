package sandbox_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

func TestOutputOfCodeFollowsTheUpdateProtocol(t *testing.T) {
	before := map[string]any{"a": int64(1), "gone": "x", "deep": map[string]any{"l": []any{int64(1)}}, "branch_decision": "stale"}
	for _, tt := range []struct {
		name    string
		ended   sandbox.Outcome
		set     map[string]any
		deleted []string
		message string
		stdout  string
	}{
		{"nothing changed", sandbox.Outcome{Context: before}, map[string]any{}, nil, "", ""},
		{
			"assigned, changed in depth, deleted",
			sandbox.Outcome{Context: map[string]any{"a": int64(2), "deep": map[string]any{"l": []any{int64(1), nil}}, "_ai_metadata": 1}},
			map[string]any{"a": int64(2), "deep": map[string]any{"l": []any{int64(1), nil}}},
			[]string{"gone"},
			"", "",
		},
		{
			"a value that is odd was not deleted",
			sandbox.Outcome{Context: map[string]any{"a": int64(1), "deep": before["deep"]}, Unencodable: []sandbox.UnencodableValue{{Key: "_ai_metadata", Why: "is a set"}}},
			map[string]any{},
			[]string{"gone"},
			"", "",
		},
		{
			"printed replaces what was done, odd values too",
			sandbox.Outcome{Stdout: "x\n{\"status\":\"success\",\"context_updates\":{\"b\":1},\"message\":\"m\",\"c\":2}\ny", Unencodable: []sandbox.UnencodableValue{{Key: "z", Why: "is a set"}}},
			map[string]any{"b": int64(1)},
			nil, "m", "x\ny",
		},
		{"a bare object", sandbox.Outcome{Stdout: `{"status":"ok","message":5,"b":[1.0,2]}` + "\r\n"}, map[string]any{"b": []any{1.0, int64(2)}}, nil, "5", ""},
		{"an unreadable update before a readable one", sandbox.Outcome{Stdout: "{'context_updates': {}}\n{\"context_updates\":{\"b\":1}}"}, map[string]any{"b": int64(1)}, nil, "", "{'context_updates': {}}\n"},
		{"a word that is no key", sandbox.Outcome{Context: before, Stdout: "context_updates follow"}, map[string]any{}, nil, "", "context_updates follow"},
		{"null updates are none", sandbox.Outcome{Stdout: `{"status":"success","context_updates":null,"b":1}`}, map[string]any{}, nil, "", ""},
		{"empty ones are passed over", sandbox.Outcome{Stdout: "{\"b\":1}\n{}\n[]\nnull\n\n[1]\n3\n"}, map[string]any{"b": int64(1)}, nil, "", "{}\n[]\nnull\n\n[1]\n3\n"},
		{"words in texts are texts", sandbox.Outcome{Stdout: `{"b":"NaN \" Infinity","c":"-Infinity"}`}, map[string]any{"b": `NaN " Infinity`, "c": "-Infinity"}, nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := sandbox.BuildResult(&sandbox.Job{Context: before}, &tt.ended)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(r.Set, tt.set) || !reflect.DeepEqual(r.Delete, tt.deleted) {
				t.Errorf("set %#v, deleted %v", r.Set, r.Delete)
			}
			if r.Message != tt.message || r.Stdout != tt.stdout {
				t.Errorf("the message is %q, the output %q", r.Message, r.Stdout)
			}
		})
	}
}

func TestImpossibleUpdateNamesItsKey(t *testing.T) {
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	for _, tt := range []struct{ name, stdout, code, key, says string }{
		{"NaN inside", `{"context_updates":{"a":[1,{"b":NaN}]}}`, engine.CodeCodeValue, "a", `context["a"][1]["b"] is NaN`},
		{"-Infinity of a bare object", `{"a":-Infinity}`, engine.CodeCodeValue, "a", "is -Infinity"},
		{"a number out of range", `{"a":1e999}`, engine.CodeCodeValue, "a", "out of range"},
		{"a whole number past 64 bits", `{"a":9223372036854775808}`, engine.CodeCodeValue, "a", "does not fit 64 bits"},
		{"too deep", `{"a":` + deep + `}`, engine.CodeCodeValue, "a", "nested deeper"},
		{"too deep to be read", `{"a":` + strings.Repeat("[{\"b\":", 6000) + "1" + strings.Repeat("}]", 6000) + "}\nlast", engine.CodeCodeValue, "", "nested deeper"},
		{"a key twice", `{"context_updates":{"a":{"1":1,"1":2}}}`, engine.CodeCodeValue, "", `the key "1" occurs twice`},
		{"updates that are a list", `{"context_updates":[1]}`, engine.CodeCodeValue, "context_updates", "a list"},
		{"a status of neither kind", `{"status":"paid","amount":5}`, engine.CodeCodeValue, "status", "neither success nor error: paid"},
		{"a misspelt status", `{"status":"eror","context_updates":{"a":1}}`, engine.CodeCodeValue, "status", "neither success nor error: eror"},
		{"a status that is no text", `{"status":false,"context_updates":{"a":1}}`, engine.CodeCodeValue, "status", "neither success nor error: false"},
		{"an error in capitals", `{"status":"ERROR","message":"no total"}`, engine.CodeCodeFailed, "", "no total"},
		{"an update over several lines", "{\n  \"context_updates\": {\n    \"a\": 1\n  }\n}", engine.CodeCodeValue, "", "not as one line"},
		{"an update in Python's form", `{'context_updates': {'a': 1}}`, engine.CodeCodeValue, "", "not as one line"},
		{"an update behind a word", `Update: {"context_updates":{"a":1}}`, engine.CodeCodeValue, "", "not as one line"},
		{"an update before a word", `{"context_updates":{"a":1}} done`, engine.CodeCodeValue, "", "not as one line"},
		{"two updates in a line", `{"context_updates":{"a":1}}{"context_updates":{"b":1}}`, engine.CodeCodeValue, "", "not as one line"},
		{"an update in a list", `[{"context_updates":{"a":1}}]`, engine.CodeCodeValue, "", "not as one line"},
		{"an update with a comma too many", `{"context_updates":{"a":1},}`, engine.CodeCodeValue, "", "not as one line"},
		{"an update that is cut off", `{"context_updates":{"a":1}`, engine.CodeCodeValue, "", "not as one line"},
		{"an unreadable update behind another object", "{\"b\":1}\n{'context_updates': {'a': 1}}\nend", engine.CodeCodeValue, "", "not as one line"},
		{"an error of its own", `{"status":"error","message":"no total"}`, engine.CodeCodeFailed, "", "no total"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sandbox.BuildResult(&sandbox.Job{}, &sandbox.Outcome{Stdout: tt.stdout})
			e, ok := errors.AsType[*sandbox.Error](err)
			if !ok || e.Code != tt.code || e.Key != tt.key || !strings.Contains(e.Message, tt.says) {
				t.Errorf("the error is %#v", err)
			}
		})
	}
}

func TestStatusThatCodeFoundIsAValueOfReadOnlyCode(t *testing.T) {
	for stdout, want := range map[string]map[string]any{
		`{"status":"paid","total":5}`:    {"status": "paid", "total": int64(5)},
		`{"status":"success","total":5}`: {"total": int64(5)},
		`{"status":7}`:                   {"status": int64(7)},
	} {
		r, err := sandbox.BuildResult(&sandbox.Job{ReadOnly: true}, &sandbox.Outcome{Stdout: stdout})
		if err != nil || !reflect.DeepEqual(r.Set, want) {
			t.Errorf("%s: %v, %v", stdout, r.Set, err)
		}
	}
	if _, err := sandbox.BuildResult(&sandbox.Job{ReadOnly: true}, &sandbox.Outcome{Stdout: `{"status":"error"}`}); err == nil {
		t.Error("an error is a success")
	}
}

func TestDecisionUsesItsOwnResult(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ended sandbox.Outcome
		want  string
	}{
		{"a text", sandbox.Outcome{Context: map[string]any{"branch_decision": "High"}}, "High"},
		{"a boolean", sandbox.Outcome{Context: map[string]any{"branch_decision": true}}, "true"},
		{"a whole number", sandbox.Outcome{Context: map[string]any{"branch_decision": json.Number("3")}}, "3"},
		{"a float", sandbox.Outcome{Context: map[string]any{"branch_decision": 0.5}}, "0.5"},
		{"printed wins", sandbox.Outcome{Context: map[string]any{"branch_decision": "a"}, Stdout: `{"context_updates":{"branch_decision":false}}`}, "false"},
		{"printed beside the updates", sandbox.Outcome{Stdout: `{"branch_decision":"b","context_updates":{}}`}, "b"},
		{"left in the context beside a printed update", sandbox.Outcome{Context: map[string]any{"branch_decision": "c"}, Stdout: `{"context_updates":{"x":1}}`}, "c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := sandbox.BuildResult(&sandbox.Job{Decision: true}, &tt.ended)
			if err != nil || r.Branch != tt.want {
				t.Errorf("the branch is %q, %v; want %q", r.Branch, err, tt.want)
			}
			if _, set := r.Set["branch_decision"]; set {
				t.Error("branch_decision is part of the update")
			}
		})
	}
	for _, bad := range []any{nil, []any{"a"}, map[string]any{}} {
		_, err := sandbox.BuildResult(&sandbox.Job{Decision: true}, &sandbox.Outcome{Context: map[string]any{"branch_decision": bad}})
		if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != engine.CodeBranchMissing {
			t.Errorf("%v as a branch: %v", bad, err)
		}
	}
	job := &sandbox.Job{Decision: true, Context: map[string]any{"branch_decision": "stale", "a": 1}}
	if given := job.CodeContext(); given["branch_decision"] != nil || given["a"] != 1 || job.Context["branch_decision"] != "stale" {
		t.Errorf("the code is given %v of %v", given, job.Context)
	}
}

func FuzzConclude(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a":NaN}`, `{"context_updates":{"a":1}}` + "\nx", `{"a":"\`, "{\"a\": \"\x00weir:not-json:NaN\"}"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, stdout string, decision bool) {
		r, err := sandbox.BuildResult(&sandbox.Job{Decision: decision}, &sandbox.Outcome{Stdout: stdout})
		if err != nil {
			if _, ok := errors.AsType[*sandbox.Error](err); !ok {
				t.Fatalf("the error is of type %T", err)
			}
			return
		}
		if _, err := engine.AppendValue(nil, r.Set); err != nil {
			t.Fatalf("the update cannot be kept: %v", err)
		}
		if len(r.Stdout) > len(stdout) {
			t.Error("there is more output than was written")
		}
	})
}
