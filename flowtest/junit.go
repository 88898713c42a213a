package flowtest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-run/weir/flow"
)

// The elements of JUnit's XML.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr,omitempty"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Error   *junitFailure `xml:"error"`
		Skipped *junitSkipped `xml:"skipped"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// JUnit writes the report as JUnit's XML: a suite for each file, a case for each test. An invalid file is a suite
// with one case with an error, and a stopped test is a case with an error.
func (r *Report) JUnit(w io.Writer) error {
	doc := junitSuites{Time: junitTime(r.Took)}
	for i := range r.Files {
		s := junitSuiteOf(&r.Files[i])
		doc.Tests += s.Tests
		doc.Failures += s.Failures
		doc.Errors += s.Errors
		doc.Skipped += s.Skipped
		doc.Suites = append(doc.Suites, s)
	}
	b, err := xml.MarshalIndent(doc, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, b)
	}
	if err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	return nil
}

func junitSuiteOf(f *FileResult) junitSuite {
	s := junitSuite{Name: f.Path, Time: junitTime(f.Took)}
	if f.Status == Invalid {
		text := f.Error
		if f.Problems != nil {
			text = (&flow.Invalid{Problems: f.Problems}).Error()
		}
		s.Tests, s.Errors = 1, 1
		s.Cases = []junitCase{{
			Name: "the file is valid", Class: f.Path, File: f.Path, Time: junitTime(f.Took),
			Error: &junitFailure{Message: firstLine(text), Type: string(Invalid), Text: text},
		}}
		return s
	}
	for i := range f.Tests {
		t := &f.Tests[i]
		c := junitCase{Name: t.Name, Class: f.Path, File: f.Path, Line: t.Pos.Line, Time: junitTime(t.Took)}
		s.Tests++
		switch t.Status {
		case Failed:
			s.Failures++
			c.Failure = junitFailureOf(t)
		case Skipped:
			s.Skipped++
			c.Skipped = &junitSkipped{t.Reason}
		case Stopped, Invalid:
			s.Errors++
			c.Error = &junitFailure{Message: "the tests were stopped before this one had ended", Type: string(Stopped)}
		case Passed:
		}
		s.Cases = append(s.Cases, c)
	}
	return s
}

func junitFailureOf(t *Result) *junitFailure {
	var b strings.Builder
	for i := range t.Failures {
		b.WriteString(t.Failures[i].String() + "\n")
	}
	return &junitFailure{Message: firstLine(b.String()), Type: string(Failed), Text: b.String()}
}

func junitTime(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}
