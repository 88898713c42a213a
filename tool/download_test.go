package tool_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-run/weir/tool"
)

func TestAResponseIsAFileByItsNameOrItsMediaType(t *testing.T) {
	const at = "https://ann:pw@files.example.com/get?id=3&key=%5Bsecret+API%5D&t=[secret API]x&b#end"
	const clean = "https://files.example.com/get?id=3&b"
	for _, tt := range []struct {
		of   tool.Download
		want string // name and attributes; "" is no file
	}{
		{tool.Download{URL: at, Type: "application/json", Size: 5}, ""},
		{tool.Download{URL: at, Type: "application/problem+json; charset=utf-8", Size: 5}, ""},
		{tool.Download{URL: at, Type: "TEXT/csv", Size: 5}, ""},
		{tool.Download{URL: at, Type: "image/svg+xml", Size: 5}, ""},
		{tool.Download{URL: at, Type: "multipart/form-data; boundary=x", Size: 5}, ""},
		{tool.Download{URL: at, Type: "", Size: 5}, ""},
		{tool.Download{URL: at, Type: "no type", Size: 5}, ""},
		{tool.Download{URL: at, Type: "application/pdf", Size: 0}, ""},
		{tool.Download{URL: at, Type: "application/pdf; x=y", Size: 5}, clean + " map[mimeType:application/pdf size:5 url:" + clean + "]"},
		{tool.Download{URL: at, Type: "image/png", Size: -1}, clean + " map[mimeType:image/png url:" + clean + "]"},
		{tool.Download{URL: at, Type: "text/csv", Disposition: `attachment; filename="a b.csv"`, Size: 0}, "a b.csv map[mimeType:text/csv size:0 url:" + clean + "]"},
		{tool.Download{URL: at, Disposition: "inline; filename*=UTF-8''%c3%a9.txt", Size: 1}, "é.txt map[size:1 url:" + clean + "]"},
		{tool.Download{URL: at, Disposition: `attachment; filename="../../etc/passwd"`, Size: 1}, "passwd map[size:1 url:" + clean + "]"},
		{tool.Download{URL: at, Disposition: `attachment; filename="C:\\x\\y.doc"`, Size: 1}, "y.doc map[size:1 url:" + clean + "]"},
		{tool.Download{URL: at, Disposition: `attachment; filename=".."`, Size: 1}, ""},
		{tool.Download{URL: at, Disposition: `attachment`, Type: "text/plain", Size: 1}, ""},
		{tool.Download{URL: at, Disposition: `attachment; filename`, Size: 1}, ""},
		{tool.Download{URL: "https://x.example/%zz", Type: "application/pdf", Size: 1}, ""},
	} {
		f, ok := tt.of.File()
		got := ""
		if ok {
			got = fmt.Sprint(f.Name, " ", f.Attributes)
			if err := f.Check(); err != nil {
				t.Errorf("%+v: %v", tt.of, err)
			}
		}
		if got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.of, got, tt.want)
		}
	}
}

func TestNamesOfDataAreCleanedBoundedAndDistinct(t *testing.T) {
	if got := tool.DataName("a\x1b\xff/é"); got != "a␛/é" {
		t.Errorf("got %q", got)
	}
	long := strings.Repeat("é", 300)
	a, b := tool.DataName(long+"a"), tool.DataName(long+"b")
	if a == b || len(a) > 600 || !utf8.ValidString(a) || !strings.HasPrefix(a, strings.Repeat("é", 250)+"…") {
		t.Errorf("got %q and %q", a, b)
	}
}
