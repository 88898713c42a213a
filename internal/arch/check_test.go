package arch_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weir-run/weir/internal/arch"
)

// check is one small fake tree and the findings it must give, each by a part
// of its text, in the order of files.
type check struct {
	name  string
	files map[string]string
	want  []string
}

func run(t *testing.T, checks []check, rule func(*arch.Tree) []arch.Finding) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fsys := fstest.MapFS{}
			for p, src := range c.files {
				fsys[p] = &fstest.MapFile{Data: []byte(src)}
			}
			tree, err := arch.Load(fsys)
			if err != nil {
				t.Fatal(err)
			}
			got := rule(tree)
			for i, f := range got {
				if i >= len(c.want) || !strings.Contains(f.String(), c.want[i]) {
					t.Errorf("unexpected finding: %s", f)
				}
			}
			if len(got) < len(c.want) {
				t.Errorf("not found: %q", c.want[len(got):])
			}
		})
	}
}

const root = `"github.com/weir-run/weir`

func TestCheckImports(t *testing.T) {
	t.Parallel()
	rules := []arch.PackageRule{
		{Dir: "flow", Why: "first"},
		{Dir: "engine", Allowed: []string{"flow"}, Why: "decides alone"},
		{Dir: "llm", Why: "exact before pattern"},
		{Dir: "llm/...", Allowed: []string{"llm"}, Why: "providers"},
		{Dir: "cmd/...", Allowed: []string{"..."}, Why: "wires"},
	}
	run(t, []check{
		{
			"an allowed arrow is silent",
			map[string]string{"engine/a.go": `package engine; import _ ` + root + `/flow"`},
			nil,
		},
		{
			"an import upwards is reported with its reason",
			map[string]string{"flow/a.go": `package flow; import _ ` + root + `/engine"`},
			[]string{"flow/a.go:1: flow must not import engine: first"},
		},
		{
			"a folder below is not the folder",
			map[string]string{"engine/a.go": `package engine; import _ ` + root + `/flow/expr"`},
			[]string{"must not import flow/expr"},
		},
		{
			"a pattern holds below its folder and not for it",
			map[string]string{
				"llm/a.go":   `package llm; import _ ` + root + `/llm/x"`,
				"llm/x/a.go": `package x; import _ ` + root + `/llm"`,
			},
			[]string{"llm must not import llm/x: exact before pattern"},
		},
		{
			"the root is a package like any other",
			map[string]string{"flow/a.go": `package flow; import _ ` + root + `"`},
			[]string{"flow must not import .:"},
		},
		{
			"a command wires everything",
			map[string]string{"cmd/weir/a.go": `package main; import _ ` + root + `/engine"; import _ ` + root + `"`},
			nil,
		},
		{
			"a package without a rule is reported once",
			map[string]string{"attic/a.go": "package attic", "attic/b.go": "package attic"},
			[]string{"folder attic has no import rule"},
		},
		{
			"a test file may look up",
			map[string]string{"flow/a_test.go": `package flow_test; import _ ` + root + `/engine"`},
			nil,
		},
		{"nested modules, testdata and hidden folders are not ours", map[string]string{
			"bench/peers/go.mod": "module x", "bench/peers/a.go": "package attic",
			"flow/testdata/a.go": "not go", ".git/a.go": "not go",
		}, nil},
	}, func(tree *arch.Tree) []arch.Finding { return arch.CheckImports(tree, rules) })
}

