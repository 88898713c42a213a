package llm_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-run/weir/llm"
)

func TestAModelIsFoundByTheLongestPrefixThatEndsWhereAVersionDoes(t *testing.T) {
	c := llm.NewCatalogue(llm.Model{Name: "local/llama-", Window: 8000}, llm.Model{Name: "box", Window: 4000})
	for _, tt := range []struct{ provider, model, want string }{
		{"openai", "gpt-5-mini", "openai/gpt-5-mini"},
		{"openai", "gpt-5-mini-2025-08-07", "openai/gpt-5-mini"},
		{"openai", "gpt-5-search-api", "openai/gpt-5"},
		{"openai", "gpt-4-0613", "openai/gpt-4"},
		{"openai", "gpt-4-32k-0613", "openai/gpt-4-32k"},
		{"openai", "gpt-4o-mini-2024-07-18", "openai/gpt-4o-mini"},
		{"openai", "gpt-4o-2024-08-06", "openai/gpt-4o"},
		{"openai", "gpt-4o-2024-05-13", "openai/gpt-4o-2024-05-13"},
		{"openai", "gpt-4.1-nano", "openai/gpt-4.1-nano"},
		{"openai", "gpt-4p", ""},
		{"openai", "gpt-4.7", ""},
		{"openai", "gpt-4-64k", ""},
		{"openai", "o3x", ""},
		{"openai", "gpt-", ""},
		{"openai", "", ""},
		{"anthropic", "claude-opus-4-20250514", "anthropic/claude-opus-4"},
		{"anthropic", "claude-opus-4@20250514", "anthropic/claude-opus-4"},
		{"anthropic", "claude-opus-4-9", ""},
		{"anthropic", "claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5"},
		{"gemini", "gemini-2.0-flash-001", "gemini/gemini-2.0-flash"},
		{"gemini", "models/gemini-2.5-pro", "gemini/gemini-2.5-pro"},
		{"gemini", "gemini-2.5-flash-lite-preview-09-2025", "gemini/gemini-2.5-flash-lite"},
		{"local", "llama-3.1-8b", "local/llama-"},
		{"local", "qwen3:8b", ""},
		{"box", "anything-7", "box"},
		{"boxes", "anything", ""},
		{"recorded", "x", "recorded"},
	} {
		m, known := c.Find(tt.provider, tt.model)
		if known != (tt.want != "") || known && m.Name != tt.want {
			t.Errorf("%s/%s: found %q, known %t; want %q", tt.provider, tt.model, m.Name, known, tt.want)
		}
		if !known && (m.Window != llm.DefaultWindow || m.Encoding != "" || m.Price.Known()) {
			t.Errorf("%s/%s: what is not known is %+v", tt.provider, tt.model, m)
		}
	}
}

func TestUnknownModelIsLoggedOnceAtDebug(t *testing.T) {
	var log bytes.Buffer
	c := llm.NewCatalogue()
	c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for range 3 {
		c.Find("openai", "who")
		c.Find("openai", "what")
		c.Find("openai", "gpt-5")
		c.Find("script", "x")
	}
	if n := strings.Count(log.String(), "level=DEBUG"); n != 2 {
		t.Errorf("%d lines, want one for each of two models:\n%s", n, &log)
	}
}

func TestOverrideKeepsUnmentionedValues(t *testing.T) {
	c := llm.NewCatalogue(
		llm.Model{Name: "openai/gpt-5-mini", Price: llm.Price{Output: 3}},
		llm.Model{Name: "openai/gpt-4o-2024-08-06", Window: 64_000},
		llm.Model{Name: "new/thing", Price: llm.Price{Input: 1}},
		llm.Model{Name: "new/thing", MaxOutput: 5},
	)
	table := llm.NewCatalogue()
	mini, _ := c.Find("openai", "gpt-5-mini-2025-08-07")
	want, _ := table.Find("openai", "gpt-5-mini")
	want.Price.Output = 3
	if mini != want {
		t.Errorf("gpt-5-mini is %+v, want %+v", mini, want)
	}
	snapshot, _ := c.Find("openai", "gpt-4o-2024-08-06")
	family, _ := table.Find("openai", "gpt-4o")
	if snapshot.Window != 64_000 || snapshot.Price != family.Price || snapshot.Encoding != family.Encoding {
		t.Errorf("the snapshot is %+v, want the family's but for the window: %+v", snapshot, family)
	}
	if m, _ := c.Find("openai", "gpt-4o"); m != family {
		t.Errorf("the family has changed with its snapshot: %+v", m)
	}
	thing, known := c.Find("new", "thing")
	if !known || thing.Window != llm.DefaultWindow || thing.MaxOutput != 5 || thing.Price.Input != 1 {
		t.Errorf("a model the table has not is %+v, %t", thing, known)
	}
}

