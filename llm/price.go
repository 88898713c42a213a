package llm

import (
	"encoding/json"
	"math"
)

// Price is the price of a model in US dollars per million tokens, which equals millionths
// of a dollar per token. Up to six decimal places count.
type Price struct {
	Input float64 `json:"input,omitempty"`
	// Cached and Written are the prices of input read from and written to the vendor's
	// cache; 0 means the price of Input.
	Cached  float64 `json:"cached,omitempty"`
	Written float64 `json:"written,omitempty"`
	Output  float64 `json:"output,omitempty"`
	// Long, if set, is the price of all tokens of a call whose input has more than
	// LongOver; its own Long is ignored.
	LongOver int    `json:"longOver,omitempty"`
	Long     *Price `json:"long,omitempty"`
	// Free says that calls cost nothing, as opposed to a zero price, which is unknown. In
	// JSON it is an input and an output of 0.
	Free bool `json:"-"`
}

// UnmarshalJSON reads a price and detects a free model.
func (p *Price) UnmarshalJSON(data []byte) error {
	type plain Price
	given := struct {
		Input  *float64 `json:"input"`
		Output *float64 `json:"output"`
		*plain
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(data, &given); err != nil {
		return err
	}
	if given.Input != nil {
		p.Input = *given.Input
	}
	if given.Output != nil {
		p.Output = *given.Output
	}
	p.Free = given.Input != nil && given.Output != nil && p.Input == 0 && p.Output == 0
	return nil
}

// Known reports whether the price is known, which includes free models.
func (p Price) Known() bool { return p.Free || p.Input > 0 || p.Output > 0 }

// override returns p with the fields that o sets.
func (p Price) override(o Price) Price {
	if o.Free {
		return o
	}
	out := Price{
		Input:    positive(o.Input, p.Input),
		Cached:   positive(o.Cached, p.Cached),
		Written:  positive(o.Written, p.Written),
		Output:   positive(o.Output, p.Output),
		LongOver: positive(o.LongOver, p.LongOver),
		Long:     p.Long,
	}
	out.Free = p.Free && !out.Known()
	if o.Long != nil {
		out.Long = o.Long
	}
	return out
}

// scale converts prices to integers: millionths of a millionth of a dollar per token.
const scale = 1_000_000

// Cost returns the cost of a call in millionths of a US dollar: the exact sum over its
// tokens, rounded once, half up. Cached and Written are parts of u.Input, and Reasoning of
// u.Output, and are not charged twice. It is exact for up to 10^9 tokens at up to 1,000
// dollars a million, and 0 if the price is unknown.
func (m Model) Cost(u Usage) int64 {
	p := m.Price
	if p.Long != nil && u.Input > p.LongOver {
		p = *p.Long
	}
	cached, written := max(0, u.Cached), max(0, u.Written)
	plain := max(0, u.Input-cached-written)
	input := rate(p.Input)
	sum := int64(plain)*input +
		int64(cached)*rateOr(p.Cached, input) +
		int64(written)*rateOr(p.Written, input) +
		int64(max(0, u.Output))*rate(p.Output)
	return (sum + scale/2) / scale
}

func rate(dollars float64) int64 {
	if !(dollars > 0) {
		return 0
	}
	return int64(math.Round(dollars * scale))
}

func rateOr(dollars float64, otherwise int64) int64 {
	if r := rate(dollars); r > 0 {
		return r
	}
	return otherwise
}
