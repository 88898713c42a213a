package builtin

import "regexp"

// codeReadsInputs is TypeSpec.Reads of types that run code: the inputs that the code
// names. All are read where a model writes the code, and where the code uses
// `inputs` in any way but by literal names.
func codeReadsInputs(with map[string]any) (names []string, all bool) {
	if isPrompted(with) {
		return nil, true
	}
	code, _ := with["code"].(string)
	uses := inputsWord().FindAllStringIndex(code, -1)
	literal := inputsLiteral().FindAllStringSubmatch(code, -1)
	for _, m := range literal {
		names = append(names, m[1]+m[2])
	}
	return names, len(uses) != len(literal)
}

func inputsWord() *regexp.Regexp { return regexp.MustCompile(`\binputs\b`) }

func inputsLiteral() *regexp.Regexp {
	return regexp.MustCompile(`\binputs(?:\[|\.get\()\s*(?:"([^"\\\n]+)"|'([^'\\\n]+)')`)
}
