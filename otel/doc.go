// Package otel makes OpenTelemetry traces of runs from their journals, and sends them by
// OTLP over HTTP in JSON. Ids of traces and spans are derived from ids of runs and keys of
// effects, so that every process makes the same spans of the same events.
//
// It must not know how runs are executed, and imports neither an OpenTelemetry SDK nor
// gRPC.
package otel
