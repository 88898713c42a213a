package codegen

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/weir-run/weir/engine"
)

// How much of a literal is enough to be a value of somebody's and not a separator or
// a small number.
const (
	minValueLetters = 4
	minValueDigits  = 3
)

// runValues is what a program may not have in its literals: the values of a run, told
// from the names and words that the task itself has.
type runValues struct {
	texts     []string // values in lower case, with single blanks
	digits    []string // numbers in them, as digits
	taskWords []string // names, branches and the task
}

// newRunValues returns the values of a run, without those that are not specific to it.
func newRunValues(inPrompt []string, values ...engine.Value) *runValues {
	c := &runValues{}
	for _, t := range inPrompt {
		c.taskWords = append(c.taskWords, plainText(t))
	}
	for _, v := range values {
		c.add(v)
	}
	return c
}

func (c *runValues) add(v engine.Value) {
	switch t := v.(type) {
	case string:
		c.texts = append(c.texts, plainText(t))
		for _, n := range numbersIn.FindAllString(t, -1) {
			c.digits = append(c.digits, digitsOf(n))
		}
	case int64:
		c.digits = append(c.digits, digitsOf(strconv.FormatInt(t, 10)))
	case float64:
		c.digits = append(c.digits, digitsOf(strconv.FormatFloat(t, 'f', -1, 64)))
	case []any:
		for _, e := range t {
			c.add(e)
		}
	case map[string]any:
		for name, e := range t {
			c.taskWords = append(c.taskWords, plainText(name))
			c.add(e)
		}
	}
}

// contains reports whether a text or number of a program is a value of the run.
func (c *runValues) contains(literal string) bool {
	text := plainText(literal)
	core := strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, t := range c.taskWords {
		if strings.Contains(t, core) {
			return false
		}
	}
	if isNumber.MatchString(core) {
		return c.containsNumber(core)
	}
	if letters(core) < minValueLetters {
		return false
	}
	for _, t := range c.texts {
		if strings.Contains(t, core) || letters(t) >= minValueLetters && strings.Contains(text, t) {
			return true
		}
	}
	return c.containsWords(text)
}

// containsWords reports whether two words that follow each other in a literal do so in
// a value, one of them a word that the task does not have.
func (c *runValues) containsWords(literal string) bool {
	inPrompt := wordsOf(strings.Join(c.taskWords, " "))
	words := wordsOf(literal)
	for i := range max(len(words)-1, 0) {
		pair := words[i : i+2]
		own := slices.ContainsFunc(pair, func(w string) bool { return letters(w) >= minValueLetters && !slices.Contains(inPrompt, w) })
		if own && slices.ContainsFunc(c.texts, func(t string) bool {
			return strings.Contains(" "+strings.Join(wordsOf(t), " ")+" ", " "+pair[0]+" "+pair[1]+" ")
		}) {
			return true
		}
	}
	return false
}

// wordsOf returns the words of a text in lower case.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// withoutComments returns a program without its comments, which may say what it was
// written for.
func withoutComments(code string) string {
	var b strings.Builder
	for i := 0; i < len(code); {
		n := 1
		switch c := code[i]; c {
		case '#':
			i += len(firstLine(code[i:]))
			continue
		case '"', '\'':
			_, n = quotedText(code[i:], isRaw(code[:i]))
		}
		b.WriteString(code[i : i+n])
		i += n
	}
	return b.String()
}

func (c *runValues) containsNumber(text string) bool {
	d := digitsOf(text)
	return len(d) >= minValueDigits && slices.Contains(c.digits, d)
}

// plainText returns a text for comparison.
func plainText(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

func letters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

var (
	numbersIn = regexp.MustCompile(`\d(?:[\d.,'_ ]*\d)?`)
	isNumber  = regexp.MustCompile(`^[\d.,'_ ]*\d$`)
)

// digitsOf returns the digits of a number, without what separates thousands and without
// zeros at its ends.
func digitsOf(number string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, number), "0")
}

// literalsOf returns the texts and numbers of a program in Python or Starlark.
// Texts that are joined where they stand count as one.
func literalsOf(code string) []string {
	var out []string
	joined := "" // texts that only blanks and pluses separate
	flush := func() {
		if joined != "" {
			out = append(out, joined)
		}
		joined = ""
	}
	for i := 0; i < len(code); {
		switch c := code[i]; {
		case c == '#':
			i += len(firstLine(code[i:]))
		case c == '"' || c == '\'':
			text, n := quotedText(code[i:], isRaw(code[:i]))
			joined += text
			out = append(out, text)
			i += n
		case isDigit(c) && (i == 0 || !isWord(code[i-1])):
			flush()
			n := i
			for n < len(code) && (isWord(code[n]) || code[n] == '.') {
				n++
			}
			out = append(out, strings.TrimRight(code[i:n], "."))
			i = n
		default:
			if !strings.ContainsRune(" \t\r\n+\\()rRfFbBuU", rune(c)) {
				flush()
			}
			i++
		}
	}
	flush()
	return out
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// isRaw reports whether a text that begins behind before is a raw one.
func isRaw(before string) bool {
	prefix := before[len(strings.TrimRight(before, "rRbBfFuU")):]
	return strings.ContainsAny(prefix, "rR")
}

// quotedText returns the text that code begins with, and its length in the code.
func quotedText(code string, raw bool) (text string, n int) {
	quote := code[:1]
	if strings.HasPrefix(code, quote+quote+quote) {
		quote = code[:3]
	}
	var b strings.Builder
	for i := len(quote); i < len(code); i++ {
		switch {
		case strings.HasPrefix(code[i:], quote):
			return b.String(), i + len(quote)
		case code[i] == '\\' && i+1 < len(code):
			if said, m := escaped(code[i:]); m > 0 && !raw {
				b.WriteString(said)
				i += m - 1
				continue
			}
			b.WriteByte(code[i])
			i++
			b.WriteByte(code[i])
		case code[i] == '\n' && len(quote) == 1:
			return b.String(), i
		default:
			b.WriteByte(code[i])
		}
	}
	return b.String(), len(code)
}

// escaped reads an escape of a text in code, and its length; 0 for what stands for
// itself.
func escaped(s string) (string, int) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if digits > 0 && len(s) >= 2+digits {
		if n, err := strconv.ParseUint(s[2:2+digits], 16, 32); err == nil {
			return string(rune(n)), 2 + digits
		}
	}
	switch s[1] {
	case 'n', 't', 'r':
		return " ", 2
	case '\n':
		return "", 2
	case '\\', '\'', '"':
		return s[1:2], 2
	}
	return "", 0
}
