// Command weir runs, shows and repairs flows from the command line. Package cmd/cli has its
// commands.
package main

import "github.com/weir-run/weir/cmd/cli"

func main() { cli.Main(cli.Options{}) }
