//go:build postgres && unix

package cli

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
)

// storageConfig writes a configuration with master keys in files: the first is for writing unless it is 0.
func storageConfig(t *testing.T, current byte, previous ...byte) (file string) {
	t.Helper()
	dir := t.TempDir()
	key := func(n byte) string {
		name := string(rune('a'+n)) + ".key"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(hex.EncodeToString(bytes.Repeat([]byte{n}, 32))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return "{file: " + name + "}"
	}
	text := "storage:\n  compress: true\n  encryption:\n"
	if current != 0 {
		text += "    key: " + key(current) + "\n"
	}
	var list []string
	for _, n := range previous {
		list = append(list, key(n))
	}
	if len(list) > 0 {
		text += "    previous: [" + strings.Join(list, ", ") + "]\n"
	}
	file = filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// checkErasure talks as a user in two processes, and erases the user.
func checkErasure(p pgCommand, server *pgtest.Server) {
	p.t.Helper()
	talk := filepath.Join("..", "..", "examples", "talk", "flow.yaml")
	for _, in := range []string{"hello\nand you?\n", "more\n"} { // the second process reads the history of the first
		p.run(in, 0, "chat", talk, "--user", "ada")
	}
	out, _ := p.run("", 0, "sessions", "--json")
	p.contains(out, "ada")
	if n := server.SQL(p.t, "SELECT count(*) FROM s1.data_key WHERE user_id = 'ada'"); n != "1" {
		p.t.Errorf("%s keys of the user", n)
	}
	out, stderr := p.run("", 0, "sessions", "delete", "--user", "ada", "--yes")
	p.contains(out+stderr, "data key was destroyed")
	if n := server.SQL(p.t, "SELECT count(*) FROM s1.data_key WHERE user_id = 'ada'"); n != "0" {
		p.t.Errorf("%s keys of the erased user", n)
	}
}

func TestCommandsOnEncryptedPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	dir, first := t.TempDir(), server.Schema(t)
	with := func(config, database string) pgCommand {
		return pgCommand{t, []string{"--config", config, "--db", database}}
	}
	flow, none := filepath.Join(dir, "greeting.yaml"), filepath.Join(dir, "none.yaml")
	for name, text := range map[string]string{flow: askFlow, none: "{}"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := with(storageConfig(t, 1), first)
	p.run("", 3, "run", flow)
	out, _ := p.run("", 0, "runs", "--json")
	var runs []struct {
		Run string `json:"run"`
	}
	if err := json.Unmarshal([]byte(out), &runs); err != nil || len(runs) != 1 {
		t.Fatalf("%v %s", err, out)
	}
	id := runs[0].Run
	out, _ = p.run("", 0, "answer", id, "ask:ask#1", "Ada")
	p.contains(out, "Hello Ada.")
	if n := server.SQL(t, "SELECT count(*) FROM s1.run_commit WHERE position('Ada'::bytea IN payload) > 0 OR position('event'::bytea IN payload) > 0"); n != "0" {
		t.Errorf("%s commits can be read", n)
	}
	out, _ = p.run("", 0, "doctor")
	p.contains(out, "encrypted, 1 data keys, master key ")
	out, _ = p.run("", 0, "verify", id)
	p.contains(out, id)

	checkErasure(p, server)

	// Without the key, and with another one.
	for _, config := range []string{none, storageConfig(t, 2)} {
		out, stderr := with(config, first).run("", 1, "show", id)
		p.contains(stderr, "storage.encryption.key", "master key")
		if strings.Contains(out+stderr, strings.Repeat("01", 32)) || strings.Contains(out+stderr, strings.Repeat("02", 32)) {
			t.Errorf("a key is shown:\n%s%s", out, stderr)
		}
	}

	// Another key, and copies in other forms.
	_, stderr := with(storageConfig(t, 1), first).run("", 0, "store", "rewrap")
	if stderr != "" {
		t.Errorf("nothing to wrap: %s", stderr)
	}
	both := storageConfig(t, 2, 1)
	out, _ = with(both, first).run("", 0, "doctor")
	p.contains(out, "weir store rewrap")
	out, _ = with(both, first).run("", 0, "store", "rewrap")
	p.contains(out, "wrapped 1 data key")
	file, second := filepath.Join(dir, "copy.db"), server.Schema(t)
	with(storageConfig(t, 2), first).run("", 0, "store", "copy", first, file)
	with(storageConfig(t, 3), first).run("", 0, "store", "copy", file, second)
	for config, database := range map[string]string{storageConfig(t, 2): first, none: file, storageConfig(t, 3): second} {
		out, _ = with(config, database).run("", 0, "show", id)
		p.contains(out, "Hello Ada.")
		with(config, database).run("", 0, "verify", "--all")
	}

	// A file has no such form, and the setting is not ignored.
	_, stderr = with(storageConfig(t, 1), file).run("", 2, "runs")
	p.contains(stderr, "are settings of PostgreSQL databases")
	out, _ = with(storageConfig(t, 1), file).run("", 1, "doctor")
	p.contains(out, "database: storage", "encrypted file system")
}
