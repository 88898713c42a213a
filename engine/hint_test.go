package engine

import (
	"os/exec"
	"strings"
	"testing"
)

func TestCommandLineIsQuotedForShells(t *testing.T) {
	words := []string{"show", "my run", "it's", "", "a>b#1/c", "#x", "$(id)", "`id`", "~", "a\\b", "été", "x\ny", "{a,b}", "!1", "*", "=ls", "a=b"}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("needs a shell:", err)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "weir() { printf '%s\\0' \"$@\"; }; "+CommandLine(words...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), strings.Join(words, "\x00")+"\x00"; got != want {
		t.Errorf("%s\nis read as %q\nwant       %q", CommandLine(words...), got, want)
	}
	if line := CommandLine("answer", "01kafw", "ask:ask#1", "yes"); line != "weir answer 01kafw ask:ask#1 yes" {
		t.Error("quoted without need:", line)
	}
}
