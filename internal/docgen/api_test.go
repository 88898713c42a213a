package docgen_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/server/servertest"
)

// TestTheDescriptionOfTheAPIIsThatOfTheServer compares the file from which the TypeScript client is
// generated with what a server says of itself.
func TestTheDescriptionOfTheAPIIsThatOfTheServer(t *testing.T) {
	p := servertest.Open(t, servertest.Options{})
	want, err := p.Server.Description()
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	path := filepath.Join(root, "clients", "typescript", "openapi.json")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run `make generate` and commit", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s does not describe the API of the server: run `make generate` and commit", path)
	}
}
