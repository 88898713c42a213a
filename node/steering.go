package node

import (
	"strconv"

	"github.com/weir-run/weir/convo"
)

// SteeredKey is the key in the metadata of a message with which a person has steered a node. Its
// value is who sent it, true if that is not known.
const SteeredKey = "steered"

// Message returns the message as one of a history.
func (m SteeringMessage) Message(ctx *Ctx) convo.Message {
	by := any(true)
	if m.By != "" {
		by = m.By
	}
	return convo.Message{
		ID: ctx.MessageID(ctx.Info().Path + ".steer" + strconv.Itoa(m.Number)), Role: convo.User, Text: m.Text,
		Metadata: convo.Metadata{SteeredKey: by},
	}
}
