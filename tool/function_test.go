package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/tool"
)

type place struct {
	City    string `doc:"The city." json:"city"`
	Country string `doc:"ISO 3166 code." json:"country,omitempty"`
}

type forecast struct {
	place
	Days  int            `doc:"How many." json:"days"`
	Unit  *string        `enum:"celsius, fahrenheit" json:"unit"`
	Via   []place        `doc:"Stops." json:"via,omitempty"`
	Tags  map[string]int `json:"tags,omitempty"`
	Since time.Time      `json:"since,omitzero"`
	Note  string         `json:"-"`
}

func forecastTool(t *testing.T) *tool.Tool {
	t.Helper()
	f, err := tool.FromFunc("forecast", "Tells the weather.", func(_ context.Context, in forecast) (forecast, error) { return in, nil })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheSchemaFollowsFromTheStruct(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(forecastTool(t).Parameters)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"additionalProperties":false,"properties":{` +
		`"city":{"description":"The city.","type":"string"},` +
		`"country":{"description":"ISO 3166 code.","type":"string"},` +
		`"days":{"description":"How many.","type":"integer"},` +
		`"since":{"type":"string"},` +
		`"tags":{"additionalProperties":{"type":"integer"},"type":"object"},` +
		`"unit":{"enum":["celsius","fahrenheit"],"type":"string"},` +
		`"via":{"description":"Stops.","items":{"additionalProperties":false,"properties":{` +
		`"city":{"description":"The city.","type":"string"},"country":{"description":"ISO 3166 code.","type":"string"}},` +
		`"required":["city"],"type":"object"},"type":"array"}},` +
		`"required":["city","days"],"type":"object"}`
	if string(got) != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
}

func TestFunctionGetsTheModelsArguments(t *testing.T) {
	t.Parallel()
	got, err := forecastTool(t).Run(t.Context(), tool.Call{
		Arguments: `{"city":"Zürich","days":3,"unit":null,"country":null,"via":[{"city":"<Bern>"}],"tags":{"a":9007199254740993}}`,
	})
	const want = `{"city":"Zürich","days":3,"unit":null,"via":[{"city":"<Bern>"}],"tags":{"a":9007199254740993}}`
	if err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestInvalidArgumentsGiveAnActionableError(t *testing.T) {
	t.Parallel()
	f := forecastTool(t)
	for arguments, wants := range map[string][]string{
		`{"city":"Bern"}`:                              {"days", "missing", "it takes city, country, days"},
		`{"city":1,"days":"x"}`:                        {"city: expected string, got number", "days: expected integer, got string"},
		`{"city":"Bern","days":1,"day":2}`:             {"'day' not allowed"},
		`{"city":"Bern","days":1,"unit":"kelvin"}`:     {"unit: value must be one of 'celsius', 'fahrenheit'"},
		`{"city":"Bern","days":1,"via":[{"city":{}}]}`: {"via.0.city: expected string, got object"},
		`{"city":null,"days":1}`:                       {"city: expected string, got null"},
		`{"city":"Bern","days":99999999999999999999}`:  {"do not fit"},
		`{"city":"Bern"`:                               {"are not JSON"},
		`["Bern"]`:                                     {"not a JSON object"},
		``:                                             {"missing"},
	} {
		_, err := f.Run(t.Context(), tool.Call{Arguments: arguments})
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: expected %q in %v", arguments, want, err)
			}
		}
	}
}

func TestAFunctionWithoutFieldsTakesNoArguments(t *testing.T) {
	t.Parallel()
	f, err := tool.FromFunc("now", "The time.", func(context.Context, struct{}) (string, error) { return "noon <sharp>", nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{"", "{}"} {
		if got, err := f.Run(t.Context(), tool.Call{Arguments: arguments}); got != "noon <sharp>" || f.Parameters != nil {
			t.Errorf("got %q, %v, %v", got, err, f.Parameters)
		}
	}
	if _, err := f.Run(t.Context(), tool.Call{Arguments: `{"zone":"UTC"}`}); err == nil || !strings.Contains(err.Error(), "it takes none") {
		t.Errorf("got %v", err)
	}
}

func TestInvalidToolIsRefusedAtConstruction(t *testing.T) {
	t.Parallel()
	_, text := tool.FromFunc("f", "", func(context.Context, string) (string, error) { return "", nil })
	_, channel := tool.FromFunc("f", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
	_, enum := tool.FromFunc("f", "", func(context.Context, struct {
		N int `enum:"1,2"`
	},
	) (string, error) {
		return "", nil
	})
	_, name := tool.FromFunc("f f", "", func(context.Context, struct{}) (string, error) { return "", nil })
	_, schema := tool.FromSchema("f", "", map[string]any{"type": "thing"}, nil)
	_, remote := tool.FromSchema("f", "", map[string]any{"$ref": "https://example.com/s.json"}, nil)
	for want, err := range map[string]error{
		"string is not one": text, "chan": channel, "enum tag": enum, "letters": name, "type": schema, "s.json": remote,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error with %q, got %v", want, err)
		}
	}
}

func TestOfIsGivenTheCallAndItsArguments(t *testing.T) {
	t.Parallel()
	var key string
	f, err := tool.FromSchema("flow", "Runs a flow.", map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{}}},
		func(_ context.Context, call tool.Call, args map[string]any) (string, error) {
			key = call.Key
			return "", errors.New(args["n"].(json.Number).String())
		})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Run(t.Context(), tool.Call{Key: "r/n/tool#0", Arguments: `{"n":12345678901234567890}`}); err == nil ||
		err.Error() != "12345678901234567890" || key != "r/n/tool#0" {
		t.Errorf("got %v, key %s", err, key)
	}
}

func ExampleFromFunc() {
	type in struct {
		City string `doc:"The city." json:"city"`
	}
	weather, err := tool.FromFunc("weather", "Tells the weather of a city.", func(_ context.Context, in in) (string, error) {
		return "sunny in " + in.City, nil
	})
	if err != nil {
		panic(err)
	}
	weather.ReadOnly = true
	text, err := weather.Run(context.Background(), tool.Call{Arguments: `{"city": "Lyon"}`})
	fmt.Println(text, err)
	_, err = weather.Run(context.Background(), tool.Call{Arguments: `{"town": "Lyon"}`})
	fmt.Println(err)
	// Output:
	// sunny in Lyon <nil>
	// the arguments do not fit the tool (it takes city): missing property 'city'; additional properties 'town' not allowed
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"city":"Bern","days":1}`, `{"days":1e400}`, `{"via":[{}]}`, `null`, "", `{"city":"\ud800"}`} {
		f.Add(s)
	}
	a, err := tool.NewArguments(map[string]any{
		"type": "object", "required": []any{"city"}, "additionalProperties": false,
		"properties": map[string]any{"city": map[string]any{"type": "string"}, "days": map[string]any{"type": "integer"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		args, err := a.Read(s)
		if err != nil {
			return
		}
		if _, ok := args["city"].(string); !ok || len(args) > 2 {
			t.Fatalf("%q was read as %v", s, args)
		}
		for name, v := range args {
			if _, isNumber := v.(json.Number); name != "city" && (name != "days" || !isNumber) {
				t.Fatalf("%q was read as %v", s, args)
			}
		}
	})
}
