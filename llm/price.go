package llm

import (
	"encoding/json"
	"math"
)

// Price is what a model costs, in US dollars per million tokens, which is
// millionths of a dollar per token. Up to six places behind the point count.
type Price struct {
	Input float64 `json:"input,omitempty"`
	// Cached and Written are those of input read from and written to the
	// vendor's cache; 0 is the price of Input.
	Cached  float64 `json:"cached,omitempty"`
	Written float64 `json:"written,omitempty"`
	Output  float64 `json:"output,omitempty"`
	// Long, where set, is the price of all tokens of a call whose input has more
	// than LongOver; its own Long has no meaning.
	LongOver int    `json:"longOver,omitempty"`
	Long     *Price `json:"long,omitempty"`
	// Free says that a call costs nothing, which a price of zero alone does not:
	// that is one that is not known. In JSON it is an input and an output of 0.
	Free bool `json:"-"`
}

// UnmarshalJSON reads a price, and sees whether it says that the model is free.
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

// Known reports whether there is a price, which may be that the model is free.
func (p Price) Known() bool { return p.Free || p.Input > 0 || p.Output > 0 }

// override returns p with the fields of o that say something.
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

// scale makes prices integers: millionths of a millionth of a dollar per token.
const scale = 1_000_000

// Cost is what a call costs in millionths of a US dollar: the exact sum over
// its tokens, rounded once, half up. Cached and Written are parts of u.Input,
// and Reasoning of u.Output, and are not charged twice. Exact for up to 10^9
// tokens at up to 1,000 dollars a million. It is 0 where no price is known.
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
