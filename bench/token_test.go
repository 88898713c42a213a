package bench

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/token"
)

// BenchmarkTokens measures counting, in MB/s of text, for the texts that models
// are sent and for those that break a tokenizer which is not linear.
func BenchmarkTokens(b *testing.B) {
	texts := []struct{ name, text string }{
		{"english", repeatText(prose)},
		{"code", goCode(b)},
		{"json", repeatText(jsonRow)},
		{"airline", airlineText(b)},
		{"chinese", repeatText("请帮我把这张机票改签到下周三，谢谢。")},
		{"emoji", repeatText("👩‍👩‍👧‍👦🎉 ✈️🇩🇪")},
		{"letters", strings.Repeat("a", 1e6)},
		{"spaces", strings.Repeat(" ", 1e6) + "x"},
		{"digits", repeatText("0123456789")},
		{"symbols", repeatText("=-")},
		{"mixed", repeatText("a1 \tÄ'S中\r\n  _")},
	}
	for _, name := range []string{token.O200k, token.Cl100k} {
		e, err := token.Get(name)
		if err != nil {
			b.Fatal(err)
		}
		for _, t := range texts {
			b.Run(name+"/"+t.name, func(b *testing.B) {
				if t.text == "" {
					b.Skip("the conversations are not here")
				}
				b.SetBytes(int64(len(t.text)))
				b.ReportAllocs()
				e.Count(t.text) // the scratch space grows once
				for b.Loop() {
					if e.Count(t.text) == 0 {
						b.Fatal("no tokens")
					}
				}
			})
		}
	}
}

const prose = "The customer would like to change the flight that she booked last week, " +
	"but her fare doesn't allow changes. You'll need to explain the airline's policy, " +
	"offer the alternatives (a refund in travel credit, or a new booking), and wait for an answer. "

const jsonRow = `{"reservation_id":"4WQ150","user_id":"chen_jackson_3290","origin":"DFW","destination":"LAX",` +
	`"flights":[{"flight_number":"HAT170","date":"2024-05-22","price":183}],"insurance":"no","total_baggages":1}` + "\n"

// repeatText repeats text to about a megabyte.
func repeatText(text string) string { return strings.Repeat(text, 1+1_000_000/len(text)) }

// goCode is source code of this module.
func goCode(b *testing.B) string {
	b.Helper()
	var all strings.Builder
	for _, dir := range []string{"../engine", "../flow", "../convo", "../store/sqlite"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(dir + "/" + e.Name())
			if err != nil {
				b.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}

// airlineText returns what was said in the real conversations, "" without them.
func airlineText(b *testing.B) string {
	b.Helper()
	f, err := os.Open(shareddata.Path(b, shareddata.Airline))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	var all strings.Builder
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c struct {
			Messages []struct {
				Content   string
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			b.Fatal(err)
		}
		for _, m := range c.Messages {
			all.WriteString(m.Content)
			for _, call := range m.ToolCalls {
				all.WriteString(call.Function.Name + call.Function.Arguments)
			}
		}
	}
	return all.String()
}
