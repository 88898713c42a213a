package config

// OTel says where OpenTelemetry traces of runs are sent.
type OTel struct {
	Endpoint string          `json:"endpoint"` // empty is nowhere
	Headers  map[string]Text `json:"headers"`
	// Contents adds messages, arguments, results, inputs and outputs to the spans.
	Contents bool `json:"contents"`
	// Service is the value of service.name; empty is "weir".
	Service string `json:"service"`
}
