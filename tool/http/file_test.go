package httptool_test

import (
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/weir-run/weir/tool"
	httptool "github.com/weir-run/weir/tool/http"
	"github.com/weir-run/weir/trajectory"
)

func TestAnAnswerThatIsAFileIsDeclared(t *testing.T) {
	t.Parallel()
	url, options := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/report":
			w.Header().Set("Content-Type", "text/csv")
			w.Header().Set("Content-Disposition", `attachment; filename="`+r.Header.Get("X-Key")+`.csv"`)
		case "/gone":
			w.Header().Set("Content-Type", "application/pdf")
			w.WriteHeader(http.StatusGone)
		case "/json":
			w.Header().Set("Content-Type", "application/json")
		default:
			w.Header().Set("Content-Type", "application/pdf")
		}
		fmt.Fprint(w, "0123456789")
	})
	for _, tt := range []struct {
		method, path string
		max          int
		want         []trajectory.Artifact
	}{
		{"GET", "/report", 0, []trajectory.Artifact{{Type: trajectory.File, Name: "[secret API].csv", Attributes: map[string]any{
			"url": url + "/report?id=7", "mimeType": "text/csv", "size": int64(10),
		}}}},
		{"POST", "/pdf", 4, []trajectory.Artifact{{Type: trajectory.File, Name: url + "/pdf?id=7", Attributes: map[string]any{
			"url": url + "/pdf?id=7", "mimeType": "application/pdf", "size": int64(10),
		}}}},
		{"GET", "/json", 0, nil},
		{"GET", "/gone", 0, nil},
		{"HEAD", "/pdf", 0, nil},
	} {
		tl, err := httptool.New(httptool.Spec{
			Name: "get", Method: tt.method, URL: url + tt.path, MaxBody: tt.max,
			Query:   map[string]string{"id": "7", "key": "{{ secrets.API }}"},
			Headers: map[string]string{"X-Key": "{{ secrets.API }}"},
		}, options)
		if err != nil {
			t.Fatal(err)
		}
		var got []trajectory.Artifact
		_, _ = tl.Run(t.Context(), tool.Call{OnDeclare: func(a trajectory.Artifact) { got = append(got, a) }})
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s %s: got %+v, want %+v", tt.method, tt.path, got, tt.want)
		}
	}
}
