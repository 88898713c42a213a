package builtin_test

import (
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/weirtest"
)

func injectProbes() map[string]probe {
	s := probeFlow{compare: "model"}.withFollowingRequest()
	table := messagesProbes(s)
	s.more += "  first: {type: injectMessages, with: {messages: [{text: before}]}}\n"
	table["place"] = probe{stage: s.key("after", "first").setting("messages", "[{text: hi}]"), value: "prepend"}
	return table
}

func semanticToolsProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"query": "remember or forget"}}
	none := s.setting("query", "zzz")
	return map[string]probe{
		"query": {stage: s, value: "look"}, "tools": {stage: s, value: "[memoryForget]"}, "limit": {stage: s, value: "1"},
		"always": {stage: s, value: "[look]"}, "noMatch": {stage: none, value: "none"},
	}
}

func budgetGuardProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"maxCalls": "2"}, top: "context: {model: openai/gpt-5-mini}\n"}
	s.more = "  ask: {type: llmRequest, in: {message: hello}}\n"
	s = s.key("after", "ask")
	reached := s.setting("maxTokens", "1")
	return map[string]probe{
		"maxCalls": {stage: s, value: "1"}, "maxTokens": {stage: s, value: "1"}, "maxCost": {stage: s, value: "0.0000001"}, "onLimit": {stage: reached, value: "fail"},
	}
}

func errorDetectionProbes() map[string]probe {
	s := probeFlow{in: map[string]string{"value": "hello"}}
	asked := s.setting("ask", "Is it rude?")
	asked.script = weirtest.Says(`{"error": false, "reason": ""}`)
	unread := asked
	unread.script = weirtest.Says("no", "no", `{"error": false, "reason": ""}`)
	table := singleCallProbes(modelProbes(asked), asked)
	fallbackProbes(table, unread)
	table["patterns"] = probe{stage: s, value: "{greeting: hel+o}"}
	table["schema"] = probe{stage: s, value: "{type: number}"}
	table["ask"] = probe{stage: asked, value: "Is it short?"}
	return table
}

func redactorProbes() map[string]probe {
	s := probeFlow{in: map[string]string{"value": `"hello ada@example.com [EMAIL_1]"`}}
	asked := s.setting("ask", "names")
	asked.script = weirtest.Says(`{"items": []}`)
	unread := asked
	unread.script = weirtest.Says("no", "no", `{"items": []}`)
	table := singleCallProbes(modelProbes(asked), asked)
	fallbackProbes(table, unread)
	table["mode"] = probe{stage: s, value: "restore"}
	table["find"] = probe{stage: s, value: "[]"}
	table["patterns"] = probe{stage: s, value: "{greeting: hel+o}"}
	table["words"] = probe{stage: s, value: "[hello]"}
	table["ask"] = probe{stage: asked, value: "places"}
	table["reversible"] = probe{stage: s, value: "false"}
	table["ttl"] = probe{stage: s.setting("reversible", "false"), value: "1h", refused: flow.CodeInvalidSetting}
	return table
}

func extractMemoriesProbes() map[string]probe {
	s := probeFlow{in: map[string]string{"messages": "[{role: user, text: I drink tea.}, {role: user, text: And coffee.}]"}}
	s.script = weirtest.Says(`{"items": [{"kind": "fact", "text": "Drinks tea."}]}`)
	unread := s
	unread.script = weirtest.Says("no", "no", `{"items": []}`)
	table := singleCallProbes(modelProbes(s), s)
	fallbackProbes(table, unread)
	table["max"] = probe{stage: s, value: "2"}
	table["last"] = probe{stage: s, value: "1"}
	table["kinds"] = probe{stage: s, value: "[fact, episode]"}
	table["about"] = probe{stage: s, value: "drinks"}
	return table
}
