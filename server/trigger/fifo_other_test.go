//go:build !unix

package trigger_test

import "errors"

func makeFIFO(string) error { return errors.ErrUnsupported }
