package mcp_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/mcp"
	"github.com/weir-run/weir/server/servertest"
)

// suite returns the public conformance suite, and node the version of Node.js that it needs.
func suite() []string { return []string{"node@22", "@modelcontextprotocol/conformance@0.2.0-alpha.12"} }

func flows() map[string]string {
	ask := func(name, text string, questions ...string) string {
		nodes, after := "", ""
		for _, q := range questions {
			nodes += "  " + q + ": {type: userInput, " + after + "with: {prompt: What is your " + q + "?, schema: {type: object, properties: {name: {type: string}}, required: [name]}}}\n"
			after = "after: " + q + ", "
		}
		return "weir: 1\nname: " + name + "\nnodes:\n" + nodes + "outputs: {text: \"" + text + "\"}\n"
	}
	return map[string]string{
		"text.yaml": `weir: 1
name: test_simple_text
description: Says a text.
nodes:
  say: {type: template, with: {text: This is a simple text response for testing.}}
outputs: {text: "{{ say.text }}"}
`,
		"fails.yaml": `weir: 1
name: test_error_handling
nodes:
  stuck: {type: fail, with: {message: This tool intentionally returns an error for testing, code: no_berth}}
`,
		"ask.yaml":    ask("test_input_required_result_elicitation", "Hello, {{ user_name.value.name }}!", "user_name"),
		"state.yaml":  ask("test_input_required_result_request_state", "state-ok {{ confirm.value.ok }}", "confirm"),
		"tamper.yaml": ask("test_input_required_result_tampered_state", "done", "confirm"),
		"rounds.yaml": ask("test_input_required_result_multi_round", "{{ step1.text }} {{ step2.text }}", "step1", "step2"),
		"stream.yaml": ask("test_streaming_elicitation", "done", "confirm"),
		"progress.yaml": `weir: 1
name: test_tool_with_progress
nodes:
  one: {type: template, with: {text: one}}
  two: {type: template, after: one, with: {text: two}}
outputs: {text: "{{ two.text }}"}
`,
		"log.yaml": ask("test_logging_tool", "done", "confirm"),
		"echo.yaml": `weir: 1
name: echo
inputs: {text: {type: text, required: true}, count: {type: number, default: 1}}
nodes:
  say: {type: template, with: {text: "{{ run.inputs.text }} {{ run.inputs.count }}"}}
outputs: {text: "{{ say.text }}", count: "{{ run.inputs.count }}"}
`,
	}
}

func open(t *testing.T, o servertest.Options) *servertest.Process {
	t.Helper()
	if o.Flows == nil {
		o.Flows = flows()
	}
	o.Faces = append(o.Faces, func(s *server.Server) { mcp.Register(s, mcp.Options{Version: "test", Fork: true}) })
	return servertest.Open(t, o)
}

// leftOut lists the scenarios of the requirement sets that the server does not pass, with
// the reason.
func leftOut(revision string) map[string]string {
	const (
		noContent   = "the results of flows are values, which are sent as text and as structured content"
		noResources = "Weir offers no resources"
		noPrompts   = "Weir offers no prompts and completes no arguments"
		noClient    = "Weir asks persons, and neither the client's model nor its folders"
		noSession   = "questions to clients of this revision are texts, which a tool answers: /mcp keeps no session"
	)
	out := map[string]string{
		"completion-complete": noPrompts, "prompts-get-simple": noPrompts, "prompts-get-with-args": noPrompts,
		"prompts-get-embedded-resource": noPrompts, "prompts-get-with-image": noPrompts,
		"tools-call-image": noContent, "tools-call-audio": noContent, "tools-call-embedded-resource": noContent, "tools-call-mixed-content": noContent,
		"resources-read-text": noResources, "resources-read-binary": noResources, "resources-templates-read": noResources,
	}
	if revision == "2025-11-25" {
		maps.Copy(out, map[string]string{
			"tools-call-with-logging": "logging is deprecated", "tools-call-sampling": noClient, "tools-call-elicitation": noSession,
			"elicitation-sep1034-defaults": noSession, "elicitation-sep1330-enums": noSession, "resources-subscribe": noResources, "resources-unsubscribe": noResources,
		})
		return out
	}
	for _, name := range []string{"basic-sampling", "basic-list-roots", "multiple-input-requests", "capability-check"} {
		out["input-required-result-"+name] = noClient
	}
	out["input-required-result-non-tool-request"] = noPrompts
	out["server-stateless"] = "two of its checks need a tool that calls the client's model; the others pass"
	return out
}

// TestThePublicConformanceSuitePasses runs the requirement sets of both revisions. What fails
// must be what is left out, and what is left out must fail.
func TestThePublicConformanceSuitePasses(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			p := open(t, servertest.Options{})
			out, _ := servertest.NodeCommand(t, "node_modules/@modelcontextprotocol/conformance/dist/index.js",
				[]string{"server", "--url", p.URL + "/mcp", "--requirements", revision}, suite()) // it ends with 1 as some are left out
			_, summary, _ := strings.Cut(out, "=== SUMMARY ===")
			summary, notScored, ok := strings.Cut(summary, "Not scored for")
			lines := regexp.MustCompile(`(?m)^\s*([✓✗]) ([a-z0-9-]+): (\d+) passed`).FindAllStringSubmatch(summary, -1)
			if !ok || len(lines) < 30 {
				t.Fatalf("%d scenarios:\n%s", len(lines), out)
			}
			passed := checkScenarios(t, lines, notScored, leftOut(revision))
			t.Logf("%d scenarios of revision %s pass", passed, revision)
		})
	}
}

// checkScenarios compares the scenarios of a run of the suite, as their mark and name, with
// those that are left out. It returns the number of those that pass.
func checkScenarios(t *testing.T, lines [][]string, notScored string, left map[string]string) (passed int) {
	t.Helper()
	for _, l := range lines {
		name, good := l[2], l[1] == "✓"
		if strings.Contains(notScored, " "+name+" (") {
			continue
		}
		switch {
		case good && left[name] != "":
			t.Errorf("%s passes, and is left out", name)
		case !good && left[name] == "":
			t.Errorf("%s fails", name)
		case good:
			passed++
		}
		delete(left, name)
	}
	if len(left) > 0 {
		t.Errorf("not in the set: %v", left)
	}
	return passed
}
