// Package bench measures Weir against the targets of its design. Each benchmark prints
// a figure, or a ratio within one run. None is a test, because shared machines are
// noisy. It must not know other libraries: bench/peers, a separate module, measures
// those.
package bench
