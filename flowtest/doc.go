// Package flowtest runs tests of flows in *.test.yaml files. A test file defines the
// inputs of a flow, the answers of models, tools and people, mocks of nodes, and the
// expected results. The library itself runs the flows, with a store in memory; waits
// take no time.
//
// It must not know how runs are executed or stored: it starts them, answers their
// questions and reads their journals through the public API.
package flowtest
