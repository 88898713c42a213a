package expr

import (
	"regexp"
	"strings"
)

// foreignFunctions have the names that other languages give to functions, with how the same is
// written here.
func foreignFunctions() map[string]string {
	return map[string]string{
		"length": "X.size()", "len": "size(X)", "count": "X.size()", "isEmpty": "X.size() == 0",
		"toLowerCase": "TEXT.lowerAscii()", "lower": "TEXT.lowerAscii()", "toUpperCase": "TEXT.upperAscii()", "upper": "TEXT.upperAscii()",
		"find": "LIST.filter(x, CONDITION).first()", "some": "LIST.exists(x, CONDITION)", "any": "LIST.exists(x, CONDITION)", "every": "LIST.all(x, CONDITION)",
		"includes": "TEXT.contains(PART), or ELEMENT in LIST", "flatMap": "LIST.map(x, EXPR).flatten()", "pluck": "LIST.map(x, x.MEMBER)",
		"push": "LIST + [ELEMENT]", "concat": "A + B", "append": "LIST + [ELEMENT]", "forEach": "LIST.map(x, EXPR)",
		"match": "TEXT.matches(REGEX), or regex.extract(TEXT, REGEX)", "test": "TEXT.matches(REGEX)",
		"Number": "double(X)", "parseInt": "int(X)", "parseFloat": "double(X)", "toInt": "int(X)", "toNumber": "double(X)",
		"String": "string(X)", "str": "string(X)", "toString": "string(X)", "Boolean": "bool(X)",
		"JSON.parse": "fromJson(TEXT)", "JSON.stringify": "toJson(X)", "tojson": "toJson(X)",
		"round": "math.round(X)", "floor": "math.floor(X)", "ceil": "math.ceil(X)", "abs": "math.abs(X)",
		"toFixed": "'%.2f'.format([X])", "if": "CONDITION ? A : B", "iif": "CONDITION ? A : B", "ifEmpty": "X == '' ? DEFAULT : X", "default": "X.orValue(DEFAULT)",
		"urlEncode": "url.encode(TEXT)", "encodeURIComponent": "url.encode(TEXT)", "b64encode": "base64.encode(bytes(TEXT))",
		"plus": "TIME + duration('24h')", "minus": "TIME - duration('24h')", "strftime": "TIME.formatTime(FORMAT)", "isNull": "X == null",
		"and": "A && B", "or": "A || B", "not": "!A",
	}
}

// foreignOperators are operators of other languages, with how the same is written here; the
// first that occurs outside of texts applies.
func foreignOperators() [][2]string {
	return [][2]string{
		{"`", "'TEXT ' + EXPR, or a template"},
		{"===", "=="},
		{"!==", "!="},
		{"??", "A.?b.orValue(DEFAULT), or A == null ? DEFAULT : A"},
		{"=>", "LIST.map(x, EXPR): the variable and the expression are two arguments"},
		{"|", "FUNCTION(X) or X.FUNCTION(): there are no filters"},
		{" and ", "&&"},
		{" or ", "||"},
		{"not ", "!"},
		{"$json", "inputs, state or run"},
		{"$", "inputs, state or run"},
		{"new ", "timestamp(TEXT), or now"},
		{"=", "==, to compare"},
	}
}

// foreignHint says how a function of another language is written here, "" if the name is none.
func foreignHint(name, qualified string) string {
	all := foreignFunctions()
	if usage := all[qualified]; usage != "" {
		return usage
	}
	return all[name]
}

// syntaxHint says how an operator of another language is written here that an invalid
// expression has, "" if it has none.
func syntaxHint(src string) string {
	plain := withoutTexts(src)
	if conditional := regexp.MustCompile(`(^|[^\w.])if\s*\(`); conditional.MatchString(plain) {
		return "if is written " + foreignFunctions()["if"]
	}
	for _, o := range foreignOperators() {
		if o[0] == "=" && !hasAssignment(plain) || o[0] == "|" && !strings.Contains(strings.ReplaceAll(plain, "||", ""), "|") {
			continue
		}
		if hasOperator(plain, o[0]) {
			return strings.TrimSpace(o[0]) + " is written " + o[1]
		}
	}
	return ""
}

// hasOperator reports whether a text has an operator. One that is a word does not stand at the
// end of another, as in "cannot ".
func hasOperator(src, operator string) bool {
	for i := 0; ; {
		at := strings.Index(src[i:], operator)
		if at < 0 {
			return false
		}
		i += at
		if i == 0 || !isLetter(operator[0]) || !isLetter(src[i-1]) && src[i-1] != '.' {
			return true
		}
		i += len(operator)
	}
}

// isLetter reports whether a byte may be a part of a name.
func isLetter(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// hasAssignment reports whether a text has a single =.
func hasAssignment(src string) bool {
	for _, o := range []string{"==", "!=", "<=", ">="} {
		src = strings.ReplaceAll(src, o, "")
	}
	return strings.Contains(src, "=")
}

// withoutTexts removes what stands in quotes.
func withoutTexts(src string) string {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0:
			b.WriteByte(c)
		}
	}
	return b.String()
}
