package cli

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"
)

// defaultRows is how many rows of one kind `show` and `trajectory` print for people if
// --limit is not given.
const defaultRows = 200

// rowLimit is the flag --limit: how many rows of one kind are printed, 0 for all.
type rowLimit int

// addTo adds the flag; rows says which rows it limits.
func (l *rowLimit) addTo(f *pflag.FlagSet, rows string) {
	f.IntVar((*int)(l), "limit", defaultRows, "list at most `N` "+rows+"; 0 for all")
}

func (l rowLimit) check() error {
	if l < 0 {
		return usagef("--limit: expected 0 or more")
	}
	return nil
}

// choose returns the indexes of the rows to print, in order, of n rows. Where not all of them
// fit, the rows that first reports come before all others, and earlier rows before later ones.
func (l rowLimit) choose(n int, first func(int) bool) []int {
	most := int(l)
	if most == 0 || n <= most {
		most = n
	}
	left := 0 // rows that first reports, and that fit
	for i := 0; i < n && left < most; i++ {
		if first(i) {
			left++
		}
	}
	others := most - left
	chosen := make([]int, 0, most)
	for i := range n {
		room := &others
		if first(i) {
			room = &left
		}
		if *room > 0 {
			*room--
			chosen = append(chosen, i)
		}
	}
	return chosen
}

// note says below a table how many of its rows were left out, and which command prints all.
func (l rowLimit) note(out io.Writer, shown, all int, noun, command string) {
	if shown < all {
		fmt.Fprintf(out, "%d of %s are left out; list all with `%s`\n", all-shown, count(all, noun), command)
	}
}
