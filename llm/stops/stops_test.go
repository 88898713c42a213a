package stops_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/llm/stops"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// TestStopsCoverModels enumerates what is stopped x which model is called.
func TestStopsCoverModels(t *testing.T) {
	calls := []string{"openai/gpt-5", "openai/gpt-5-mini", "openai/o3", "openai-eu/gpt-5", "anthropic/gpt-5"}
	for stopped, want := range map[string]string{
		"*":                 "11111",
		"openai":            "11100",
		"openai/gpt-5":      "11000",
		"openai/gpt-5-mini": "01000",
		"openai-eu":         "00010",
		"open":              "00000",
	} {
		s := stops.New(store.Complete(memory.New()))
		if err := s.Stop(t.Context(), stopped, "ada", "why"); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range calls {
			provider, model, _ := strings.Cut(c, "/")
			switch found, err := s.Find(t.Context(), provider, model); {
			case err != nil:
				t.Fatal(err)
			case found == nil:
				got += "0"
			default:
				got += "1"
				if found.Models != stopped || found.By != "ada" || found.Reason != "why" || found.At.IsZero() {
					t.Errorf("stop of %s: %+v", stopped, found)
				}
			}
		}
		if got != want {
			t.Errorf("stop of %s: stopped are %s of %v, want %s", stopped, got, calls, want)
		}
		if err := s.Allow(t.Context(), stopped); err != nil {
			t.Fatal(err)
		}
		if found, err := s.Find(t.Context(), "openai", "gpt-5"); found != nil || err != nil {
			t.Errorf("after Allow(%s): %v, %v", stopped, found, err)
		}
	}
}

// TestUnusableModelsAreRefused: a stop that could cover nothing is an error.
func TestUnusableModelsAreRefused(t *testing.T) {
	s := stops.New(store.Complete(memory.New()))
	for _, models := range []string{"", " ", "/", "openai/", "/gpt", "*/x", " openai", strings.Repeat("x", 201)} {
		if err := s.Stop(t.Context(), models, "ada", ""); err == nil {
			t.Errorf("Stop(%q) succeeded", models)
		}
	}
	if err := s.Allow(t.Context(), "openai"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Allow of what is not stopped: %v", err)
	}
}

// TestManyStopAtOnce: of several processes that stop the same models, each succeeds.
func TestManyStopAtOnce(t *testing.T) {
	docs := store.Complete(memory.New())
	var done sync.WaitGroup
	stopAndAllow := func() {
		for range 20 {
			if err := stops.New(docs).Stop(t.Context(), "openai", "ada", "why"); err != nil {
				t.Error(err)
			}
			if err := stops.New(docs).Allow(t.Context(), "openai"); err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
		}
	}
	for range 8 {
		done.Go(stopAndAllow)
	}
	done.Wait()
	s := stops.New(docs)
	for _, models := range []string{"a", "b/c", "*"} {
		if err := s.Stop(t.Context(), models, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 3 {
		t.Errorf("list: %v, %v", list, err)
	}
	if err := s.AllowAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("list after AllowAll: %v, %v", list, err)
	}
}
