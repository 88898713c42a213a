package session

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// CheckAnswerSchema checks a schema for RoundSettings.Demands: that it is valid. Schemas elsewhere are not read.
func CheckAnswerSchema(schema map[string]any) error {
	_, err := node.CompileSchema(schema)
	return err
}

// CheckAnswer returns why a text, as that of a reply, is not JSON that fits a schema, nil if it is.
func CheckAnswer(schema map[string]any, text string) error {
	v, err := engine.ParseValue([]byte(text))
	if err != nil {
		return err
	}
	return node.CheckAnswer(schema, v)
}
