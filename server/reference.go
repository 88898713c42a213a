package server

import (
	"encoding/json"
	"net/http"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// errorCode is a row of the tables of error codes.
type errorCode struct {
	Code    string `json:"code" doc:"Stable"`
	Meaning string `json:"meaning" doc:"What happened"`
	Remedy  string `json:"remedy" doc:"What to do"`
}

type errorCodeList struct {
	Codes []errorCode `json:"codes"`
}

// schemaOutput is the JSON Schema of flow files.
type schemaOutput struct {
	Body json.RawMessage
}

func (s *Server) registerReference() {
	tags := []string{"reference"}
	register(s, operation{
		id: "listErrors", method: http.MethodGet, path: "/v1/errors", scope: Read, tags: tags, summary: "List the codes of errors with what they mean",
	}, listErrors)
	register(s, operation{
		id: "getSchema", method: http.MethodGet, path: "/v1/schema", scope: Read, tags: tags,
		summary: "Get the JSON Schema of flow files, with the settings of every node type",
	}, getSchema)
}

func listErrors(*call, *struct{}) (*body[errorCodeList], error) {
	out := errorCodeList{Codes: []errorCode{}}
	for _, c := range engine.Codes() {
		out.Codes = append(out.Codes, errorCode(c))
	}
	for _, c := range flow.Codes() {
		out.Codes = append(out.Codes, errorCode{c.Name, c.Meaning, c.Remedy})
	}
	return bodyOf(out), nil
}

func getSchema(*call, *struct{}) (*schemaOutput, error) {
	cat, err := app.Catalogue()
	if err != nil {
		return nil, err
	}
	text, err := flow.Schema(cat)
	return &schemaOutput{text}, err
}
