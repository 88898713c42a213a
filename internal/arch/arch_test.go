package arch_test

import (
	"os"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/arch"
)

// TestTreeKeepsTheRules runs every rule on this repository.
func TestTreeKeepsTheRules(t *testing.T) {
	t.Parallel()
	tree, err := arch.Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) < 20 {
		t.Fatalf("only %d Go files found: is the path of the root right?", len(tree.Files))
	}
	for name, findings := range map[string][]arch.Finding{
		"rules":    arch.CheckImports(tree, arch.PackageRules()),
		"vendors":  arch.CheckDependencies(tree, arch.DependencyRules()),
		"purity":   arch.CheckPurity(tree, arch.PurityRules()),
		"sizes":    arch.CheckSizes(tree, arch.MaxFile, arch.MaxFunc),
		"names":    arch.CheckNames(tree, arch.BadNames()),
		"comments": arch.CheckComments(tree),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range findings {
				t.Error(f)
			}
		})
	}
}

// TestEveryRuleHasReason keeps the data honest: no rule without a why, and
// none for a folder that another rule names already.
func TestEveryRuleHasReason(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range arch.PackageRules() {
		if strings.TrimSpace(r.Why) == "" || seen[r.Dir] {
			t.Errorf("package %s has no reason, or is listed twice", r.Dir)
		}
		seen[r.Dir] = true
	}
	for _, v := range arch.DependencyRules() {
		if strings.TrimSpace(v.Why) == "" || seen[v.Prefix] {
			t.Errorf("vendor %s has no reason, or stands here twice", v.Prefix)
		}
		seen[v.Prefix] = true
	}
	for _, p := range arch.PurityRules() {
		if strings.TrimSpace(p.Why) == "" {
			t.Errorf("purity of %s has no reason", p.Dir)
		}
	}
}