func TestAProviderWithANameOfItsOwnServesTheModelsOfItsVendor(t *testing.T) {
	c := llm.NewCatalogue(
		llm.Model{Name: "work/claude-opus-4-5", Price: llm.Price{Output: 1}},
		llm.Model{Name: "work/claude-opus-4-5-cheap", MaxOutput: 7},
		llm.Model{Name: "azure", MaxOutput: 9},
	)
	c.Vendors = map[string]string{"work": "anthropic", "azure": "openai"}
	vendors, known := c.Find("anthropic", "claude-opus-4-5")
	if !known || vendors.Price.Output == 1 {
		t.Fatalf("the vendor's is %+v, %t", vendors, known)
	}
	work, known := c.Find("work", "claude-opus-4-5-20251101")
	if !known || work.Price.Input != vendors.Price.Input || work.Window != vendors.Window || work.Price.Output != 1 {
		t.Errorf("under a name of its own it is %+v, %t; the vendor's is %+v", work, known, vendors)
	}
	gpt, _ := c.Find("openai", "gpt-5-mini")
	mini, known := c.Find("azure", "gpt-5-mini")
	if !known || mini.Price != gpt.Price || mini.Encoding != gpt.Encoding || mini.MaxOutput != 9 {
		t.Errorf("with something said of all of a provider's it is %+v, %t; the vendor's is %+v", mini, known, gpt)
	}
	if m, known := c.Find("other", "gpt-5-mini"); known {
		t.Errorf("a provider that serves nobody's models has %+v", m)
	}
	if m, known := c.Find("work", "gpt-5-mini"); known {
		t.Errorf("a vendor's models are found under another's: %+v", m)
	}
}

func TestPriceOfZeroMustBeExplicit(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: false, `{"input": 0}`: false, `{"input": 0, "output": 0}`: true, `{"input": 0, "output": 2}`: true,
		`{"input": 0.5}`: true, `{"cached": 1}`: false,
	} {
		var p llm.Price
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Known() != want {
			t.Errorf("%s is %+v, known %t, %v", text, p, p.Known(), err)
		}
	}
	c := llm.NewCatalogue(
		llm.Model{Name: "openai/gpt-5-mini", Price: llm.Price{Free: true}},
		llm.Model{Name: "box", Price: llm.Price{Free: true}},
		llm.Model{Name: "box/gold", Price: llm.Price{Input: 2}},
	)
	for name, want := range map[string]int64{"openai/gpt-5-mini": 0, "box/any": 0, "box/gold": 2} {
		provider, model, _ := strings.Cut(name, "/")
		m, _ := c.Find(provider, model)
		if got := m.Cost(llm.Usage{Input: 1}); got != want || !m.Price.Known() {
			t.Errorf("%s costs %d, known %t, want %d", name, got, m.Price.Known(), want)
		}
	}
}

func TestTheTableIsPlausible(t *testing.T) {
	for _, m := range llm.Table() {
		p := m.Price
		switch provider, _, _ := strings.Cut(m.Name, "/"); {
		case m.Window < 4096 || m.MaxOutput > m.Window || m.MaxInput > m.Window:
			t.Errorf("%s: window %d, output %d, input %d", m.Name, m.Window, m.MaxOutput, m.MaxInput)
		case p.Known() && (p.Input > p.Output || p.Cached > p.Input || p.Written > 0 && p.Written < p.Input):
			t.Errorf("%s: price %+v", m.Name, p)
		case p.Long != nil && (p.LongOver >= m.Window || p.Long.Input <= p.Input || p.Long.Output <= p.Output):
			t.Errorf("%s: price of long input %+v over %d", m.Name, p.Long, p.LongOver)
		case provider == "openai" && !strings.Contains(m.Name, "gpt-6") && m.Encoding != "o200k_base" && m.Encoding != "cl100k_base":
			t.Errorf("%s: encoding %q", m.Name, m.Encoding)
		}
	}
}

func TestTheReserveLeavesTheCallsOutputAndAMargin(t *testing.T) {
	for _, tt := range []struct {
		m                   llm.Model
		output, want, rooms int
	}{
		{llm.Model{Window: 128_000}, 0, 16_384 + 512, 111_104},
		{llm.Model{Window: 8_192}, 0, 2_048 + 512, 5_632},
		{llm.Model{Window: 128_000}, 100, 612, 127_388},
		{llm.Model{Window: 400_000, MaxInput: 272_000}, 0, 16_896, 272_000},
		{llm.Model{Window: 400_000, MaxInput: 272_000}, 200_000, 200_512, 199_488},
		{llm.Model{Window: 1_000}, 5_000, 5_512, 0},
	} {
		if got := tt.m.Reserve(tt.output); got != tt.want {
			t.Errorf("%+v: reserve for %d is %d, want %d", tt.m, tt.output, got, tt.want)
		}
		if got := tt.m.Room(tt.output); got != tt.rooms {
			t.Errorf("%+v: room beside %d is %d, want %d", tt.m, tt.output, got, tt.rooms)
		}
	}
}

// TestModelTableIsReadOnce counts the allocations of a catalogue: reading the table takes
// thousands.
func TestModelTableIsReadOnce(t *testing.T) {
	llm.NewCatalogue().Find("openai", "gpt-5")
	for name, do := range map[string]func(){
		"not used":   func() { llm.NewCatalogue(llm.Model{Name: "box", Window: 4000}) },
		"used":       func() { llm.NewCatalogue().Find("openai", "gpt-5") },
		"overridden": func() { llm.NewCatalogue(llm.Model{Name: "box", Window: 4000}).Find("box", "one") },
	} {
		if n := testing.AllocsPerRun(10, do); n > 30 {
			t.Errorf("a catalogue that is %s takes %v allocations", name, n)
		}
	}
	if m, known := llm.NewCatalogue().Find("box", "one"); known {
		t.Errorf("an override is in the table of all: %+v", m)
	}
}
