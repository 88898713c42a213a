// Package bench measures Weir against the figures of its design. Each benchmark
// prints a figure or a ratio within one run; none of them is a test, since
// machines are shared and noisy. It must not know the peers: they are measured
// in bench/peers, a module of its own.
package bench
