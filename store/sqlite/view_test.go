package sqlite

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestTheViewsShowCommitsAndMessagesInFull(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	talk := newTalk(t, s)
	for _, said := range [][2]string{
		{"yes", "no"}, {"say \"chat#2/x\"", "#2"}, {"true", "1"}, {"null", "1.0"}, {talk.words(300), talk.words(2000)}, {"chat#7", "chat#1/ask"},
	} {
		for range 3 {
			talk.say(t, said[0], said[1])
		}
	}
	num, err := s.number(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	r := commitReader{s: s, run: "r", num: num, upto: maxNumber, bases: map[int64]*tokenizedText{}}
	want, err := r.rows(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.queryTexts(t.Context(), "read the view", "SELECT events FROM journal WHERE run = 'r' ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != len(want) {
		t.Fatalf("%d rows, want %d", len(events), len(want))
	}
	short := 0
	for i := range want {
		var a, b any
		if err := json.Unmarshal([]byte(events[i]), &a); err != nil {
			t.Fatalf("commit %d: %v: %s", i+1, err, events[i])
		}
		if err := json.Unmarshal(want[i].text, &b); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("commit %d\nview %s\nis   %s", i+1, events[i], want[i].text)
		}
		if want[i].base != 0 {
			short++
		}
	}
	if short < 12 {
		t.Errorf("only %d of %d commits are kept as differences: the test shows little", short, len(want))
	}

	texts, err := s.queryTexts(t.Context(), "read the view",
		"SELECT run || ' ' || context || ' ' || position || ' ' || role || ': ' || content FROM message_text ORDER BY run, context, position")
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) != 36 || texts[0] != "r main 0 user: yes" || texts[1] != "r main 1 assistant: no" ||
		!strings.HasPrefix(texts[24], "r main 24 user: "+talk.words(0)) || len(texts[24]) < 300 || len(texts[25]) < 2000 {
		t.Errorf("messages: %.3000q", texts)
	}
}