func TestCheckDependencies(t *testing.T) {
	t.Parallel()
	vendors := []arch.DependencyRule{{Prefix: "example.com/sdk-go", Only: []string{"llm/sdk"}, Hide: true, Unlinked: true, Why: "stay"}}
	imp := `import "example.com/sdk-go/v3"; `
	run(t, []check{
		{
			"home may import it",
			map[string]string{"llm/sdk/a.go": "package sdk; " + imp + "type Provider struct{ client sdk.Client }"},
			nil,
		},
		{
			"no other package may, tests included",
			map[string]string{"llm/a_test.go": "package llm; " + imp + "var _ = sdk.New"},
			[]string{"llm must not import example.com/sdk-go/v3: stay"},
		},
		{
			"the root must not reach it through others",
			map[string]string{
				"weir.go":      `package weir; import _ ` + root + `/llm"`,
				"llm/a.go":     `package llm; import _ ` + root + `/llm/sdk"`,
				"llm/sdk/a.go": "package sdk; " + imp + "var c = sdk.New()",
			},
			[]string{"the root package reaches example.com/sdk-go/v3 through llm/sdk"},
		},
		{
			"an exported function must not show its types",
			map[string]string{"llm/sdk/a.go": "package sdk; " + imp + "func New(c *sdk.Client) {}"},
			[]string{"exports the vendor's sdk.Client"},
		},
		{
			"nor a field, an embedded type, a type or a variable",
			map[string]string{
				"llm/sdk/a.go": "package sdk; " + imp +
					"type P struct{ C sdk.A; sdk.B; hidden sdk.X }; type T []sdk.C; var V sdk.D; var v sdk.X",
			},
			[]string{"sdk.A", "sdk.B", "sdk.C", "sdk.D"},
		},
		{
			"methods count by their receiver",
			map[string]string{
				"llm/sdk/a.go": "package sdk; " + imp + "func (p *P) Do(sdk.A) {}; func (p *p) Do(sdk.X) {}; func (p *P) do(sdk.X) {}",
			},
			[]string{"sdk.A"},
		},
	}, func(tree *arch.Tree) []arch.Finding { return arch.CheckDependencies(tree, vendors) })
}

func TestCheckPurity(t *testing.T) {
	t.Parallel()
	rules := []arch.PurityRule{{
		Dir: "engine", Std: []string{"fmt", "time", "strings"}, Calls: []string{"time.Now", "fmt.Print*"},
		Sequential: true, Why: "pure",
	}}
	engine := func(src string) map[string]string { return map[string]string{"engine/a.go": "package engine\n" + src} }
	run(t, []check{
		{"listed packages are allowed", engine(`import ("fmt"; "time"); var d time.Duration; var s = fmt.Sprint(d)`), nil},
		{"others of the standard library are not", engine(`import "os"; var _ = os.Args`), []string{"must not import os: pure"}},
		{"a clock is not", engine(`import "time"; var t = time.Now()`), []string{"must not use time.Now"}},
		{"nor under another name", engine(`import clock "time"; var t = clock.Now`), []string{"must not use time.Now"}},
		{"nor by a dot import", engine(`import . "time"; var t = Now()`), []string{"into its own names"}},
		{"a star covers what begins so", engine(`import "fmt"; func f() { fmt.Println() }`), []string{"fmt.Println"}},
		{
			"a goroutine, a channel and select are not",
			engine("func f() { go f() }\nvar c chan int\nfunc g() { select {} }\nfunc h() { println() }"),
			[]string{"a goroutine", "a channel", "select", "println"},
		},
		{"tests may", map[string]string{"engine/a_test.go": `package engine; import "os"; var _ = os.Args`}, nil},
		{"other packages may", map[string]string{"runner/a.go": `package runner; import "os"; var _ = os.Args`}, nil},
	}, func(tree *arch.Tree) []arch.Finding { return arch.CheckPurity(tree, rules) })
}

