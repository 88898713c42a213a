package draw_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/draw"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// go test ./trajectory/draw -args -pictures FOLDER writes what the tests draw.
var pictures = flag.String("pictures", "", "a folder for the pictures of the tests")

func keep(t *testing.T, name string, picture []byte) {
	t.Helper()
	if *pictures == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*pictures, name), picture, 0o600); err != nil {
		t.Fatal(err)
	}
}

// conversations returns all of the airline's by their ids. What failed is marked, which
// the data does not.
func conversations(t *testing.T) map[string][]convo.Message {
	t.Helper()
	out := map[string][]convo.Message{}
	for _, c := range trajectorytest.Airline(t) {
		for i := range c.Messages {
			c.Messages[i].Failed = c.Messages[i].Role == convo.Tool && strings.HasPrefix(c.Messages[i].Text, "Error")
		}
		out[c.ID] = c.Messages
	}
	return out
}

// airline returns a session of one customer: the named conversations one after the
// other.
func airline(t *testing.T, from map[string][]convo.Message, ids ...string) *trajectory.Graph {
	t.Helper()
	var all []convo.Message
	for _, id := range ids {
		all = append(all, from[id]...)
	}
	return session(t, ids[0], all)
}

func newTables() trajectory.Storage { return tables.New(tables.NewMemory()) }

// TestARealConversationOfMoreThanAHundredNodesIsReadable holds the picture to
// what a reader needs; whether it looks good was judged by looking (-pictures).
func TestARealConversationOfMoreThanAHundredNodesIsReadable(t *testing.T) {
	t.Parallel()
	from := conversations(t)
	for name, g := range map[string]*trajectory.Graph{
		"rounds": airline(t, from, "airline-9-2", "airline-17-1"),
		"deep":   airline(t, from, "airline-2-1", "airline-9-3"),
	} {
		for variant, g := range map[string]*trajectory.Graph{name: g, name + "-active": g.Active()} {
			t.Run(variant, func(t *testing.T) {
				t.Parallel()
				svg := draw.SVG(g)
				keep(t, variant+".svg", svg)
				keep(t, variant+".dot", draw.DOT(g))
				keep(t, variant+".mmd", draw.Mermaid(g))
				if len(g.Nodes) < 100 {
					t.Errorf("the graph has %d nodes", len(g.Nodes))
				}
				p := parse(t, svg)
				p.holds(t, g)
				if p.width > 1600 || p.height > 3500 {
					t.Errorf("the page has %.0f x %.0f pixels", p.width, p.height)
				}
			})
		}
	}
}
