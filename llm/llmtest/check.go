package llmtest

// Checker returns the API rules that request bodies break, as the Server does, for any number of bodies: it compiles
// the schemas once. Sessions and signatures are not checked. It is safe for concurrent use.
type Checker struct {
	responses responsesAPI
	chat      chatAPI
	anthropic anthropicAPI
	gemini    geminiAPI
}

// NewChecker creates a Checker.
func NewChecker() *Checker {
	return &Checker{
		responsesAPI{responsesShape()},
		chatAPI{chatShape()},
		newAnthropicAPI(), newGeminiAPI(),
	}
}

// Responses returns the rules of OpenAI's Responses API that a body breaks, none if it is valid.
func (c *Checker) Responses(body []byte) []string { return c.responses.read(nil, body, nil).Problems }

// Chat returns the rules of OpenAI's Chat Completions that a body breaks.
func (c *Checker) Chat(body []byte) []string { return c.chat.read(nil, body, nil).Problems }

// Anthropic is CheckAnthropic.
func (c *Checker) Anthropic(body []byte) []string {
	r, _ := c.anthropic.check(body, nil)
	return r.problems
}

// Gemini returns the rules of Gemini's GenerateContent that a body for that
// model breaks.
func (c *Checker) Gemini(model string, body []byte) []string {
	_, problems := c.gemini.check(body, model, nil)
	return problems
}
