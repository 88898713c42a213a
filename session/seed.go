package session

import (
	"fmt"
	"strconv"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// checkSeed returns the messages of a seed in the form in which they are kept. Ids are given
// by position: the ids of a client mean nothing here.
func checkSeed(seed []convo.Message) ([]convo.Message, error) {
	out := make([]convo.Message, len(seed))
	for i, m := range seed {
		m.ID = seedID(i)
		var err error
		if out[i], err = m.Normalized(); err != nil {
			return nil, &engine.Error{Code: engine.CodeInput, Permanent: true, Message: fmt.Sprintf("message %d of the seed: %v", i+1, err)}
		}
	}
	return out, nil
}

func seedID(i int) string { return "seed." + strconv.Itoa(i+1) }

func errSeedNotFirst(session string) error {
	return &engine.Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("session %s has messages already, and cannot be seeded", session),
		Hint:    "seed a new session, or send the message without a seed",
	}
}

func encodeSeed(seed []convo.Message) engine.Value { return plainValue(seed) }

func decodeSeed(v engine.Value) []convo.Message { return readPlain[[]convo.Message](v) }
