package expr

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

func textLibrary() []cel.EnvOption {
	s := cel.StringType
	mapped := func(f func(string) string) implementation {
		return func(a ...ref.Val) ref.Val { return types.String(f(string(a[0].(types.String)))) }
	}
	opts := []cel.EnvOption{
		method("upper", "string_upper", mapped(strings.ToUpper), s, s),
		method("lower", "string_lower", mapped(strings.ToLower), s, s),
	}
	for _, atStart := range []bool{true, false} {
		name := "padEnd"
		if atStart {
			name = "padStart"
		}
		do := func(a ...ref.Val) ref.Val { return pad(name, atStart, a) }
		opts = append(opts, method(name, "string_"+name, do, s, s, cel.IntType),
			method(name, "string_"+name+"_string", do, s, s, cel.IntType, s))
	}
	return opts
}

// pad fills a text to a length in characters.
func pad(name string, atStart bool, a []ref.Val) ref.Val {
	text, length, with := string(a[0].(types.String)), int64(a[1].(types.Int)), " "
	if len(a) == 3 {
		with = string(a[2].(types.String))
	}
	missing := length - int64(utf8.RuneCountInString(text))
	switch {
	case missing <= 0:
		return a[0]
	case with == "":
		return types.NewErr("%s: the text to fill with is empty", name)
	}
	per := int64(utf8.RuneCountInString(with))
	if missing > MaxResult || int64(len(with))*(missing/per+1) > MaxResult {
		return types.NewErr("%s: the result is longer than %d bytes", name, MaxResult)
	}
	fill := strings.Repeat(with, int(missing/per)) + string([]rune(with)[:missing%per])
	if atStart {
		return types.String(fill + text)
	}
	return types.String(text + fill)
}

func numberLibrary() []cel.EnvOption {
	d, i, s := cel.DynType, cel.IntType, cel.StringType
	return []cel.EnvOption{
		global("formatNumber", "format_number", formatNumber, s, d, i),
		global("formatNumber", "format_number_separators", formatNumber, s, d, i, s, s),
		global("math.roundTo", "round_to", roundTo, d, d, i),
	}
}

// maxDecimals is how many decimals a double can mean.
const maxDecimals = 20

func formatNumber(a ...ref.Val) ref.Val {
	decimals, thousands, point := int64(a[1].(types.Int)), ",", "."
	if len(a) == 4 {
		thousands, point = string(a[2].(types.String)), string(a[3].(types.String))
	}
	if decimals < 0 || decimals > maxDecimals {
		return types.NewErr("formatNumber: %d decimals; expected 0 to %d", decimals, maxDecimals)
	}
	if len(thousands)+len(point) > 64 {
		return types.NewErr("formatNumber: the separators are longer than 64 bytes")
	}
	text := ""
	switch x := a[0].(type) {
	case types.Int:
		text = strconv.FormatInt(int64(x), 10)
	case types.Uint:
		text = strconv.FormatUint(uint64(x), 10)
	case types.Double:
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return types.NewErr("formatNumber: %v is not a number", float64(x))
		}
		text = strconv.FormatFloat(float64(x), 'f', int(decimals), 64)
	default:
		return undefined("formatNumber", a...)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	sign := ""
	if rest, negative := strings.CutPrefix(whole, "-"); negative {
		whole = rest
		if strings.Trim(text, "-0.") != "" { // -0.001 with two decimals is 0.00
			sign = "-"
		}
	}
	var b strings.Builder
	b.WriteString(sign)
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteString(thousands)
		}
		b.WriteByte(whole[i])
	}
	if decimals > 0 {
		b.WriteString(point + fraction + strings.Repeat("0", int(decimals)-len(fraction)))
	}
	return types.String(b.String())
}

// roundTo rounds halves away from zero, as they are written: 2.675 to 2.68, although the
// double is slightly less.
func roundTo(a ...ref.Val) ref.Val {
	decimals := int64(a[1].(types.Int))
	if decimals < -maxDecimals || decimals > maxDecimals {
		return types.NewErr("math.roundTo: %d decimals; expected %d to %d", decimals, -maxDecimals, maxDecimals)
	}
	if x, ok := a[0].(types.Int); ok {
		return roundInt(x, decimals)
	}
	if x, ok := a[0].(types.Double); ok {
		return roundDouble(float64(x), int(decimals))
	}
	return undefined("math.roundTo", a...)
}

func roundInt(x types.Int, decimals int64) ref.Val {
	if decimals >= 0 {
		return x
	}
	if decimals < -18 { // 10^19 does not fit, and half of it exceeds every int
		return types.Int(0)
	}
	unit := int64(1)
	for range -decimals {
		unit *= 10
	}
	n, rest := int64(x)/unit, int64(x)%unit
	switch {
	case rest >= unit-rest:
		n++
	case -rest >= unit+rest:
		n--
	}
	return types.Int(n).Multiply(types.Int(unit))
}

func roundDouble(x float64, decimals int) ref.Val {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return types.Double(x)
	}
	digits := strconv.FormatFloat(math.Abs(x), 'f', -1, 64)
	whole, fraction, _ := strings.Cut(digits, ".")
	all := whole + fraction
	keep := len(whole) + decimals // how many digits stay
	if keep >= len(all) {
		return types.Double(x)
	}
	if keep < 0 {
		return types.Double(0)
	}
	kept, _ := new(big.Int).SetString("0"+all[:keep], 10)
	if all[keep] >= '5' {
		kept.Add(kept, big.NewInt(1))
	}
	value, err := strconv.ParseFloat(fmt.Sprintf("%se%d", kept, -decimals), 64)
	if err != nil {
		return types.NewErr("math.roundTo: the result is too large")
	}
	return types.Double(math.Copysign(value, x))
}
