package expr_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/flow/expr"
)

// drawValue draws a value as flows have them.
func drawValue(t *rapid.T, depth int) any {
	switch n := rapid.IntRange(0, 7).Draw(t, "kind"); {
	case n == 0:
		return nil
	case n == 1:
		return rapid.Bool().Draw(t, "bool")
	case n == 2:
		return rapid.Int64().Draw(t, "int")
	case n == 3:
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "double") + 0.25
	case n < 6 || depth == 0:
		return rapid.String().Draw(t, "text")
	case n == 6:
		out := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range out {
			out[i] = drawValue(t, depth-1)
		}
		return out
	}
	out := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "size") {
		out[rapid.String().Draw(t, "name")] = drawValue(t, depth-1)
	}
	return out
}

// holds requires an expression over v, a list of ints l and a text s to be true.
func holds(t *rapid.T, src string, vars expr.Map) {
	t.Helper()
	p, err := expr.Compile(src)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Eval(vars); err != nil || got != true {
		t.Fatalf("%s is %v, %v", src, got, err)
	}
}

func TestEncodedTextIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vars := expr.Map{"v": drawValue(t, 3), "s": rapid.String().Draw(t, "s")}
		for _, law := range []string{
			"fromJson(toJson(v)) == v",
			"fromJson(toJson(v, 2)) == v",
			"json.parse(toJson([s]))[0] == s",
			"url.decode(url.encode(s)) == s",
			"string(base64.decode(base64.encode(s))) == s",
			"string(base64.decodeUrl(base64.encodeUrl(s))) == s",
			"hash.sha256(s) == hash.sha256(bytes(s)) && hash.sha256(s).size() == 64",
			"s.reverse().reverse() == s",
			"s.padStart(9).size() == math.greatest(9, s.size()) && s.padEnd(9, 'xy').startsWith(s)",
			"s.split('').join() == s",
		} {
			holds(t, law, vars)
		}
	})
}

func TestFunctionsOfListsKeepTheirLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l []any
		for _, n := range rapid.SliceOfN(rapid.Int64Range(-50, 50), 0, 20).Draw(t, "l") {
			l = append(l, n)
		}
		vars := expr.Map{"l": append([]any{}, l...)}
		for _, law := range []string{
			"l.sum() == l.reduce(a, x, 0, a + x)",
			"l.sort().first() == l.min() && l.sort().last() == l.max()",
			"l.unique() == l.distinct()",
			"l.groupBy(x, x).keys().size() == l.unique().size()",
			"l.groupBy(x, x % 3).values().flatten().sort() == l.sort()",
			"l.zip(l).all(p, p[0] == p[-1])",
			"l.reverse().reverse() == l",
			"l.size() == 0 || l[-1] == l[l.size() - 1]",
			"l.avg() == (l.size() == 0 ? optional.none() : optional.of(l.sum() / double(l.size())))",
			"l.transformMapEntry(i, x, {string(i): x}).values().sum() == l.sum()",
		} {
			holds(t, law, vars)
		}
	})
}

func TestTimesArePrintedAndRead(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Australia/Lord_Howe"}
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), 0).UTC()
		vars := expr.Map{"t": at, "zone": rapid.SampledFrom(zones).Draw(t, "zone")}
		for _, law := range []string{
			"parseTime(t.formatTime('%Y-%m-%d %H:%M:%S %z', zone), '%Y-%m-%d %H:%M:%S %z') == t",
			"parseTime(t.formatTime('%FT%T'), '%FT%T') == t",
			"t.startOf('day', zone) <= t && t.startOf('day', zone).startOf('day', zone) == t.startOf('day', zone)",
			"t.startOf('week', zone).formatTime('%a', zone) == 'Mon'",
			"t.addDate(0, 0, 1).addDate(0, 0, -1) == t",
			"t.addDate(1, 0, 0).getFullYear() == t.getFullYear() + 1",
		} {
			holds(t, law, vars)
		}
	})
}

func TestMacrosReadObjectsInTheSameOrder(t *testing.T) {
	big := map[string]any{}
	for i := range 50 {
		big[fmt.Sprint("k", i)] = int64(i)
	}
	for _, src := range []string{
		"o.map(k, k)", "o.transformList(k, v, v)", "o.keys()", "o.values()", "o.filter(k, o[k] > 7)", "lazy.map(k, k)", "lazy.transformList(k, v, v)",
		"o.merge({'z': 1}).map(k, k)", "o.transformMap(k, v, v + 1).map(k, k)", "o.keys().groupBy(k, k).map(k, k)", "toJson(o)",
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		var first any
		for i := range 20 {
			got, err := p.Eval(expr.Map{"o": big, "lazy": &lazy{m: big}})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = got
			}
			if !reflect.DeepEqual(got, first) {
				t.Fatalf("%s: %v, then %v", src, first, got)
			}
		}
		if l, ok := first.([]any); ok && src == "o.map(k, k)" && !strings.HasPrefix(fmt.Sprint(l), "[k0 k1 k10 k11") {
			t.Errorf("%s is %v", src, l)
		}
	}
}

func TestAQuestionMarkIsReadAsWritten(t *testing.T) {
	vars := expr.Map{"a": object{"b": object{"c": int64(1)}}, "yes": true, "x": int64(5)}
	for src, want := range map[string]any{
		"a?.b?.c": int64(1), "a ?.b": "error", "a?.b.c": int64(1), "yes ? .x : 1": int64(5), "yes?.x:1": int64(5), "'a?.b'": "a?.b",
		"\"\\\"a?.b\"": "\"a?.b", "r'\\'+'?.b'": "\\?.b", "// a?.b\n1": int64(1), "a?.b // a?.b": object{"c": int64(1)},
		"a['b']?.c": int64(1), "(a)?.b.c": int64(1), "a?.gone.orValue(1) + a?.b.c.orValue(1)": int64(2), "yes?.5:1": 0.5,
	} {
		p, err := expr.Compile(src)
		var got any = "error"
		if err == nil {
			if got, err = p.Eval(vars); err != nil {
				t.Errorf("%s: %v", src, err)
				continue
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, %v; want %v", src, got, err, want)
		}
	}
}
