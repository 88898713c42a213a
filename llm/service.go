package llm

// Service turns contexts into model calls.
type Service struct{}
