package docgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"strings"
)

const storeIntro = `# Interfaces of a store

A store implements ` + "`store.Store`" + `, the journal tier, and returns everything else that it offers in ` + "`store.Capabilities`" + `. [Writing
a store](store.md#writing-a-store) explains how to start. Errors are the sentinel errors of package ` + "`store`" + `.

`

// StorePage returns the page of the interfaces of stores, with the contract of each
// method. The texts are the source of store/tiers.go and store/capabilities.go.
func StorePage(tiers, capabilities string) (Page, error) {
	var b strings.Builder
	fmt.Fprintf(&b, notice, "store/tiers.go and store/capabilities.go")
	b.WriteString(storeIntro)
	files := token.NewFileSet()
	for _, text := range []string{tiers, capabilities} {
		f, err := parser.ParseFile(files, "", text, parser.ParseComments)
		if err != nil {
			return Page{}, fmt.Errorf("interfaces of a store: %w", err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				writeStoreType(&b, files, g, s.(*ast.TypeSpec))
			}
		}
	}
	return Page{"store-interfaces.md", strings.TrimRight(b.String(), "\n") + "\n"}, nil
}

func writeStoreType(b *strings.Builder, files *token.FileSet, g *ast.GenDecl, t *ast.TypeSpec) {
	var fields *ast.FieldList
	switch x := t.Type.(type) {
	case *ast.InterfaceType:
		fields = x.Methods
	case *ast.StructType:
		if t.Name.Name != "Capabilities" {
			return
		}
		fields = x.Fields
	default:
		return
	}
	fmt.Fprintf(b, "## %s\n\n%s\n", t.Name.Name, g.Doc.Text())
	b.WriteString("| member | contract |\n|---|---|\n")
	for _, f := range fields.List {
		member := sourceOf(files, f.Type)
		if len(f.Names) > 0 {
			member = f.Names[0].Name + strings.TrimPrefix(" "+member, " func")
		}
		contract := f.Doc.Text() + f.Comment.Text()
		if len(f.Names) == 0 {
			contract = "embedded"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", cell(member), cell(contract))
	}
	b.WriteString("\n")
}

// sourceOf returns the source of a type.
func sourceOf(files *token.FileSet, x ast.Expr) string {
	var b strings.Builder
	_ = printer.Fprint(&b, files, x) // a Builder never fails
	return b.String()
}
