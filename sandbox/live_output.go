package sandbox

import (
	"strings"
	"unicode/utf8"
)

// LiveStdout returns a writer that passes the bytes of the code's stdout to OnOutput, if
// that is set.
func (j *Job) LiveStdout() *LiveOutput {
	return newLiveOutput(j.OnOutput, func(text string) { j.OnOutput(text, "") })
}

// LiveStderr is LiveStdout for stderr.
func (j *Job) LiveStderr() *LiveOutput {
	return newLiveOutput(j.OnOutput, func(text string) { j.OnOutput("", text) })
}

// LiveOutput passes on a stream as text. A character that the end of a write divides is
// passed on with the next write. It belongs to one goroutine.
type LiveOutput struct {
	emit func(string)
	rest []byte // the beginning of a character
}

func newLiveOutput(on func(stdout, stderr string), emit func(string)) *LiveOutput {
	if on == nil {
		emit = nil
	}
	return &LiveOutput{emit: emit}
}

// Write implements io.Writer. It never fails.
func (o *LiveOutput) Write(p []byte) (int, error) {
	if o.emit == nil {
		return len(p), nil
	}
	text := append(o.rest, p...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-n:]) {
				whole = len(text) - n
			}
			break
		}
	}
	if whole > 0 {
		o.emit(strings.ToValidUTF8(string(text[:whole]), "\uFFFD"))
	}
	o.rest = append([]byte(nil), text[whole:]...)
	return len(p), nil
}

// Close passes on what is left.
func (o *LiveOutput) Close() {
	if len(o.rest) > 0 {
		o.emit("\uFFFD")
		o.rest = nil
	}
}
