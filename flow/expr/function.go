package expr

import "slices"

// Function describes a function, macro or operator of the language, for documentation,
// completion and error messages.
type Function struct {
	// Name is the name as it is called, such as sum or regex.replace.
	Name string
	// Usage shows the call with its arguments: LIST.sum().
	Usage string
	// Group is the heading under which the documentation lists it.
	Group string
	// Summary is one sentence.
	Summary string
	// Examples are run by a test.
	Examples []Example
}

// Example is an expression and its result as JSON.
type Example struct{ Expr, Result string }

// The groups of functions, in the order of the documentation.
const (
	groupLists    = "Lists"
	groupLoops    = "Macros over lists and objects"
	groupObjects  = "Objects"
	groupOptional = "Optional values"
	groupText     = "Text"
	groupRegex    = "Regular expressions"
	groupNumbers  = "Numbers"
	groupTime     = "Dates and times"
	groupEncoding = "JSON, YAML and encodings"
	groupTypes    = "Types and conversions"
	groupOther    = "Other"
)

// Groups lists the groups of Functions in the order of the documentation.
func Groups() []string {
	return []string{
		groupOptional, groupLists, groupLoops, groupObjects, groupText, groupRegex, groupNumbers, groupTime,
		groupEncoding, groupTypes, groupOther,
	}
}

// Functions lists all functions and macros of the language, by group and name.
func Functions() []Function {
	return slices.Concat(optionalFunctions(), listFunctions(), loopFunctions(), objectFunctions(), textFunctions(),
		regexFunctions(), numberFunctions(), timeFunctions(), encodingFunctions(), typeFunctions(), otherFunctions())
}

// fn returns a short constructor of a Function; examples are pairs of expression and result.
func fn(group, name, usage, summary string, examples ...string) Function {
	f := Function{Name: name, Usage: usage, Group: group, Summary: summary}
	for i := 0; i+1 < len(examples); i += 2 {
		f.Examples = append(f.Examples, Example{examples[i], examples[i+1]})
	}
	return f
}

// usageOf returns how a function is called, "" if it does not exist.
func usageOf(name string) string {
	for _, f := range Functions() {
		if f.Name == name {
			return f.Usage
		}
	}
	return ""
}
