package codegen

import (
	"reflect"
	"testing"
)

func TestCodeIsExtractedFromEveryAnswerForm(t *testing.T) {
	const fence, code = "```", "x = 1\nprint(x)\n"
	for name, answer := range map[string]string{
		"plain":                         code,
		"a fence":                       "Here:\n" + fence + "python\n" + code + fence + "\nDone.",
		"a fence without a language":    fence + "\n" + code + fence,
		"indented":                      "    x = 1\n    print(x)",
		"JSON":                          `{"code": "x = 1\nprint(x)\n"}`,
		"JSON in a fence":               fence + "json\n{\"code\": \"x = 1\\nprint(x)\"}\n" + fence,
		"JSON in a fence alone":         fence + "\n{\"code\": \"x = 1\\nprint(x)\"}\n" + fence,
		"prose and JSON":                "Sure! {\"code\": \"x = 1\\nprint(x)\"}",
		"prose and JSON over lines":     "Sure!\n{\n  \"explanation\": \"It prints.\",\n  \"code\": \"x = 1\\nprint(x)\"\n}\nDone.",
		"JSON with line ends in a text": "{\"code\": \"x = 1\nprint(x)\"}",
		"JSON with a comma too many":    `{"code": "x = 1\nprint(x)",}`,
		"JSON with a fence in it":       "{\"code\": \"" + fence + "python\\nx = 1\\nprint(x)\\n" + fence + "\"}",
		"another member":                `{"python_code": "x = 1\nprint(x)"}`,
		"reasoning before":              "<think>" + fence + "python\nx = 2\ny = 3\nz = 4\n" + fence + "</think>\n" + fence + "python\n" + code + fence,
		"reasoning and JSON":            "hm</think>{\"code\": \"x = 1\\nprint(x)\"}",
		"a longer fence of data":        fence + "json\n[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\n" + fence + "\n" + fence + "python\n" + code + fence,
		"carriage returns":              "x = 1\r\nprint(x)\r\n",
		"an object in an object":        `{"result": {"code": "x = 1\nprint(x)"}}`,
		"arguments of a call":           `{"tool": "run", "arguments": {"code": "x = 1\nprint(x)"}}`,
		"a list of files":               `Here: {"files": [{"name": "main.py", "code": "x = 1\nprint(x)"}]}`,
		"an object in a list":           `[{"code": "x = 1\nprint(x)"}]`,
		"a list in a fence":             fence + "json\n[{\"code\": \"x = 1\\nprint(x)\"}]\n" + fence,
		"a list of lines":               `{"code": ["x = 1", "print(x)"]}`,
		"a member in another case":      `{"sourceCode": "x = 1\nprint(x)"}`,
		"a member with dashes":          `{"Generated-Code": "x = 1\nprint(x)"}`,
		"a JSON text":                   `"x = 1\nprint(x)"`,
		"a tag":                         "<code>\nx = 1\nprint(x)\n</code>",
		"a fence of tildes":             "~~~python\n" + code + "~~~",
		"a long fence":                  "````python\n" + code + "````",
		"a fence with a title":          fence + "py title=\"main.py\"\n" + code + fence,
		"a fence with braces":           fence + "{.python}\n" + code + fence,
	} {
		if got := codeIn(answer, "python"); got != code {
			t.Errorf("%s: got %q, want %q", name, got, code)
		}
	}
	const dict = "d = {\"code\": \"y\"}\nprint(d)\n"
	if got := codeIn(fence+"python\n"+dict+fence, "python"); got != dict {
		t.Errorf("code with an object in it was read as %q", got)
	}
	for _, plain := range []string{
		dict, "for d in [{\"code\": \"y\"}]:\n    print(d)\n", "print({\"code\": \"y\"})\n", "def f():\n    return {\"code\": \"y\"}\n",
		"x = 1 if y in {\"code\": \"y\"} else 2\n", "x = y or {\"code\": \"y\"}\n", "f(1, {\"code\": \"y\"})\n",
	} {
		if got := codeIn(plain, "python"); got != plain {
			t.Errorf("code without a fence, %q, was read as %q", plain, got)
		}
	}
}

func TestVerdictIsReadFromEveryAnswerForm(t *testing.T) {
	read := readObject(outputSchema(), verdictNames()...)
	for text, want := range map[string]any{
		`{"valid": true}`: true, `{"valid": "yes"}`: true, `{"Valid": "No"}`: false, "```json\n{\"is_valid\": false}\n```": false,
		`I think {x}: {"task_completed": true}`: true, `<think>{"valid": false}</think>{"valid": true}`: true,
		`{"reason": "fine"}`: nil, `Fine!`: nil, `{"valid": true} {"valid": false}`: nil, `{"valid": "perhaps"}`: nil, ``: nil,
	} {
		v, err := read(text)
		o, _ := v.(map[string]any)
		valid, said := parseVerdict(o)
		if said != (want != nil) || said && !reflect.DeepEqual(any(valid), want) {
			t.Errorf("%q: got %v (%v), %v; want %v", text, valid, said, err, want)
		}
	}
}
