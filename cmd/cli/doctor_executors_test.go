package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// findings runs weir doctor --json with a configuration.
func findings(t *testing.T, configuration string) (list []checkResult, code int) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	code = command(t.Context(), []string{"--db", filepath.Join(dir, "weir.db"), "--config", file, "doctor", "--json"}, terminal{strings.NewReader(""), &out, &stderr})
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), stderr.String())
	}
	return list, code
}

func findResults(list []checkResult, prefix string) (found []checkResult) {
	for _, f := range list {
		if strings.HasPrefix(f.About, prefix) {
			found = append(found, f)
		}
	}
	return found
}

func TestDoctorReportsPythonIsolation(t *testing.T) {
	t.Parallel()
	list, code := findings(t, "parallel: 2\n")
	python := findResults(list, "executor python")
	if code != 0 || len(python) < 1 {
		t.Fatalf("exit code %d, found %+v", code, list)
	}
	for _, f := range python {
		if f.State != "ok" && f.Remedy == "" {
			t.Errorf("what is missing has no remedy: %+v", f)
		}
	}
}

func TestDoctorFailsForInvalidInterpreter(t *testing.T) {
	t.Parallel()
	list, code := findings(t, "executors: {order: [python], python: {interpreter: nowhere/python3}}\n")
	python := findResults(list, "executor python")
	if code != 1 || len(python) != 1 || python[0].State != "bad" || !strings.Contains(python[0].Detail, "nowhere/python3") || python[0].Remedy == "" {
		t.Errorf("exit code %d, found %+v", code, list)
	}
	if len(findResults(list, "executor starlark")) > 0 {
		t.Error("an executor is examined that is not offered")
	}
}

func TestDoctorChecksConfiguredPython(t *testing.T) {
	t.Parallel()
	list, _ := findings(t, "executors: {order: [python], python: {packages: [gone]}}\n")
	python := findResults(list, "executor python")
	if len(python) != 1 || python[0].State != "bad" {
		t.Fatalf("found %+v", python)
	}
	if _, err := exec.LookPath("python3"); err == nil && !strings.Contains(python[0].Detail, "gone") {
		t.Errorf("the folder is not named: %+v", python[0])
	}
}
