package app

import (
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/otel"
)

// traces returns where traces are sent, nil for nowhere.
func traces(c config.OTel) (*otel.Config, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	headers := make(map[string]string, len(c.Headers))
	for name, text := range c.Headers {
		value, err := text.Value()
		if err != nil {
			return nil, usagef("configuration: otel: header %s: %w", name, err)
		}
		headers[name] = value
	}
	return &otel.Config{Endpoint: c.Endpoint, Headers: headers, Contents: c.Contents, Service: c.Service}, nil
}
