package llm

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
)

// DefaultWindow is the window, in tokens, of a model that nothing is known of.
const DefaultWindow = 128_000

// What is kept free for the answer where a call does not say, and beside it.
const (
	defaultOutput = 16_384
	outputMargin  = 512
)

//go:embed models.json
var modelTable []byte

// Model is what is known of a model.
type Model struct {
	// Name is "provider/prefix", as "openai/gpt-5-mini", which also stands for
	// "gpt-5-mini-2025-08-07"; or "provider" alone, for whatever else it has.
	// What may follow a prefix is said at Catalogue.Find.
	Name string `json:"name"`
	// Window bounds input and output together, in tokens.
	Window int `json:"window,omitempty"`
	// MaxInput bounds the input, where the vendor has a bound below the window;
	// 0 is the window.
	MaxInput int `json:"maxInput,omitempty"`
	// MaxOutput is the longest answer the vendor gives; 0 is not known.
	MaxOutput int `json:"maxOutput,omitempty"`
	// Encoding is "o200k_base", "cl100k_base", or "" where tokens can only be
	// estimated.
	Encoding string `json:"encoding,omitempty"`
	// Price is zero where it is not known; one that is free says so.
	Price Price `json:"price,omitzero"`
}

// Reserve is how many tokens of the window are kept free for the answer: the
// call's maxOutput, else 16,384 or a quarter of the window where that is less;
// and 512 beside it, for what no count foresees.
func (m Model) Reserve(maxOutput int) int {
	if maxOutput <= 0 {
		maxOutput = min(defaultOutput, m.Window/4)
	}
	return maxOutput + outputMargin
}

// Room is how many tokens the input of a call may have, instructions and tools
// included: the window less Reserve, and not over MaxInput. It is 0 where the
// reserve takes the whole window.
func (m Model) Room(maxOutput int) int {
	room := max(0, m.Window-m.Reserve(maxOutput))
	if m.MaxInput > 0 {
		room = min(room, m.MaxInput)
	}
	return room
}

// override returns m with the fields of o that say something.
func (m Model) override(o Model) Model {
	return Model{
		Name:      cmp.Or(o.Name, m.Name),
		Window:    positive(o.Window, m.Window),
		MaxInput:  positive(o.MaxInput, m.MaxInput),
		MaxOutput: positive(o.MaxOutput, m.MaxOutput),
		Encoding:  cmp.Or(o.Encoding, m.Encoding),
		Price:     m.Price.override(o.Price),
	}
}

func positive[N int | float64](o, m N) N {
	if o > 0 {
		return o
	}
	return m
}

// Catalogue finds what is known of models. It may be used by any number of
// goroutines.
type Catalogue struct {
	// Logger is told once, at debug, of each model that is not known; nil is nobody. It
	// is set before the first use.
	Logger *slog.Logger
	// Vendors says of providers with a name of their own whose models they serve:
	// "work": "anthropic". Of such a model is known what is known of the vendor's,
	// under what the catalogue holds by the provider's own name. It is set before
	// the first use.
	Vendors map[string]string

	models map[string]Model // by name; not written after construction

	mu     sync.Mutex
	warned map[string]bool
}

// NewCatalogue makes a catalogue of the built-in table and what is laid over
// it, the last one strongest. Fields of an override that are not positive keep
// what was known of a model of that name, exactly or by prefix.
func NewCatalogue(over ...Model) *Catalogue {
	var table struct {
		Models []Model `json:"models"`
	}
	if err := json.Unmarshal(modelTable, &table); err != nil {
		panic("llm: models.json: " + err.Error())
	}
	c := &Catalogue{models: make(map[string]Model, len(table.Models)+len(over)), warned: make(map[string]bool)}
	for _, m := range table.Models {
		c.models[m.Name] = m
	}
	for _, o := range over {
		o.Name = strings.TrimSuffix(o.Name, "/")
		known, ok := c.find(o.Name)
		if !ok {
			known = Model{} // Find has the default
		}
		c.models[o.Name] = known.override(o)
	}
	return c
}

// Find returns what is known of a model by the longest name in the catalogue
// that it begins with. The name must end where the model's does or before one
// of "-.:@/_", and what follows must not make another version of it: "gpt-4"
// stands for gpt-4-0613 and gpt-4-vision-preview, not for gpt-4o, gpt-4.1 or
// gpt-4-32k. One or two digits make a version, after a dot any digit; more are
// a date or build. A name that itself ends in such a character stands for all
// that begin with it.
//
// A model that is not known has DefaultWindow, no encoding and no price, and is
// warned of once.
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

// Vendor is whose models a provider serves: its own name where nothing else is
// said.
func (c *Catalogue) Vendor(provider string) string { return cmp.Or(c.Vendors[provider], provider) }

func (c *Catalogue) find(name string) (Model, bool) {
	for end := len(name); end > 0; end-- {
		if m, ok := c.models[name[:end]]; ok && boundary(name, end) {
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
		c.Logger.Debug("model is not known: its window is taken to be the default and its price unknown; set both in the configuration",
			"provider", provider, "model", model, "window", DefaultWindow)
	}
}

const separators = "-.:@/_"

// boundary reports whether name[:end] may stand for name.
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
