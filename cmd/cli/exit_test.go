package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

func TestHintsComeFromTheTableOfCodes(t *testing.T) {
	for _, err := range []error{
		store.ErrNotFound, store.ErrOwned, store.ErrFenced, store.ErrBusy, store.ErrSessionAdvanced, store.ErrNewerVersion, store.ErrCorrupt, store.ErrNotWeir,
		store.ErrFull, store.ErrUnsupported, runner.ErrAnswer, runner.ErrNoInterrupt, runner.ErrStopped, runner.ErrStatus, runner.ErrDependenciesChanged,
	} {
		h := hint(fmt.Errorf("do it: %w", err))
		if h == "" || strings.HasSuffix(h, ".") || strings.ToLower(h[:1]) != h[:1] {
			t.Errorf("%v: the hint is %q", err, h)
		}
	}
	for err, want := range map[error]string{
		store.ErrNotFound:                  "`weir runs` lists the runs; --db or WEIR_DB selects the database",
		errors.New("whatever"):             "",
		usagef("no such flag"):             "",
		sessionNotFound(store.ErrNotFound): "`weir sessions` lists the sessions; --db or WEIR_DB selects the database",
	} {
		if got := hint(fmt.Errorf("do it: %w", err)); got != want {
			t.Errorf("%v: the hint is %q, expected %q", err, got, want)
		}
	}
}
