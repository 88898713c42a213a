package llm_test

import (
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/llm"
)

func TestACostIsExactAndRoundedOnceHalfUp(t *testing.T) {
	price := llm.Price{Input: 1.25, Cached: 0.125, Written: 1.5625, Output: 10}
	long := llm.Price{Input: 1, Output: 2, LongOver: 10, Long: &llm.Price{Input: 3, Output: 4}}
	for _, tt := range []struct {
		what  string
		price llm.Price
		usage llm.Usage
		want  int64
	}{
		{"nothing", price, llm.Usage{}, 0},
		{"a million in", price, llm.Usage{Input: 1_000_000}, 1_250_000},
		{"half a millionth goes up", price, llm.Usage{Input: 2}, 3},
		{"less goes down", price, llm.Usage{Input: 1}, 1},
		{"rounded once and not for each part", price, llm.Usage{Input: 8, Cached: 4, Written: 1}, 6},
		{"the cache's are parts of the input", price, llm.Usage{Input: 1_000, Cached: 1_000}, 125},
		{"reasoning is part of the output", price, llm.Usage{Output: 10, Reasoning: 9}, 100},
		{"more from the cache than there was", price, llm.Usage{Input: 0, Cached: 8}, 1},
		{"no price for the cache is the input's", llm.Price{Input: 2, Output: 3}, llm.Usage{Input: 10, Cached: 4, Written: 5}, 20},
		{"no price", llm.Price{}, llm.Usage{Input: 10, Output: 10}, 0},
		{"at the bound it is not long", long, llm.Usage{Input: 10, Output: 1}, 12},
		{"over it all of it is", long, llm.Usage{Input: 11, Output: 1}, 37},
		{"five thousandths a million", llm.Price{Input: 0.005}, llm.Usage{Input: 300}, 2},
	} {
		if got := (llm.Model{Price: tt.price}).Cost(tt.usage); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.what, got, tt.want)
		}
	}
}

// The prices of the table are decimals, so a rational says what is right.
func TestTheCostsOfTheTableAreThoseOfRationals(t *testing.T) {
	table := llm.Table()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(table).Draw(t, "model")
		tokens := rapid.IntRange(0, 1_000_000_000)
		u := llm.Usage{Cached: tokens.Draw(t, "cached"), Written: tokens.Draw(t, "written"), Output: tokens.Draw(t, "output")}
		plain := tokens.Draw(t, "input")
		u.Input = plain + u.Cached + u.Written
		p := m.Price
		if p.Long != nil && u.Input > p.LongOver {
			p = *p.Long
		}
		or := func(price float64) float64 {
			if price == 0 {
				return p.Input
			}
			return price
		}
		sum := big.NewRat(1, 2)
		for _, part := range []struct {
			tokens int
			price  float64
		}{{plain, p.Input}, {u.Cached, or(p.Cached)}, {u.Written, or(p.Written)}, {u.Output, p.Output}} {
			price, _ := new(big.Rat).SetString(decimal(part.price))
			sum.Add(sum, price.Mul(price, big.NewRat(int64(part.tokens), 1)))
		}
		want := new(big.Int).Quo(sum.Num(), sum.Denom()).Int64()
		if got := m.Cost(u); got != want {
			t.Fatalf("%s %+v: %d, want %d", m.Name, u, got, want)
		}
	})
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
