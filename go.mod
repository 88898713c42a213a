module github.com/weir-run/weir

go 1.26

require (
	github.com/benbjohnson/immutable v0.4.3 // indirect
	golang.org/x/exp v0.0.0-20220518171630-0b5c67f07fdf // indirect
)
