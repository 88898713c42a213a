package server

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weir-run/weir/server/filestore"
)

// listFiles lists the files of the caller, newest first unless order is asc.
func listFiles(w http.ResponseWriter, r *http.Request, c *call) error {
	query := r.URL.Query()
	for name := range query {
		if !slices.Contains([]string{"purpose", "order", "after", "limit"}, name) {
			return invalidRequest("query."+name, "unknown query parameter")
		}
	}
	limit := maxFiles
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 10_000 {
			return invalidRequest("query.limit", "expected 1 to 10000")
		}
		limit = n
	}
	list, err := c.files.List(c, c.reachableUser())
	if err != nil {
		return err
	}
	switch query.Get("order") {
	case "", "desc":
		slices.Reverse(list)
	case "asc":
	default:
		return invalidRequest("query.order", "expected asc or desc")
	}
	if p := query.Get("purpose"); p != "" {
		list = slices.DeleteFunc(list, func(f *filestore.File) bool { return f.Purpose != p })
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(list, func(f *filestore.File) bool { return f.ID == after })
		if i < 0 {
			return invalidRequest("query.after", "there is no such file in the list")
		}
		list = list[i+1:]
	}
	out := fileList{Object: "list", Data: []fileRow{}, HasMore: len(list) > limit}
	for _, f := range list[:min(limit, len(list))] {
		out.Data = append(out.Data, fileRowOf(f))
	}
	if n := len(out.Data); n > 0 {
		out.FirstID, out.LastID = out.Data[0].ID, out.Data[n-1].ID
	}
	return writeFileJSON(w, out)
}

// describeFiles adds the operations of files to the description of the API: their requests and answers are not all JSON.
func (s *Server) describeFiles() {
	text, number := &huma.Schema{Type: "string"}, &huma.Schema{Type: "integer"}
	binary := &huma.Schema{Type: "string", Format: "binary"}
	json := func(kind reflect.Type) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: s.api.OpenAPI().Components.Schemas.Schema(kind, true, "")}}
	}
	row := json(reflect.TypeFor[fileRow]())
	path := []*huma.Param{{Name: "file", In: "path", Required: true, Schema: text, Description: "The id of the file"}}
	add := func(scope Scope, o huma.Operation, answers map[string]*huma.MediaType) {
		o.Tags, o.Security = []string{"files"}, []map[string][]string{{"token": {string(scope)}}}
		o.Responses = map[string]*huma.Response{
			"200":     {Description: "OK", Content: answers},
			"default": {Description: "Error", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")}}},
		}
		s.api.OpenAPI().AddOperation(&o)
	}
	fields := map[string]*huma.Schema{
		"file": binary, "purpose": {Type: "string", Enum: []any{"user_data", "vision", "assistants"}},
		"expires_after[anchor]": {Type: "string", Enum: []any{"created_at"}}, "expires_after[seconds]": number,
	}
	add(Start, huma.Operation{
		OperationID: "createFile", Method: http.MethodPost, Path: "/v1/files", Summary: "Upload a file",
		Description: "The type is found from the content: text in UTF-8, a PDF, or a PNG, JPEG, GIF or WebP image.",
		Parameters:  []*huma.Param{{Name: "Idempotency-Key", In: "header", Schema: text}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: &huma.Schema{Type: "object", Properties: fields, Required: []string{"file"}}}}},
	}, row)
	add(Read, huma.Operation{
		OperationID: "listFiles", Method: http.MethodGet, Path: "/v1/files", Summary: "List files, newest first",
		Parameters: []*huma.Param{
			{Name: "purpose", In: "query", Schema: text},
			{Name: "order", In: "query", Schema: text, Description: "asc or desc"},
			{Name: "after", In: "query", Schema: text, Description: "The id of the last file of the page before"},
			{Name: "limit", In: "query", Schema: number},
		},
	}, json(reflect.TypeFor[fileList]()))
	add(Read, huma.Operation{OperationID: "getFile", Method: http.MethodGet, Path: "/v1/files/{file}", Summary: "Get what is known of a file", Parameters: path}, row)
	add(Read, huma.Operation{
		OperationID: "getFileContent", Method: http.MethodGet, Path: "/v1/files/{file}/content", Summary: "Download a file, or with the header Range a part of it",
		Parameters: append(slices.Clip(path), &huma.Param{Name: "Range", In: "header", Schema: text}, &huma.Param{Name: "If-Range", In: "header", Schema: text}),
	}, map[string]*huma.MediaType{"application/octet-stream": {Schema: binary}})
	add(Start, huma.Operation{OperationID: "deleteFile", Method: http.MethodDelete, Path: "/v1/files/{file}", Summary: "Delete a file. Runs that used it keep what they were given.", Parameters: path}, json(reflect.TypeFor[deletedFile]()))
}
