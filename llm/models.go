package llm

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/token"
)

// DefaultWindow is the window, in tokens, of an unknown model.
const DefaultWindow = 128_000

// The default reserve for the answer, and the additional reserve.
const (
	defaultOutput = 16_384
	outputMargin  = 512
)

//go:embed models.json
var modelTable []byte

// Model describes a model.
type Model struct {
	// Name is "provider/prefix", such as "openai/gpt-5-mini", which also matches
	// "gpt-5-mini-2025-08-07"; or "provider" alone, for all its other models. See
	// Catalogue.Find for the rules.
	Name string `json:"name"`
	// Window limits input and output together, in tokens.
	Window int `json:"window,omitempty"`
	// MaxInput limits the input if the vendor's limit is below the window; 0 means the
	// window.
	MaxInput int `json:"maxInput,omitempty"`
	// MaxOutput is the vendor's maximum length of an answer; 0 means unknown.
	MaxOutput int `json:"maxOutput,omitempty"`
	// Encoding is "o200k_base", "cl100k_base", or "" if tokens can only be estimated.
	Encoding string `json:"encoding,omitempty"`
	// Count counts the tokens of texts in place of Encoding; nil for none. Only programs set it.
	Count *token.TextCounter `json:"-"`
	// Price is zero if unknown; a free model is marked as such.
	Price Price `json:"price,omitzero"`
	// Takes has what the model takes in a request; nil if nothing is known. It must not be
	// changed.
	Takes *Abilities `json:"takes,omitempty"`
}

// Counter returns the counter of the model's tokens; vendor is the Catalogue.Vendor of its provider.
// The error is token.ErrUnknownEncoding.
func (m Model) Counter(vendor string) (token.Counter, error) {
	if m.Count != nil {
		return token.NewOwnCounter(m.Count, vendor), nil
	}
	return token.NewCounter(m.Encoding, vendor)
}

// exact reports whether texts are counted exactly.
func (m Model) exact() bool { return m.Encoding != "" || m.Count != nil }

// Reserve returns the number of tokens of the window that are reserved for the answer: the
// call's maxOutput, or else 16,384 or a quarter of the window if that is less; plus 512 for
// what no count includes.
func (m Model) Reserve(maxOutput int) int {
	if maxOutput <= 0 {
		maxOutput = min(defaultOutput, m.Window/4)
	}
	return maxOutput + outputMargin
}

// Room returns the maximum input of a call in tokens, including instructions and tools: the
// window minus Reserve, at most MaxInput. It is 0 if the reserve takes the whole window.
func (m Model) Room(maxOutput int) int {
	room := max(0, m.Window-m.Reserve(maxOutput))
	if m.MaxInput > 0 {
		room = min(room, m.MaxInput)
	}
	return room
}

// override returns m with the fields that o sets.
func (m Model) override(o Model) Model {
	return Model{
		Name:      cmp.Or(o.Name, m.Name),
		Window:    positive(o.Window, m.Window),
		MaxInput:  positive(o.MaxInput, m.MaxInput),
		MaxOutput: positive(o.MaxOutput, m.MaxOutput),
		Encoding:  cmp.Or(o.Encoding, m.Encoding),
		Count:     cmp.Or(o.Count, m.Count),
		Price:     m.Price.override(o.Price),
		Takes:     m.Takes.override(o.Takes),
	}
}

func positive[N int | float64](o, m N) N {
	if o > 0 {
		return o
	}
	return m
}

// Catalogue finds descriptions of models. It is safe for concurrent use.
type Catalogue struct {
	// Logger receives one debug message for each unknown model; nil means none. It must be
	// set before the first use.
	Logger *slog.Logger
	// Vendors maps providers with custom names to the vendor whose models they serve:
	// "work": "anthropic". The description of such a model is the vendor's, overridden by
	// entries under the provider's own name. It must be set before the first use.
	Vendors map[string]string

	models func() map[string]Model // by name; immutable, made at the first use

	mu     sync.Mutex
	warned map[string]bool
}

