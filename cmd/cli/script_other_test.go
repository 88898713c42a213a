//go:build !linux

package cli

import "github.com/rogpeppe/go-internal/testscript"

// typingAnswers needs the pseudo-terminals of Linux; scripts that use it skip elsewhere.
func typingAnswers(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("typing needs Linux")
}
