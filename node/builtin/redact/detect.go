package redact

import (
	"math/big"
	"net/netip"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds lists the kinds of texts that a Finder knows by name.
func Kinds() []string { return []string{"email", "phone", "iban", "card", "ip"} }

// detector finds texts of one kind: check returns the part of a match that is one, or an
// empty part.
type detector struct {
	kind  string
	expr  *regexp.Regexp
	check func(s string, from, to int) (int, int)
}

// newDetector returns the detector of one of Kinds.
func newDetector(kind string) detector {
	d := detector{kind: strings.ToUpper(kind)}
	switch kind {
	case "email":
		d.expr, d.check = regexp.MustCompile(`[\p{L}\p{N}.!#$%&'*+/=?^_{|}~-]+@[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?(?:\.[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?)+`), whole
	case "phone":
		d.expr, d.check = regexp.MustCompile(`(?:\+|\()?[0-9](?:[ ()./-]{0,2}[0-9]){6,18}`), newPhone()
	case "iban":
		d.expr, d.check = regexp.MustCompile(`[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}`), iban
	case "card":
		d.expr, d.check = regexp.MustCompile(`[0-9](?:[ -]?[0-9]){12,18}`), card
	case "ip":
		d.expr = regexp.MustCompile(`[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?:[0-9A-Fa-f]{0,4}:){2,7}(?:[0-9A-Fa-f]{1,4}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})?`)
		d.check = address
	default:
		panic("redact: unknown kind " + kind)
	}
	return d
}

func whole(_ string, from, to int) (int, int) { return from, to }

// newPhone returns a check that takes 7 to 15 digits that begin with +, 0 or a parenthesis, or
// the form 555-123-4567.
func newPhone() func(s string, from, to int) (int, int) {
	northAmerican := regexp.MustCompile(`^\(?[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}$`)
	decimal := regexp.MustCompile(`^[0-9]+[.][0-9]+$`)
	return func(s string, from, to int) (int, int) {
		text := s[from:to]
		n := len(digits(text))
		known := strings.HasPrefix(text, "+") || strings.HasPrefix(text, "0") || strings.HasPrefix(text, "(") || northAmerican.MatchString(text)
		if !known || n < 7 || n > 15 || decimal.MatchString(text) || !isAlone(s, from, to) {
			return 0, 0
		}
		return from, to
	}
}

// iban takes the longest beginning that has valid check digits (ISO 13616): the number with
// its first four characters at the end, letters as 10 to 35, is 1 modulo 97.
func iban(s string, from, to int) (int, int) {
	if isWord(s[:from]) {
		return 0, 0
	}
	for end := to; end-from >= 15; end-- {
		code := strings.ReplaceAll(s[from:end], " ", "")
		if len(code) < 15 || len(code) > 34 || s[end-1] == ' ' || end < len(s) && startsWord(s[end:]) {
			continue
		}
		if validIBAN(code) {
			return from, end
		}
	}
	return 0, 0
}

func validIBAN(code string) bool {
	var b strings.Builder
	for _, r := range code[4:] + code[:4] {
		if unicode.IsUpper(r) {
			b.WriteString(big.NewInt(int64(r-'A') + 10).String())
		} else {
			b.WriteRune(r)
		}
	}
	n, ok := new(big.Int).SetString(b.String(), 10)
	return ok && n.Mod(n, big.NewInt(97)).Int64() == 1
}

// card takes 13 to 19 digits with a valid check digit (ISO/IEC 7812, Luhn).
func card(s string, from, to int) (int, int) {
	list := digits(s[from:to])
	sum := 0
	for i := range len(list) {
		d := int(list[len(list)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	if sum == 0 || sum%10 != 0 || !isAlone(s, from, to) {
		return 0, 0
	}
	return from, to
}

// address takes what is an IP address.
func address(s string, from, to int) (int, int) {
	a, err := netip.ParseAddr(s[from:to])
	if err != nil || a.IsUnspecified() && a.Is6() || !isAlone(s, from, to) {
		return 0, 0
	}
	return from, to
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

// isAlone reports whether no letter or digit is next to a part that begins or ends with one.
func isAlone(s string, from, to int) bool {
	joinsBefore := startsWord(s[from:]) && isWord(s[:from])
	joinsAfter := isWord(s[:to]) && startsWord(s[to:])
	return !joinsBefore && !joinsAfter
}

// startsWord and isWord report whether a text begins, or ends, with a letter or digit.
func startsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return isLetterOrDigit(r)
}

func isWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return isLetterOrDigit(r)
}

func isLetterOrDigit(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}
