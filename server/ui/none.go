//go:build no_ui

package ui

import "net/http"

// Handler returns nil: the binary was built without the page.
func Handler() http.Handler { return nil }
