package token

import (
	"slices"
	"strings"
	"testing"
)

// TestTextIsSplitByThePublishedPatterns has a line for each alternative of
// the patterns and for where one gives back what it took; "|" is where pieces
// meet.
func TestTextIsSplitByThePublishedPatterns(t *testing.T) {
	cl100k, o200k := splitCl100k, splitO200k
	for _, c := range []struct {
		split splitter
		want  string
	}{
		{cl100k, "Don|'t| stop"},
		{cl100k, "WE|'LL| it|'ſ| he|'x"},
		{cl100k, "camelCase| snake|_case|\tTab"},
		{cl100k, "123|456|7| |12Ⅷ|3"},
		{cl100k, " {\"|key|\":\r\n|x"},
		{cl100k, "a|//\n|/"},
		{cl100k, "a|  | b|\n\n|  | c|   "},
		{cl100k, "e|\u0301| e|\u0301\u0301|x|\u0301y"},
		{o200k, "Don't| stop"},
		{o200k, "WE'LL| it'ſ| he|'x"},
		{o200k, "camel|Case| HTTPServer| snake|_case|\tTab"},
		{o200k, "亚洲|AV"},
		{o200k, "亚洲AVa"},
		{o200k, "\u0301|AB"},
		{o200k, "e\u0301| E\u0301X\u0301x\u0301| \u0301"},
		{o200k, "123|456|7| |12Ⅷ|3"},
		{o200k, "a|//\n/\n| x"},
		{o200k, "a|  | b|\n \n|  | c|   "},
		{o200k, "\u00a0word| |\u00a0|.\xff\xfe|x"},
	} {
		want := strings.Split(c.want, "|")
		text := strings.Join(want, "")
		var got []string
		for i := 0; i < len(text); {
			end := c.split(runeClasses(), text, i)
			got = append(got, text[i:end])
			i = end
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is split into\n%q, want\n%q", text, got, want)
		}
	}
}
