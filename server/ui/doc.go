// Package ui has the built files of the web page, and Handler, which serves them. The
// sources are in the folder web; `npm run build` there writes the folder dist. With the
// build tag no_ui the package is empty and Handler returns nil.
//
// It must not know the API: the page calls it as any other client.
package ui