// NewCatalogue returns a catalogue of the built-in table and the overrides, of which the
// last takes precedence. Fields of an override that are not positive keep the value for a
// model of that name, exactly or by prefix.
func NewCatalogue(over ...Model) *Catalogue {
	over = slices.Clone(over)
	return &Catalogue{
		models: sync.OnceValue(func() map[string]Model { return overrideModels(builtInModels(), over) }),
		warned: make(map[string]bool),
	}
}

// builtInModels is the built-in table, which a process reads when it first looks for a model.
var builtInModels = sync.OnceValue(readModels) //nolint:gochecknoglobals // an immutable table

func readModels() map[string]Model {
	var table struct {
		Models []Model `json:"models"`
	}
	if err := json.Unmarshal(modelTable, &table); err != nil {
		panic("llm: models.json: " + err.Error())
	}
	models := make(map[string]Model, len(table.Models))
	for _, m := range table.Models {
		models[m.Name] = m
	}
	return models
}

// overrideModels returns the table with overrides, of which the last takes precedence.
func overrideModels(table map[string]Model, over []Model) map[string]Model {
	if len(over) == 0 {
		return table
	}
	models := maps.Clone(table)
	for _, o := range over {
		o.Name = strings.TrimSuffix(o.Name, "/")
		known, _ := findModel(models, o.Name) // of an unknown one Find has the default
		models[o.Name] = known.override(o)
	}
	return models
}

// Find returns the description under the longest name in the catalogue that is a prefix of
// the model's name. The prefix must end with the model's name or before one of "-.:@/_",
// and what follows must not denote another version: "gpt-4" matches gpt-4-0613 and
// gpt-4-vision-preview, but not gpt-4o, gpt-4.1 or gpt-4-32k. One or two digits denote a
// version, after a dot any digit; more digits are a date or build. A name that itself ends
// in such a character matches all models with that prefix.
//
// An unknown model has DefaultWindow, no encoding and no price, and is logged once.
func (c *Catalogue) Find(provider, model string) (m Model, known bool) {
	model = strings.TrimPrefix(model, "models/") // Gemini's resource names
	name := provider + "/" + model
	m, known = c.find(name)
	if vendor := c.Vendor(provider); vendor != provider {
		if theirs, ok := c.find(vendor + "/" + model); ok {
			m, known = theirs.override(m), true
		}
	}
	if !known {
		c.warn(provider, model)
		m.Name = name
	}
	if m.Window <= 0 {
		m.Window = DefaultWindow
	}
	return m, known
}

// Vendor returns the vendor whose models a provider serves; by default its own name.
func (c *Catalogue) Vendor(provider string) string { return cmp.Or(c.Vendors[provider], provider) }

func (c *Catalogue) find(name string) (Model, bool) { return findModel(c.models(), name) }

// findModel returns the model under the longest name that matches.
func findModel(models map[string]Model, name string) (Model, bool) {
	for end := len(name); end > 0; end-- {
		if m, ok := models[name[:end]]; ok && boundary(name, end) {
			return m, true
		}
	}
	return Model{}, false
}

func (c *Catalogue) warn(provider, model string) {
	if c.Logger == nil {
		return
	}
	c.mu.Lock()
	key := provider + "/" + model
	first := !c.warned[key]
	c.warned[key] = true
	c.mu.Unlock()
	if first {
		c.Logger.Debug("unknown model: using the default window and no price; set both in the configuration",
			"provider", provider, "model", model, "window", DefaultWindow)
	}
}

const separators = "-.:@/_"

// boundary reports whether name[:end] matches name.
func boundary(name string, end int) bool {
	if end == len(name) || strings.IndexByte(separators, name[end-1]) >= 0 {
		return true
	}
	if strings.IndexByte(separators, name[end]) < 0 {
		return false
	}
	digits := 0
	for _, c := range []byte(name[end+1:]) {
		if c < '0' || c > '9' {
			break
		}
		digits++
	}
	switch name[end] {
	case '.':
		return digits == 0
	case '-', '_':
		return digits == 0 || digits > 2
	default:
		return true
	}
}