func TestCheckMapRanges(t *testing.T) {
	t.Parallel()
	rules := []arch.PurityRule{{Dir: "engine", Ordered: true, Why: "order"}}
	engine := func(src string) map[string]string { return map[string]string{"engine/a.go": "package engine\n" + src} }
	run(t, []check{
		{"slices, numbers, text and functions are silent", engine(`import "strings"
			func f(l []int, s string, it func(func(int) bool)) {
				for range l {}; for range 3 {}; for range s {}; for range it {}; for range strings.Split(s, ",") {} }`), nil},
		{"a map is reported", engine("func f(m map[string]int) { for range m {} }"), []string{"ranges over a map"}},
		{
			"a named map of another package of ours is reported",
			map[string]string{
				"engine/a.go": `package engine; import ` + root + `/flow"; func f(s flow.Spec) { for range s.In {} }`,
				"flow/a.go":   "package flow; type Ports map[string]int; type Spec struct{ In Ports }",
			},
			[]string{"ranges over a map"},
		},
		{
			"the iterators of maps are reported", engine(`import "maps"; func f(m map[string]int) { for range maps.Keys(m) {} }`),
			[]string{"ranges over a map"},
		},
		{"sorted keys are silent", engine(`import ("maps"; "slices")
			func f(m map[string]int) { for range slices.Sorted(maps.Keys(m)) {} }`), nil},
		{
			"what cannot be known is reported", engine(`import "example.com/x"; func f() { for range x.All() {} }`),
			[]string{"ranges over a map"},
		},
		{"a reason above the loop, beside it or on the function vouches for it", engine(`func f(m map[string]int) {
				// order: the sum is the same
				for range m {}
				for range m { // order: a set
				}
			}
			// g counts.
			//
			// order: a count has none
			func g(m map[string]int) { for range m {} }`), nil},
		{
			"without a reason it does not", engine("func f(m map[string]int) {\n// order:\nfor range m {} }"),
			[]string{"ranges over a map"},
		},
	}, func(tree *arch.Tree) []arch.Finding { return arch.CheckPurity(tree, rules) })
}

func TestCheckSizes(t *testing.T) {
	t.Parallel()
	run(t, []check{
		{
			"at the ceiling is allowed",
			map[string]string{"a/a.go": "package a\nfunc f() {\n}\n"},
			nil,
		},
		{
			"a function past it is reported",
			map[string]string{"a/a.go": "package a\nfunc f() {\n\n}\n"},
			[]string{"a/a.go:2: func f has 3 lines, at most 2"},
		},
		{"a file past it is reported", map[string]string{"a/a.go": "package a\n\n\n\n\n\n"}, []string{"6 lines, at most 5"}},
		{
			"generated files are free",
			map[string]string{"a/a.go": "// Code generated by x. DO NOT EDIT.\n\npackage a\nfunc f() {\n\n\n\n}\n"},
			nil,
		},
	}, func(tree *arch.Tree) []arch.Finding { return arch.CheckSizes(tree, 5, 2) })
}

func TestCheckNames(t *testing.T) {
	t.Parallel()
	run(t, []check{
		{"a name for an idea is silent", map[string]string{"convo/a.go": "package convo"}, nil},
		{"a package name is reported", map[string]string{"a/a.go": "package utils"}, []string{"called utils"}},
		{"a folder name is reported", map[string]string{"pkg/a.go": "package a"}, []string{"called pkg"}},
	}, func(tree *arch.Tree) []arch.Finding { return arch.CheckNames(tree, arch.BadNames()) })
}

func TestCheckComments(t *testing.T) {
	t.Parallel()
	run(t, []check{
		{
			"what it is and must not know is enough",
			map[string]string{"a/a.go": "// Package a is one. It must\n// not know b.\npackage a", "a/b.go": "package a"},
			nil,
		},
		{"none is reported once", map[string]string{"a/a.go": "package a", "a/b.go": "package a"}, []string{"has no comment"}},
		{
			"what it must not know is wanted",
			map[string]string{"a/a.go": "// Package a is one.\npackage a"},
			[]string{"must not know"},
		},
		{
			"a comment of a test file does not count",
			map[string]string{"a/a.go": "package a", "a/a_test.go": "// Package a must not.\npackage a"},
			[]string{"has no comment"},
		},
		{
			"a command says what it is for",
			map[string]string{"cmd/a/a.go": "package main", "cmd/b/b.go": "// Command b is.\npackage main"},
			[]string{"command cmd/a has no comment"},
		},
	}, arch.CheckComments)
}

func TestUnparsableFileIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := arch.Load(fstest.MapFS{"a/a.go": {Data: []byte("package")}}); err == nil {
		t.Error("loaded a file that is not Go")
	}
}
